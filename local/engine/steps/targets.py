"""Which resources an operation is about: `--target`, `--replace`. Pure.

A target is a URN, or a pattern in which `*` stands for any text without a colon and `**` for any text at all.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from local.engine.stack.resource import ResourceState
from local.engine.urn import STACK_TYPE, is_provider, name_of


@dataclass(frozen=True, slots=True)
class Targets:
    """A set of URNs, given by URNs and patterns; `dependents`: also whatever depends on one of them."""

    patterns: tuple[str, ...]
    dependents: bool = False
    _matcher: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_matcher", re.compile("|".join(f"(?:{_expression(p)})" for p in self.patterns)))

    def names(self, urn: str) -> bool:
        """Whether the URN itself is asked for."""
        return self._matcher.fullmatch(urn) is not None

    def unknown(self, urns: Collection[str]) -> list[str]:
        """An error message for each URN that is asked for and is not among these; a pattern may match nothing."""
        return [_unknown(p, urns) for p in self.patterns if "*" not in p and p not in urns]

    def idle(self, urns: Collection[str]) -> list[str]:
        """A message for each pattern that matches none of these."""
        matching_none = (
            p for p in self.patterns if "*" in p and not any(re.fullmatch(_expression(p), u) for u in urns)
        )
        return [_unmatched(p, urns) for p in matching_none]

    def with_dependents(self, resources: Iterable[ResourceState]) -> set[str]:
        """The URNs that are asked for, and all that cannot be without them, directly or through others.

        Children need their parents, resources their provider.
        """
        found: set[str] = set()
        remaining = list(resources)
        while True:
            more = {r.urn for r in remaining if self.names(r.urn) or r.requires() & found} - found
            if not more:
                return found
            found |= more
            remaining = [r for r in remaining if r.urn not in found]


class Selection:
    """Which of the program's registrations are worked on; they come in the order of their dependencies."""

    def __init__(self, targets: Targets | None) -> None:
        self._targets = targets
        self._chosen: set[str] = set()
        self.kept: set[str] = set()
        """What exists and is no target: it stays as it is."""
        self.skipped: set[str] = set()
        """What does not exist and is no target: it is not made."""

    def includes(self, goal: ResourceState, *, exists: bool) -> bool:
        """Whether a resource is worked on. Providers and the stack itself always are: the others need them."""
        targets = self._targets
        if targets is None:
            return True
        if targets.names(goal.urn) or (targets.dependents and goal.requires() & self._chosen):
            self._chosen.add(goal.urn)
            return True
        if is_provider(goal.type) or goal.type == STACK_TYPE:
            return True
        (self.kept if exists else self.skipped).add(goal.urn)
        return False

    def missing(self, goal: ResourceState) -> set[str]:
        """What a resource that is worked on needs and cannot have."""
        return goal.requires() & self.skipped


def needed_by(urns: Iterable[str], resources: Iterable[ResourceState]) -> set[str]:
    """The URNs of all that these need, directly or through others; without themselves, unless they need each other."""
    requirements: dict[str, set[str]] = {}
    for resource in resources:
        requirements.setdefault(resource.urn, set()).update(resource.requires())
    found: set[str] = set()
    frontier = list(urns)
    while frontier:
        more = requirements.get(frontier.pop(), set()) - found
        found |= more
        frontier += more
    return found


def _expression(pattern: str) -> str:
    pieces = (".*" if p == "**" else "[^:]*" if p == "*" else re.escape(p) for p in re.split(r"(\*\*|\*)", pattern))
    return "".join(pieces)


def _unknown(target: str, urns: Collection[str]) -> str:
    what = f"target {target!r} could not be found in the stack"
    same_name = sorted(u for u in urns if name_of(u) == target)
    if same_name:
        return f"{what}; a target is a URN, or a pattern such as '**::{target}': {', '.join(same_name)}"
    nearest = _nearest(target, urns)
    # `$Type` in double quotes or none is a variable to a shell.
    hint = "; quote the `$` of a URN for the shell" if "$" in nearest and "$" not in target else ""
    return f"{what}{f'; did you mean {nearest!r}?' if nearest else ''}{hint}"


def _unmatched(pattern: str, urns: Collection[str]) -> str:
    nearest = _nearest(pattern, urns)
    return f"{pattern!r} matches no resource of the stack{f'; did you mean {nearest!r}?' if nearest else ''}"


def _nearest(target: str, urns: Collection[str]) -> str:
    """The URN that has the nearest name; of those with one name, the most similar one."""
    name = target.rpartition("::")[2]
    names = difflib.get_close_matches(name, {name_of(u) for u in urns}, n=1)
    alike = sorted(u for u in urns if [name_of(u)] == names)
    return next(iter(difflib.get_close_matches(target, alike, n=1, cutoff=0.0)), "")
