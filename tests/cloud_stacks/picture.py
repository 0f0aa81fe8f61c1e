"""The picture of a comment in docs/pull-requests.md, drawn by rich: nobody takes screenshots by hand."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.terminal_theme import TerminalTheme
from rich.theme import Theme

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "pull-request-comment.svg"
_INK, _GREY, _BLUE, _GREEN, _RED = (31, 35, 40), (110, 119, 129), (9, 105, 218), (26, 127, 55), (207, 34, 46)
_COLOURS = TerminalTheme((255, 255, 255), _INK, [_INK, _RED, _GREEN, _GREY, _BLUE, _BLUE, _BLUE, _GREY])
_BOLD = ("markdown.h2", "markdown.h3", "markdown.table.header")
_STYLES = Theme({"markdown.code": "blue", **dict.fromkeys(_BOLD, "bold")})
_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def drawn(comment: str) -> str:
    """The comment as an SVG, which loads nothing from elsewhere."""
    console = Console(record=True, width=110, file=io.StringIO(), force_terminal=True, theme=_STYLES)
    console.print(Markdown(comment, code_theme="friendly"))
    svg = console.export_svg(title="a comment on a pull request", theme=_COLOURS)
    return "\n".join(line.rstrip() for line in _FONTS.sub("", svg).splitlines()) + "\n"
