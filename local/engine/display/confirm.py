"""Asks before an `up` or `destroy` replaces or deletes existing resources: yes, no or details."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TextIO

from local.engine.display.text import Line, Output, Part, Tone, coloured, line, plain
from local.engine.display.tree import Row, Stage, Tree
from local.engine.display.words import word_of
from local.engine.events import RETAINED, Event
from local.engine.steps.planner import Op
from local.plugins.urn import is_provider

LISTED: Final = 20
"""How many resources the question names; `details` shows all."""

_DELETING: Final = (Op.DELETE, Op.DELETE_REPLACED)
_REPLACING: Final = (Op.REPLACE, Op.CREATE_REPLACEMENT, Op.IMPORT_REPLACEMENT, Op.READ_REPLACEMENT)


class DeclinedError(Exception):
    """The answer was no."""

    def __init__(self) -> None:
        super().__init__("declined: nothing was changed")


def agreed(events: Iterable[Event], out: TextIO, *, colour: bool, details: Callable[[], None]) -> bool:
    """Whether a run may do what its preview found; it asks if resources would be lost.

    `details` shows the whole preview. The end of the input and Ctrl-C count as no: nothing has started.
    """
    tree = Tree()
    for event in events:
        tree.take(event, 0)
    lost = [row for row in tree.rows.values() if _is_lost(row)]
    if not lost:
        return True
    render = coloured if colour else plain
    operation = "update" if tree.operation == "preview" else tree.operation
    shown = Output(out)
    shown.write("".join(f"{render(parts)}\n" for parts in _lines(lost)))
    while True:
        shown.write(f"Do you want to perform this {operation}? [yes/no/details] ")
        try:
            text = sys.stdin.readline()
        except KeyboardInterrupt:
            text = ""
        if not text:
            shown.write("\n")
            return False
        answer = text.strip().lower()
        if answer in ("no", "n"):
            return False
        if answer in ("yes", "y"):
            return True
        if answer in ("details", "d"):
            details()


def asks(out: TextIO, *, yes: bool, json: bool) -> bool:
    """Whether a question can be answered: both sides are a terminal, and `--yes` is not given."""
    # A process may have no standard input at all.
    return not yes and not json and sys.stdin is not None and sys.stdin.isatty() and out.isatty()


def _is_lost(row: Row) -> bool:
    """Whether a real object would be deleted or replaced. What the refresh found gone is not counted."""
    step = row.step
    if step is None or row.stage is not Stage.DONE or row.refreshing or step.op not in (*_DELETING, *_REPLACING):
        return False
    real = step.resource.custom and not is_provider(step.type) and not step.simulated
    return real and step.note != RETAINED


def _lines(lost: Sequence[Row]) -> list[Line]:
    deleted = [row for row in lost if row.step is not None and row.step.op in _DELETING]
    counts = {"replaces": len(lost) - len(deleted), "deletes": len(deleted)}
    (verb, count), *more = [each for each in counts.items() if each[1]]
    losses = f"{verb} {count} existing resource{'' if count == 1 else 's'}" + "".join(f" and {v} {c}" for v, c in more)
    lines = [line(f"This {losses}:", Tone.TITLE)]
    for row in lost[:LISTED]:
        word = word_of(Op.DELETE if row in deleted else Op.REPLACE)
        lines.append((Part(f" {word.symbol:<2}", word.tone), Part(f" {row.type} {row.name}")))
    return [*lines, line(f"    … and {len(lost) - LISTED} more")] if len(lost) > LISTED else lines
