"""The markup of CI systems' logs: sections that fold, and errors linked to the source line."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote

from local.engine.display.text import Line, coloured, line, neutral, plain

Render = Callable[[Line], str]


class Log(Protocol):
    """A log's markup."""

    def text(self, parts: Line) -> str:
        """A line that the system interprets as nothing but text."""
        ...

    def begin(self, title: Line, name: str, *, open: bool) -> list[str]:
        """Lines that begin a section under a title. `name` identifies it. `open`: initially unfolded, if supported."""
        ...

    def end(self) -> list[str]:
        """Lines that end the section."""
        ...

    def error(self, title: str, message: str, position: str) -> list[str]:
        """Lines that mark an error in the source. `position`: `project:///PATH#LINE`, or empty."""
        ...


class PlainLog:
    """A file, a pipe, a terminal."""

    def __init__(self, *, colour: bool) -> None:
        self._render: Render = coloured if colour else plain

    def text(self, parts: Line) -> str:
        return self._render(parts)

    def begin(self, title: Line, name: str, *, open: bool) -> list[str]:
        del name, open
        return [self.text(title)]

    def end(self) -> list[str]:
        return []

    def error(self, title: str, message: str, position: str) -> list[str]:
        del title, message, position
        return []


class GitHubLog:
    """GitHub Actions: workflow commands are lines that begin with `::`, or contain the older form `##[`."""

    def __init__(self, *, colour: bool, project: Path, workspace: str) -> None:
        """Positions are relative to the folder `project`, annotations to the checkout's, `workspace`."""
        self._render: Render = coloured if colour else plain
        self._project = project
        self._workspace = workspace

    def text(self, parts: Line) -> str:
        shown = self._render(parts).replace("##[", "#\\#[")
        # Colours precede the text, and the runner ignores them when it looks for commands.
        return f"\\{shown}" if plain(parts).lstrip().startswith("::") else shown

    def begin(self, title: Line, name: str, *, open: bool) -> list[str]:
        del name, open
        return [f"::group::{_data(plain(title).strip())}"]

    def end(self) -> list[str]:
        return ["::endgroup::"]

    def error(self, title: str, message: str, position: str) -> list[str]:
        where = self._where(position)
        fields = ",".join(f"{key}={_property(value)}" for key, value in {**where, "title": title}.items())
        return [f"::error {fields}::{_data(message)}"]

    def _where(self, position: str) -> dict[str, str]:
        path, _, number = position.removeprefix("project:///").rpartition("#")
        source = self._project / unquote(path)
        if not path or not self._workspace or not source.is_relative_to(self._workspace):
            return {}
        return {"file": str(source.relative_to(self._workspace)), "line": number}


class GitLabLog:
    """GitLab CI: sections are marked by escape sequences."""

    def __init__(self, *, colour: bool, now: Callable[[], float] = time.time) -> None:
        self._render: Render = coloured if colour else plain
        self._now = now
        self._count = 0
        self._name = ""

    def text(self, parts: Line) -> str:
        # Neutral text has no carriage return and no escape sequence, and so no marker.
        return self._render(parts)

    def begin(self, title: Line, name: str, *, open: bool) -> list[str]:
        self._count += 1
        self._name = f"{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')}_{self._count}"
        folded = "" if open else "[collapsed=true]"
        return [f"\x1b[0Ksection_start:{int(self._now())}:{self._name}{folded}\r\x1b[0K{self.text(title)}"]

    def end(self) -> list[str]:
        return [f"\x1b[0Ksection_end:{int(self._now())}:{self._name}\r\x1b[0K"]

    def error(self, title: str, message: str, position: str) -> list[str]:
        del title, message, position
        return []


_DATA: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}


def _data(text: str) -> str:
    """A workflow command's text: one line, whatever it contains."""
    lines = [neutral(part) for part in text.splitlines()]
    return "".join(_DATA.get(c, c) for c in "\n".join(lines))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def log_of(environment: Mapping[str, str], *, colour: bool, project: Path) -> Log:
    """The log for the environment's CI system."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return GitHubLog(colour=colour, project=project, workspace=environment.get("GITHUB_WORKSPACE", ""))
    if environment.get("GITLAB_CI"):
        return GitLabLog(colour=colour)
    return PlainLog(colour=colour)


def heading(title: str) -> Line:
    """A section's title as a line."""
    return line(f"{title}:")
