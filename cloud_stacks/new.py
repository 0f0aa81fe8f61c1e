"""`cloud-stacks new DIR`: a repository with a program, a stack, policies, a test and a workflow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_TEMPLATE: Final = Path(__file__).parent / "template"
_NAME: Final = "NAME"
"""Stands for the project's name in the template."""
_HIDDEN: Final = {"github": ".github", "gitignore": ".gitignore"}
"""Names that packaging and tools would treat as their own."""


def make(folder: Path) -> list[str]:
    """Write the repository into an empty or new folder, after which the project is named; returns the files' names.

    Raises ValueError.
    """
    if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_.-]{0,99}", folder.name):
        raise ValueError(f"{folder.name!r} is not a valid project name (letters, digits, `-`, `_`, `.`)")
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty")
    made = []
    for source in sorted(_TEMPLATE.rglob("*")):
        if source.is_dir() or "__pycache__" in source.parts:
            continue
        first, *rest = source.relative_to(_TEMPLATE).parts
        name = Path(_HIDDEN.get(first, first), *rest)
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text().replace(_NAME, folder.name))
        made.append(str(name))
    return made
