"""Lays out a tree of resources for a terminal: which rows fit, how wide each column is, what is cut. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from local.engine.display.summary import labelled
from local.engine.display.text import Line, Part, Tone, line, neutral
from local.engine.display.tree import Row, Stage, Tree
from local.engine.display.values import details, diff_keys, plan_of
from local.engine.display.words import COUNTED, PREVIEWED_DESTROY, note_of, outcome, title_of, word_of
from local.engine.events import Diagnostic
from local.engine.steps.planner import Op
from local.plugins.urn import STACK_TYPE

INDENT: Final = 8
"""The indent of the lines under a row."""
PROBLEMS: Final = 2
"""How many of a row's problems are shown during the run."""
NARROWEST: Final = 8
"""No column is narrower than this."""
_SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@dataclass(frozen=True, slots=True)
class Screen:
    """The size in columns and lines, and the number of columns that a text takes."""

    columns: int
    lines: int
    width: Callable[[str], int] = len

    def fit(self, text: str, columns: int) -> str:
        """The text, cut with an ellipsis if it is wider than that."""
        if self.width(text) <= columns:
            return text
        kept = text[: max(columns - 1, 0)]
        while kept and self.width(kept) > columns - 1:
            kept = kept[:-1]
        return f"{kept}…" if columns > 0 else ""

    def cut(self, parts: Line) -> Line:
        """The line, made safe to show and cut to the screen's width."""
        left = self.columns
        kept: list[Part] = []
        for part in parts:
            text = self.fit(neutral(part.text), left)
            kept.append(Part(text, part.tone))
            left -= self.width(text)
            if left <= 0:
                break
        return tuple(kept)


def running(tree: Tree, screen: Screen, now: float, *, began: float, sames: bool = False) -> list[Line]:
    """The frame during a run: failures, running steps and the latest changes, as far as there is room.

    `now` and `began`, the run's start, are of the tree's clock.
    """
    footer = [_first_line(problem) for problem in tree.unplaced[-1:]] + [_footer(tree, now - began)]
    footer = [screen.cut(parts) for parts in footer][-max(screen.lines - 1, 1) :]
    # The titles, the line that counts the rest, the footer, and one line for the cursor.
    room = screen.lines - 3 - len(footer)
    rows = [row for row in tree.rows.values() if sames or _matters(row)]
    if room < 1 or not rows:
        return footer
    chosen = _choose(tree, rows, room)
    busy = {above.urn for row in tree.running() for above in tree.ancestors(row)}
    lines: list[Line] = []
    for row, text in _table(tree, screen, chosen, lambda row: _doing(row, now, row.urn in busy), _message):
        lines.append(text)
        if row is not None:
            lines += [screen.cut(parts) for parts in _under(row)]
    left_out = sum(row.urn not in chosen for row in rows)
    more = [screen.cut(line(f"    … and {left_out} more", Tone.FAINT))] if left_out else []
    return [*lines, *more, *footer]


def ended(tree: Tree, screen: Screen, *, diff: bool = False, sames: bool = False) -> list[Line]:
    """The tree of the whole run, each resource with its details; it may be taller than the screen."""
    shown = {row.urn for row in tree.rows.values() if sames or _matters(row) or _plans(row)}
    shown |= {above.urn for urn in list(shown) for above in tree.ancestors(tree.rows[urn])}
    lines: list[Line] = []
    for row, text in _table(tree, screen, shown, _done, _diagnostic_counts):
        lines.append(text)
        if row is not None and row.step is not None and row.stage is Stage.DONE:
            under = details(row.step, planning=row.planning, refreshing=row.refreshing, diff=diff)
            lines += [(Part(" " * INDENT), *parts) for parts in under]
    return lines


def checking(tree: Tree, screen: Screen, now: float, *, began: float) -> list[Line]:
    """The single line during the checking preview before an update."""
    spinner = _SPINNER[int(now * 10) % len(_SPINNER)]
    title = title_of(PREVIEWED_DESTROY if tree.operation == "destroy" else "preview")
    count = tree.counts().total()
    counted = f"{count} resource{'' if count == 1 else 's'}"
    return [screen.cut(line(f"{spinner} {title} ({tree.stack}): {counted}, {_time(now - began)}"))]


def _matters(row: Row) -> bool:
    return not row.is_same or bool(row.problems) or row.stage is Stage.RUNNING or row.type == STACK_TYPE


def _plans(row: Row) -> bool:
    return row.step is not None and bool(plan_of(row.step, refreshing=row.refreshing))


_URGENCY: Final = {Stage.FAILED: 0, Stage.RUNNING: 1, Stage.DONE: 2, Stage.UNTOUCHED: 2}


def _choose(tree: Tree, rows: Sequence[Row], room: int) -> set[str]:
    """As many rows as fit, most important first, each with its parents where these fit, too."""
    chosen: set[str] = set()
    for row in sorted(rows, key=lambda row: (_URGENCY[row.stage], -row.changed)):
        if room <= 0:
            break
        for wanted in ([row, *tree.ancestors(row)], [row]):
            added = [r for r in wanted if r.urn not in chosen]
            cost = sum(1 + len(_under(r)) for r in added)
            if cost <= room:
                chosen |= {r.urn for r in added}
                room -= cost
                break
    return chosen


