"""Renders the plans of manifests as text and as Markdown. Pure.

Names, values and reasons come from outside. Each is put on one line, without control characters; in Markdown it is
always within a code span, so that it can neither break the document nor mention somebody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from cloud_controller import logs
from cloud_controller.cli.planned_service import Outcome, PlannedService, ServicesPlan
from cloud_controller.plan import Action

_UNCHANGED = (Outcome.UP_TO_DATE, Outcome.NOT_SERVED)


def text(plan: ServicesPlan) -> str:
    """The plan for a terminal: one block for each Service, and a summary."""
    lines = [line for service in plan.services for line in _block(service)]
    return "\n".join([*lines, *(f"note: {note}" for note in plan.notes), summary(plan)])


def markdown(plan: ServicesPlan) -> str:
    """The plan for a comment: what is unchanged, without a warning, is only counted."""
    lines = [f"### {summary(plan)}", ""]
    for service in plan.services:
        if service.outcome not in _UNCHANGED or service.warnings:
            lines.append(f"- **{service.outcome}** {code(service.key)} ({code(_place(service))})")
            lines += (f"{'  ' * (depth + 1)}- {words}" for depth, words in _details(service, code))
    lines += [f"- {code(note)}" for note in plan.notes]
    return "\n".join(lines)


def summary(plan: ServicesPlan) -> str:
    """One line: the number of Services of each outcome."""
    count = len(plan.services)
    found = [f"{number} {outcome}" for outcome, number in plan.counts.items()]
    ignored = [f"{plan.ignored} other {'object' if plan.ignored == 1 else 'objects'} ignored"] if plan.ignored else []
    services = f"{count} {'Service' if count == 1 else 'Services'}"
    return "; ".join([f"{services}: {', '.join(found)}" if found else services, *ignored])


def one_line(words: str) -> str:
    """The words on one line, as `plain`."""
    return plain(" ".join(logs.redacted(words).split()))


def plain(words: str) -> str:
    """The words without control and formatting characters, which could disguise them."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in words)


def code(words: str) -> str:
    """A Markdown code span that the words cannot end."""
    line = one_line(words)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    padding = " " if not line or line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def _block(service: PlannedService) -> Iterator[str]:
    yield f"{one_line(service.key)} ({one_line(_place(service))}): {service.outcome}"
    for depth, words in _details(service, one_line):
        yield f"{'  ' if depth == 0 else '       '}{words}"


def _place(service: PlannedService) -> str:
    return f"{service.source.name}:{service.line}"


def _details(service: PlannedService, shown: Callable[[str], str]) -> Iterator[tuple[int, str]]:
    """What is said about the Service, each with its depth."""
    if service.refusal:
        yield 0, shown(service.refusal.why)
    for action in service.actions:
        if service.refusal and service.refusal.why in (action.reason or ""):
            continue  # It only repeats the refusal.
        yield 0, shown(_line(action))
        for change in action.changes:
            yield 1, shown(str(change))
    for warning in service.warnings:
        yield 0, shown(f"warning: {warning}")
    for line in service.acknowledgements:
        yield 0, f"to let it happen once, annotate the Service: {shown(line)}"


def _line(action: Action) -> str:
    return str(action).strip()
