"""The parts of a site's status as text that are alike for every cloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]


def render_site(api: str, status: Json, outputs: Json, *sections: Sequence[str]) -> str:
    """The status of a site, its cloud's sections inside, and the stack's outputs."""
    if "endpoint" not in status:
        return f"There is no site in {status['state_folder']}."
    lines = [f"{api}   {status['endpoint']}  {'answers' if status['up'] else 'does not answer'}"]
    lines += [line for each in sections for line in each]
    lines += section("processes", [[each["name"], f"pid {each['pid']}", each["log"]] for each in status["processes"]])
    lines += section("stack outputs", [[name, str(value)] for name, value in outputs.items()])
    return "\n".join(lines)


def section(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """A title and its rows, each column as wide as its widest cell; nothing without rows."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return ["", title, *(f"  {line.rstrip()}" for line in aligned)] if rows else []


def state(thing: Json) -> str:
    """An object's state, with its reason if it has one."""
    return f"{thing['state']}: {thing['state_reason']}" if thing["state_reason"] else str(thing["state"])
