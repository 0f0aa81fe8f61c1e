"""The end of a run as sections of lines: policies, diagnostics, outputs, counts and duration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from local.engine.display.text import Line, Part, Tone, indented, line
from local.engine.display.values import output_lines
from local.engine.display.words import COUNTED, word_of
from local.engine.events import Diagnostic, Summary
from local.engine.policies.host import Finding
from local.engine.steps.planner import Op
from local.plugins.urn import name_of, type_of

Problems = Mapping[str, Sequence[Diagnostic]]
"""The diagnostics of each resource, by URN; "" is the run."""


@dataclass(frozen=True, slots=True)
class Section:
    """A title and its lines. `bad`: shown unfolded, because something is wrong."""

    title: str
    lines: list[Line]
    bad: bool = False


def policy_section(event: Summary, findings: Sequence[Finding]) -> Section | None:
    """Each pack with its verdict and findings, by rule."""
    if not event.policy_packs:
        return None
    lines: list[Line] = []
    for name, version in event.policy_packs.items():
        found = [finding for finding in findings if finding.pack == name]
        verdict = _verdict([f.level for f in found], event.failed)
        lines.append(line(f"    {name}{f'@v{version}' if version else ''}: {verdict}"))
        rules: dict[tuple[str, str, str], list[Finding]] = {}
        for finding in found:
            rules.setdefault((finding.level, finding.policy, finding.description), []).append(finding)
        for (level, policy, description), violations in rules.items():
            tone = Tone.ERROR if level == "mandatory" else Tone.WARNING
            lines.append((Part("        "), Part(f"[{level}]", tone), Part(f" {policy}")))
            lines += indented([line(description)] if description else [], 12)
            lines += indented([each for violation in violations for each in _violation(violation)], 12)
    return Section("Policies", lines, bad=event.failed)


def _violation(finding: Finding) -> list[Line]:
    """Where a rule is violated, and how, unless its description says that."""
    how = [] if finding.message == finding.description else finding.message.splitlines()
    first, *rest = how or [""]
    about = f"{type_of(finding.urn)} {name_of(finding.urn)}"
    return [line(f"{about}: {first}" if first else about), *indented([line(text) for text in rest], 4)]


def _verdict(levels: Iterable[str], failed: bool) -> str:
    counts: dict[str, int] = {}
    for level in levels:
        counts[level] = counts.get(level, 0) + 1
    said = [f"{count} {level}" for level, count in counts.items()]
    if failed and "mandatory" not in counts:
        # The failure preceded some of the rules, or was one.
        said.append("incomplete, as the run failed")
    return ", ".join(said) or "passed"


def diagnostics_section(problems: Problems) -> Section | None:
    """Every problem with all its lines; one shared by several resources appears once."""
    if not problems:
        return None
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for urn, events in problems.items():
        place = next((f" at {e.place}" for e in events if e.place), "")
        about = f"  {type_of(urn)} ({name_of(urn)}){place}:" if urn else "  the run:"
        alike.setdefault(tuple((e.severity, e.message) for e in events), []).append(about)
    lines: list[Line] = []
    for messages, headings in alike.items():
        lines += [line(about) for about in headings]
        for severity, message in messages:
            first, *rest = message.splitlines() or [""]
            lines += [(Part("    "), *labelled(severity, first)), *(line(f"      {text}") for text in rest)]
    return Section("Diagnostics", lines, bad=any(e.severity == "error" for each in problems.values() for e in each))


def labelled(severity: str, text: str) -> Line:
    """A message with its severity; an info has none."""
    tone = {"error": Tone.ERROR, "warning": Tone.WARNING}.get(severity)
    return (Part(f"{severity}:", tone), Part(f" {text}")) if tone else line(text)


def outputs_section(event: Summary) -> Section | None:
    """The stack's outputs with their changes; a failed run shows only changes."""
    lines = indented(output_lines(event.old_outputs, event.new_outputs), 2)
    shown = lines and (not event.failed or event.new_outputs != event.old_outputs)
    return Section("Outputs", lines) if shown else None


def counts_section(event: Summary) -> Section | None:
    """How many resources were, or would be, created, updated, deleted, replaced."""
    lines: list[Line] = []
    changes = 0
    for op in COUNTED:
        count = {str(k): v for k, v in event.changes.items()}.get(op, 0)
        if count:
            changes += count
            word = word_of(op)
            lines.append(
                line(f"    {word.symbol:<2}{count} {f'to {word.would}' if event.planning else word.did}", word.tone)
            )
    same = event.changes.get(Op.SAME, 0)
    if changes and same:
        lines.append(line(f"    {changes} change{'s' if changes > 1 else ''}. {same} unchanged"))
    elif same:
        lines.append(line(f"    {same} unchanged"))
    return Section("Resources", lines) if lines else None
