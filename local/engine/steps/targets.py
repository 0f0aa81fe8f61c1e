"""The selection of resources: `--target`, `--replace`. Pure.

A target is a URN, or a pattern: `*` matches any text without a colon, `**` any text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from local.engine.stack.resource import ResourceState
from local.plugins.urn import STACK_TYPE, is_provider, name_of


@dataclass(frozen=True, slots=True)
class Targets:
    """A set of URNs, given as URNs and patterns; `dependents`: with all that depend on one of them."""

    patterns: tuple[str, ...]
    dependents: bool = False
    _matcher: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_matcher", re.compile("|".join(f"(?:{_expression(p)})" for p in self.patterns)))

    def names(self, urn: str) -> bool:
        """Whether the URN itself is selected."""
        return self._matcher.fullmatch(urn) is not None

    def unknown(self, urns: Collection[str]) -> list[str]:
        """An error message for each selected URN that is not among these; a pattern may match nothing."""
        return [_unknown(p, urns) for p in self.patterns if "*" not in p and p not in urns]

    def idle(self, urns: Collection[str]) -> list[str]:
        """A message for each pattern that matches none of these."""
        matching_none = (
            p for p in self.patterns if "*" in p and not any(re.fullmatch(_expression(p), u) for u in urns)
        )
        return [_unmatched(p, urns) for p in matching_none]

    def with_dependents(self, resources: Iterable[ResourceState]) -> set[str]:
        """The selected URNs, and all that depend on them, directly or indirectly.

        Children depend on their parents, resources on their provider.
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
    """The selection among the program's registrations, which arrive in the order of their dependencies."""

    def __init__(self, targets: Targets | None) -> None:
        self._targets = targets
        self._chosen: set[str] = set()
        self.kept: set[str] = set()
        """Existing resources that are not targets: they stay as they are."""
        self.skipped: set[str] = set()
        """New resources that are not targets: they are not created."""

    def includes(self, goal: ResourceState, *, exists: bool) -> bool:
        """Whether a resource is worked on. Providers and the stack itself always are: the others depend on them."""
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
        """The dependencies of a resource that will not exist in this run."""
        return goal.requires() & self.skipped


def needed_by(urns: Iterable[str], resources: Iterable[ResourceState]) -> set[str]:
    """The URNs of all that these depend on, directly or indirectly; without themselves except in a cycle."""
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
    # A shell expands `$Type` in double quotes or none as a variable.
    hint = "; quote the `$` of a URN for the shell" if "$" in nearest and "$" not in target else ""
    return f"{what}{f'; did you mean {nearest!r}?' if nearest else ''}{hint}"


def _unmatched(pattern: str, urns: Collection[str]) -> str:
    nearest = _nearest(pattern, urns)
    return f"{pattern!r} matches no resource of the stack{f'; did you mean {nearest!r}?' if nearest else ''}"


def _nearest(target: str, urns: Collection[str]) -> str:
    """The URN with the nearest name; among equal names, the most similar URN."""
    name = target.rpartition("::")[2]
    names = difflib.get_close_matches(name, {name_of(u) for u in urns}, n=1)
    alike = sorted(u for u in urns if [name_of(u)] == names)
    return next(iter(difflib.get_close_matches(target, alike, n=1, cutoff=0.0)), "")
