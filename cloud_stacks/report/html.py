"""A report as a page of its own, without scripts and without anything to load. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from cloud_stacks.comparison import Line
from cloud_stacks.report.page import Block, Code, Item, Items, Part, Parts, Sentence, Strong, Table, Title
from cloud_stacks.report.words import safe

_STYLE: Final = """\
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1f2328 }
code, pre { font: 13px/1.4 ui-monospace, monospace; background: #f2f4f6; border-radius: 4px }
code { padding: .1em .3em; overflow-wrap: anywhere }
pre { padding: .6em; white-space: pre-wrap; overflow-wrap: anywhere; margin: .3em 0 }
table { border-collapse: collapse } th, td { border: 1px solid #d0d7de; padding: .3em .8em; text-align: left }
strong { color: #b3261e } del { color: #a40e26; text-decoration: none } ins { color: #116329; text-decoration: none }"""


def render(title: str, blocks: Iterable[Block]) -> str:
    """Blocks as an HTML document."""
    body = "\n".join(map(_block, blocks))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{_text(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _block(block: Block) -> str:
    match block:
        case Title():
            return f"<h{block.level}>{_parts(block.parts)}</h{block.level}>"
        case Sentence():
            return f"<p>{_parts(block.parts)}</p>"
        case Table():
            head = "".join(f"<th>{_text(each)}</th>" for each in block.head)
            rows = ["".join(f"<td>{_parts(cell)}</td>" for cell in row) for row in block.rows]
            return f"<table>\n<tr>{head}</tr>\n" + "".join(f"<tr>{row}</tr>\n" for row in rows) + "</table>"
        case Items():
            items = f"<ul>\n{''.join(map(_item, block.items))}</ul>"
            if block.folded:
                return f"<details><summary>{_text(block.title)} ({len(block.items)})</summary>\n{items}\n</details>"
            return f"<h3>{_text(block.title)}</h3>\n{items}"


def _item(item: Item) -> str:
    under = "".join(f"<li>{_parts(parts)}</li>" for parts in item.under)
    lines = "\n".join(part for line in item.lines for part in _difference(line))
    more = (f"<ul>{under}</ul>" if under else "") + (f"<pre>{lines}</pre>" if lines else "")
    return f"<li>{_parts(item.parts)}{more}</li>\n"


def _difference(line: Line) -> list[str]:
    removed = f"<del>- {_text(line.path)}: {_text(line.before)}</del>"
    added = f"<ins>+ {_text(line.path)}: {_text(line.after)}</ins>"
    return {"~": [removed, added], "-": [removed], "+": [added]}[line.sign]


def _parts(parts: Parts) -> str:
    return "".join(map(_part, parts))


def _part(part: Part) -> str:
    match part:
        case Code():
            return f"<code>{_text(part.text)}</code>"
        case Strong():
            return f"<strong>{_text(part.text)}</strong>"
        case str():
            return _text(part)


def _text(text: str) -> str:
    return escape(safe(text) if text.strip() else " ")
