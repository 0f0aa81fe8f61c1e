"""A report as a comment on a pull request, in the Markdown of GitHub and GitLab. Pure.

Text from outside stands in code spans and diff blocks only: there neither HTML, links, mentions nor references work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from cloud_stacks.comparison import Line, StackReport
from cloud_stacks.report.page import (
    FULL,
    SUMMARY,
    WITHOUT_LINES,
    Block,
    Code,
    Item,
    Items,
    Part,
    Parts,
    Sentence,
    Strong,
    Table,
    Title,
    page,
)
from cloud_stacks.report.words import number, safe

LIMIT: Final = 64_000
"""Characters of a comment; GitHub refuses longer ones from 65,536 on."""


def comment(title: str, reports: Sequence[StackReport], key: str, artifact: str = "", limit: int = LIMIT) -> str:
    """A comment below the limit. By the marker with `key` a later run finds it and changes it.

    `artifact`: the name of the file that has the rest, if something is left out.
    """
    marker = f"<!-- cloud-stacks:{re.sub(r'[^A-Za-z0-9_.]+', '-', key).strip('-')} -->\n"
    rest = f"\nThe whole report is in the artifact {code(artifact)}.\n" if artifact else "\nThe rest is left out.\n"
    for detail in (FULL, WITHOUT_LINES, SUMMARY):
        text = marker + render(page(title, reports, detail)) + (rest if detail != FULL else "")
        if len(text) <= limit:
            return text
    shown = [report for report in reports if not report.is_quiet]
    while shown:
        shown = shown[: len(shown) * 2 // 3]
        left = f"\nAnd {number(len(reports) - len(shown), 'more stack')}.\n"
        text = marker + render(page(title, shown, SUMMARY)) + left + rest
        if len(text) <= limit:
            return text
    return marker + render([Title((title,), 1)]) + rest


def render(blocks: Iterable[Block]) -> str:
    """Blocks as Markdown."""
    return "\n".join(map(_block, blocks))


def code(text: str) -> str:
    """A code span, which its text cannot end."""
    text = safe(text)
    ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    # A span that begins or ends with a backtick, or with spaces on both sides, needs a space that is taken off.
    space = " " if text[:1] in ("`", " ", "") or text[-1:] in ("`", " ") else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def _block(block: Block) -> str:
    match block:
        case Title():
            return f"{'#' * (block.level + 1)} {_parts(block.parts)}\n"
        case Sentence():
            return f"{_parts(block.parts)}\n"
        case Table():
            rows = [" | ".join(_parts(cell).replace("|", "\\|") for cell in row) for row in block.rows]
            head = [" | ".join(block.head), " | ".join("---" for _ in block.head)]
            return "".join(f"| {row} |\n" for row in [*head, *rows])
        case Items():
            items = "".join(map(_item, block.items))
            if block.folded:
                summary = f"{block.title} ({len(block.items)})"
                return f"<details><summary>{summary}</summary>\n\n{items}\n</details>\n"
            return f"**{block.title}**\n\n{items}"


def _item(item: Item) -> str:
    text = f"- {_parts(item.parts)}\n" + "".join(f"  - {_parts(parts)}\n" for parts in item.under)
    if not item.lines:
        return text
    lines = [line for each in item.lines for line in _difference(each)]
    ticks = "`" * max(3, max((len(run) for line in lines for run in re.findall("`+", line)), default=0) + 1)
    return text + "".join(f"  {line}\n" for line in (f"{ticks}diff", *lines, ticks))


def _difference(line: Line) -> list[str]:
    path = safe(line.path)
    if line.sign == "~":
        return [f"- {path}: {safe(line.before)}", f"+ {path}: {safe(line.after)}"]
    return [f"{line.sign} {path}: {safe(line.after if line.sign == '+' else line.before)}"]


def _parts(parts: Parts) -> str:
    return "".join(map(_part, parts))


def _part(part: Part) -> str:
    match part:
        case Code():
            return code(part.text)
        case Strong():
            return f"**{part.text}**"
        case str():
            return part
