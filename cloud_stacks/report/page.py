"""What a report says, as blocks that a renderer lays out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cloud_stacks.comparison import Change, Line, StackReport
from cloud_stacks.costs import Cost
from cloud_stacks.effects import Kind
from cloud_stacks.outcome import Finding, Place, Problem
from cloud_stacks.report.words import number
from cloud_stacks.rights import Grant
from local.plugins.urn import PROVIDER_PREFIX, name_of, type_of


@dataclass(frozen=True, slots=True)
class Code:
    """Text from outside."""

    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    """Our own text, to be seen."""

    text: str


Part = str | Code | Strong
Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Title:
    """A heading; `level` 1 is the report's."""

    parts: Parts
    level: int = 2


@dataclass(frozen=True, slots=True)
class Sentence:
    """A paragraph."""

    parts: Parts


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of a list, with lines under it."""

    parts: Parts
    under: tuple[Parts, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """A list under a heading. `folded`: hidden until somebody opens it, where the form can."""

    title: str
    items: tuple[Item, ...]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table."""

    head: tuple[str, ...]
    rows: tuple[tuple[Parts, ...], ...]


Block = Title | Sentence | Items | Table

FULL, WITHOUT_LINES, SUMMARY = 2, 1, 0
"""How much a page holds."""
_MANY = 12
"""More resources than this are folded."""
_LEVELS = ("advisory", "mandatory", "remediate", "not-evaluated")
"""Any other is text from outside."""
_URGENT = (Kind.ADDRESS, Kind.GONE, Kind.REFUSED)


def page(title: str, reports: Sequence[StackReport], detail: int = FULL) -> list[Block]:
    """The blocks of a report."""
    busy = [report for report in reports if not report.is_quiet]
    quiet = [report for report in reports if report.is_quiet]
    blocks: list[Block] = [Title((title,), 1)]
    if busy:
        blocks.append(_table(busy))
    if quiet:
        names = [part for report in quiet for part in (", ", Code(report.stack))][1:]
        blocks.append(Sentence(("Unchanged: ", *names, ".")))
    if detail == SUMMARY:
        return blocks
    for report in busy:
        blocks += _of_stack(report, detail)
    return blocks


def _table(reports: Sequence[StackReport]) -> Table:
    rows = []
    for report in reports:
        counts = ", ".join(f"{count} to {op}" for op, count in report.counts.items()) or "none"
        if report.gone and not report.findings:
            found = f"{len(report.gone)} gone"
        else:
            found = f"{len(report.findings)}{' new' if report.compared else ''}" if report.findings else "-"
        addresses: Part = Strong(f"{report.addresses} lost") if report.addresses else "-"
        result: Part = Strong("would fail") if report.failed else "ok"
        rows.append(((Code(report.stack),), (counts,), (addresses,), (found,), (result,)))
    return Table(("Stack", "Resources", "Addresses", "Policy findings", "Result"), tuple(rows))


def _of_stack(report: StackReport, detail: int) -> list[Block]:
    urgent = [change for change in report.changes if _is_urgent(change)]
    others = [change for change in report.changes if not _is_urgent(change)]
    with_lines = detail == FULL
    sections = [
        Items("Problems", tuple(map(_problem, report.problems))),
        Items("No longer a problem", tuple(map(_problem, report.solved))),
        Items("Addresses", tuple(_changed(change, with_lines) for change in urgent)),
        Items("Resources", tuple(_changed(change, with_lines) for change in others), len(others) > _MANY),
        Items("Policy findings", tuple(map(_finding, report.findings))),
        Items("Findings that are gone", tuple(map(_finding, report.gone)), len(report.gone) > _MANY),
        Items("Rights gained", tuple(map(_grant, report.gained))),
        Items("Rights lost", tuple(map(_grant, report.lost)), len(report.lost) > _MANY),
        Items("What costs", tuple(map(_cost, report.costs))),
    ]
    blocks: list[Block] = [Title(("Stack ", Code(report.stack)))]
    blocks += [section for section in sections if section.items]
    rest = [number(report.unchanged, "resource") + " unchanged"] if report.unchanged else []
    rest += [number(report.kept, "policy finding") + " as before"] if report.kept else []
    if rest:
        blocks.append(Sentence((", ".join(rest).capitalize() + ".",)))
    return blocks


def _is_urgent(change: Change) -> bool:
    return any(effect.kind in _URGENT for effect in change.effects)


def _changed(change: Change, with_lines: bool) -> Item:
    parts: list[Part] = [f"{change.op} ", Code(_kind(change.type)), " ", Code(change.name)]
    if change.place:
        parts += [" at ", _place(change.place)]
    under: list[Parts] = []
    if change.op == "replace" and change.reasons and not change.effects:
        under.append(("because of ", *_listed(change.reasons)))
    for effect in change.effects:
        kind: Part = Strong(str(effect.kind)) if effect.kind in _URGENT else str(effect.kind)
        cause: Parts = (" (", Code(effect.cause), ")") if effect.cause else ()
        under.append((kind, f": {effect.text}", *cause))
    return Item(tuple(parts), tuple(under), change.lines if with_lines else ())


def _finding(finding: Finding) -> Item:
    level: Part = Strong(finding.level) if finding.fails else finding.level
    if finding.level not in _LEVELS:
        level = Code(finding.level)
    severity = f", {finding.severity}" if finding.severity else ""
    where: Parts = (" at ", _place(finding.place)) if finding.place else ()
    named = (Code(_kind(type_of(finding.urn))), " ", Code(name_of(finding.urn))) if finding.urn else ()
    return Item((Code(finding.policy), " (", level, severity, "): ", *named, *where), ((Code(finding.message),),))


def _problem(problem: Problem) -> Item:
    named: Parts = (Code(_kind(type_of(problem.urn))), " ", Code(name_of(problem.urn))) if problem.urn else ()
    where: Parts = (" at ", _place(problem.place)) if problem.place else ()
    severity: Part = Strong(problem.severity) if problem.severity == "error" else problem.severity
    head = (severity, ": ", *named, *where) if named else (severity,)
    return Item(head, tuple((Code(line),) for line in problem.message.splitlines() if line.strip()))


def _grant(grant: Grant) -> Item:
    on: Parts = (" on ", Code(grant.on)) if grant.on else ()
    return Item((Code(grant.holder), ": ", *_listed(grant.what), *on))


def _cost(cost: Cost) -> Item:
    size: Parts = (" ", Code(cost.size)) if cost.size else ()
    return Item((f"{cost.what}", *size, f": {cost.before} → {cost.after}"))


def _listed(texts: Sequence[str]) -> Parts:
    return tuple(part for text in texts for part in (", ", Code(text)))[1:]


def _place(place: Place) -> Code:
    return Code(f"{place.path}:{place.line}")


def _kind(type: str) -> str:
    """`kubernetes:core/v1:Service` as `Service`; with its package where the name alone says little."""
    if type.startswith(PROVIDER_PREFIX):
        return f"{type.removeprefix(PROVIDER_PREFIX)} provider"
    package, _, rest = type.partition(":")
    return rest.rpartition(":")[2] if package in ("kubernetes", "pulumi") else type
