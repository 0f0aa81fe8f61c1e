"""A report as plain text for a terminal or a log. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from cloud_stacks.report.page import Block, Code, Items, Parts, Sentence, Strong, Table, Title
from cloud_stacks.report.words import safe, without_command


def render(blocks: Iterable[Block]) -> str:
    """Blocks as lines."""
    return "\n".join("".join(f"{without_command(line)}\n" for line in _lines(block)) for block in blocks)


def _lines(block: Block) -> list[str]:
    match block:
        case Title():
            title = _parts(block.parts)
            return [title, ("=" if block.level == 1 else "-") * len(title)]
        case Sentence():
            return [_parts(block.parts)]
        case Table():
            rows = [block.head, *(tuple(map(_parts, row)) for row in block.rows)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            return ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        case Items():
            lines = [f"{block.title}:"]
            for item in block.items:
                lines.append(f"  {_parts(item.parts)}")
                lines += [f"      {_parts(parts)}" for parts in item.under]
                for line in item.lines:
                    values = [safe(text) for text in (line.before, line.after) if text]
                    lines.append(f"      {line.sign} {safe(line.path)}: {' => '.join(values)}")
            return lines


def _parts(parts: Parts) -> str:
    return "".join(safe(part.text) if isinstance(part, Code) else _own(part) for part in parts)


def _own(part: str | Strong) -> str:
    return part.text if isinstance(part, Strong) else part
