"""What people see of a stack: the plan, or what a commit changes of it. Pure."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_stacks import costs, rights
from cloud_stacks.costs import Cost
from cloud_stacks.effects import Effect, Kind, effects_of
from cloud_stacks.outcome import SECRET, UNKNOWN, Finding, Outcome, Place, Problem, Resource
from cloud_stacks.rights import Grant
from cloud_stacks.serving import catalogues
from local.plugins import paths
from local.plugins.differences import differences

Json = Any
_LONGEST: Final = 300
"""Characters of a value that a report shows."""
_ABSENT: Final = object()
ORDER: Final = ("replace", "delete", "update", "create")


@dataclass(frozen=True, slots=True)
class Line:
    """A property that differs; `sign`: +, - or ~."""

    sign: str
    path: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A resource that changes, and what that means."""

    op: str
    type: str
    name: str
    urn: str
    effects: tuple[Effect, ...]
    lines: tuple[Line, ...]
    reasons: tuple[str, ...]
    place: Place | None


@dataclass(frozen=True, slots=True)
class StackReport:
    """One stack of a report."""

    stack: str
    changes: tuple[Change, ...] = ()
    unchanged: int = 0
    findings: tuple[Finding, ...] = ()
    """New ones; all, if there is nothing to compare with."""
    gone: tuple[Finding, ...] = ()
    kept: int = 0
    """How many findings both commits have."""
    gained: tuple[Grant, ...] = ()
    lost: tuple[Grant, ...] = ()
    costs: tuple[Cost, ...] = ()
    problems: tuple[Problem, ...] = ()
    solved: tuple[Problem, ...] = ()
    compared: bool = False
    """Whether there is another commit's plan that it is compared with."""

    @property
    def counts(self) -> dict[str, int]:
        """The resources that change, by operation."""
        counted = Counter(change.op for change in self.changes)
        return {op: counted[op] for op in ORDER if counted[op]}

    @property
    def addresses(self) -> int:
        """How many addresses are replaced or deleted."""
        return sum(effect.kind in (Kind.ADDRESS, Kind.GONE) for change in self.changes for effect in change.effects)

    @property
    def failed(self) -> bool:
        """Whether an `up` would not be carried out for something that the report shows, or might not be."""
        return any(finding.fails for finding in self.findings) or any(
            problem.severity == "error" for problem in self.problems
        )

    @property
    def is_quiet(self) -> bool:
        """Whether one line says it all."""
        return not (self.changes or self.findings or self.gone or self.problems or self.solved)


def report(outcome: Outcome, base: Outcome | None = None, stack: str = "") -> StackReport:
    """The report of a plan. `base`: the other commit's, whose findings and warnings are not the change's.

    An error that both have is one nevertheless: nothing is known of the stack.
    """
    known = {_identity(finding) for finding in base.findings} if base else set()
    now = {_identity(finding) for finding in outcome.findings}
    old = {(p.urn, p.message) for p in base.problems} if base else set()
    present = {(p.urn, p.message) for p in outcome.problems}
    changed = [resource for resource in outcome.resources if resource.op != "same"]
    gained, lost = rights.changes(changed)
    judging = catalogues(outcome.resources)
    shown = tuple(sorted((_change(each, judging.get(each.urn)) for each in changed), key=_order))
    effects = [(change.urn, effect) for change in shown for effect in change.effects]
    said = {(urn, effect.cause) for urn, effect in effects if effect.cause and effect.kind is Kind.ADDRESS}
    return StackReport(
        stack or outcome.stack,
        shown,
        len(outcome.resources) - len(changed) + outcome.unlisted,
        tuple(f for f in outcome.findings if _identity(f) not in known),
        tuple(f for f in base.findings if _identity(f) not in now) if base else (),
        len(known & now),
        tuple(gained),
        tuple(lost),
        tuple(costs.changes(outcome.resources)),
        tuple(p for p in outcome.problems if _is_new(p, old, said)),
        tuple(p for p in base.problems if (p.urn, p.message) not in present) if base else (),
        base is not None,
    )


def _order(change: Change) -> tuple[int, str, str]:
    return ORDER.index(change.op), change.type, change.name


def _is_new(problem: Problem, old: set[tuple[str, str]], said: set[tuple[str, str]]) -> bool:
    """Whether to report it: not a warning that both commits have, nor the program's own of an address that changes."""
    if problem.severity == "error":
        return True
    known = any(urn == problem.urn and cause in problem.message for urn, cause in said)
    return not known and (problem.urn, problem.message) not in old


def _identity(finding: Finding) -> tuple[str, str, str, str]:
    return finding.policy, finding.level, finding.urn, finding.message


def _change(resource: Resource, catalogue: Catalogue | None) -> Change:
    lines = _lines(resource) if resource.op in ("update", "replace") else ()
    effects = tuple(effects_of(resource, catalogue))
    return Change(
        resource.op, resource.type, resource.name, resource.urn, effects, tuple(lines), resource.reasons, resource.place
    )


def _lines(resource: Resource) -> list[Line]:
    told = rights.told_of(resource.type)
    before, after = ({k: v for k, v in each.items() if k not in told} for each in (resource.before, resource.after))
    lines = []
    for text in sorted(differences(before, after)):
        steps = paths.parse(text)
        was, is_now = _at(before, steps), _at(after, steps)
        if was is _ABSENT:
            lines.append(Line("+", text, after=_text(is_now)))
        elif is_now is _ABSENT:
            lines.append(Line("-", text, before=_text(was)))
        else:
            lines.append(Line("~", text, _text(was), _text(is_now)))
    shown = {str(paths.parse(line.path)[0]) for line in lines}
    secret = dict.fromkeys(str(paths.named(path)[0]) for path in resource.differing if path)
    lines += [Line("~", key, SECRET, SECRET) for key in secret if key not in shown and _holds_secret(after.get(key))]
    return lines


def _holds_secret(value: Json) -> bool:
    return SECRET in json.dumps(value, ensure_ascii=False)


def _at(value: Json, steps: paths.Path) -> Json:
    for step in steps:
        if isinstance(value, dict) and step in value:  # noqa: SIM114 - two types, for the type checker
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return _ABSENT
    return value


def _text(value: Json) -> str:
    text = value if value in (SECRET, UNKNOWN) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