def _under(row: Row) -> list[Line]:
    """The lines under a row during the run: the first lines of its last problems."""
    return [(Part(" " * INDENT), *_first_line(problem)) for problem in row.problems[-PROBLEMS:]]


def _first_line(problem: Diagnostic) -> Line:
    return labelled(problem.severity, (problem.message.splitlines() or [""])[0])


def _doing(row: Row, now: float, busy: bool) -> str:
    word = word_of(row.step.op) if row.step is not None else word_of(Op.SAME)
    if row.stage is Stage.RUNNING:
        return f"{word.doing} ({_time(now - row.began)})"
    if row.stage is not Stage.FAILED and (busy or row.type == STACK_TYPE):
        return "running" if row.planning or not word.doing else word.doing
    if row.stage is Stage.DONE and row.planning:
        return word.would
    return {Stage.FAILED: "failed", Stage.DONE: word.did}.get(row.stage, "")


def _done(row: Row) -> str:
    if row.stage is Stage.DONE and row.step is not None:
        return outcome(row.step, row.seconds, planning=row.planning, refreshing=row.refreshing)
    return {Stage.FAILED: "failed", Stage.RUNNING: "not finished"}.get(row.stage, "")


def _message(row: Row) -> str:
    return (row.message.splitlines() or [""])[0]


def _diagnostic_counts(row: Row) -> str:
    counts = {kind: sum(p.severity == kind for p in row.problems) for kind in ("error", "warning")}
    counts["message"] = row.messages
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts.items() if count)


_TITLES: Final = ("Type", "Name", "Status", "Info")


def _table(
    tree: Tree, screen: Screen, chosen: set[str], status: Callable[[Row], str], info: Callable[[Row], str]
) -> list[tuple[Row | None, Line]]:
    """The chosen rows as lines, parents before their children, after the titles (which belong to no row)."""
    ordered = tree.ordered(chosen)
    cells = []
    for row, branch in ordered:
        about = [diff_keys(row.step), note_of(row.step, refreshing=row.refreshing)] if row.step is not None else []
        last = " ".join(text for text in (*about, info(row)) if text)
        cells.append([neutral(text) for text in (f"{branch}{row.type}", row.name, status(row), last)])
    widths = _widths(screen, [_TITLES, *cells])
    lines: list[tuple[Row | None, Line]] = [(None, _line(screen, _TITLES, widths, "", Tone.TITLE, Tone.TITLE))]
    for (row, _), texts in zip(ordered, cells, strict=True):
        word = word_of(row.step.op) if row.step is not None else word_of(Op.SAME)
        tone = Tone.ERROR if row.stage is Stage.FAILED else word.tone
        lines.append((row, _line(screen, texts, widths, word.symbol, tone, Tone.PLAIN)))
    return lines


def _line(screen: Screen, texts: Sequence[str], widths: Sequence[int], symbol: str, tone: Tone, other: Tone) -> Line:
    fitted = [_fit_type(screen, texts[0], widths[0])]
    fitted += [screen.fit(text, width) for text, width in zip(texts[1:], widths[1:], strict=True)]
    filled = [text + " " * (width - screen.width(text) + 2) for text, width in zip(fitted, widths, strict=True)]
    kind, name, status, info = filled
    return screen.cut(
        (Part(f" {symbol:<3}", tone), Part(kind + name, other), Part(status, tone), Part(info.rstrip(), other))
    )


def _fit_type(screen: Screen, text: str, columns: int) -> str:
    """A type after its branches; a long one loses its beginning, because its end is what identifies it."""
    branches = text[: len(text) - len(text.lstrip("│├└─ "))]
    if screen.width(text) <= columns or screen.width(branches) >= columns:
        return screen.fit(text, columns)
    # Cut from the front.
    return branches + screen.fit(text[len(branches) :][::-1], columns - screen.width(branches))[::-1]


def _widths(screen: Screen, rows: Sequence[Sequence[str]]) -> list[int]:
    """The column widths: that of the widest text; if there is no room, the widest columns shrink first."""
    widths = [max(screen.width(row[column]) for row in rows) for column in range(4)]
    # The symbol's column and the gaps between the others.
    excess = sum(widths) + 4 + 6 - screen.columns
    # The status is short and most important; then the name.
    for columns in ((3, 0), (3, 0, 1)):
        while excess > 0:
            widest = max(columns, key=lambda column: widths[column])
            if widths[widest] <= (NARROWEST if len(columns) == 3 else 3 * NARROWEST):
                break
            widths[widest] -= 1
            excess -= 1
    return widths


def _footer(tree: Tree, seconds: float) -> Line:
    counts = tree.counts()
    done = [f"{counts[op]} {word_of(op).did}" for op in COUNTED if counts.get(op)]
    if counts.get("same"):
        done.append(f"{counts['same']} unchanged")
    if busy := len(tree.running()):
        done.insert(0, f"{busy} running")
    return line(f"Resources: {', '.join(done) or 'none yet'}; {_time(seconds)}", Tone.FAINT)


def _time(seconds: float) -> str:
    """Whole seconds, from one minute on with minutes."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
