"""Chooses a run's display: a live tree on a terminal, lines elsewhere, engine events for programs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TextIO

from local.engine.display.ci import PlainLog, log_of
from local.engine.display.lines import Lines, Wanted
from local.engine.display.text import Output
from local.engine.events import Event
from local.engine.events_json import JsonLines


class Display(Protocol):
    """Shows a run. Safe from several threads."""

    def __call__(self, event: Event) -> None:
        """Show an event of the run."""
        ...

    def checking(self, event: Event) -> None:
        """Handle an event of the checking preview before an `up`. If that fails, all its events come again."""
        ...

    def close(self, failure: str = "") -> None:
        """The run is over or was interrupted: by `failure`, if that has not been reported yet."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """The display options of the command line. `colour`: auto, always or never. `project`: the project's folder."""

    project: Path
    json: bool = False
    colour: str = "auto"
    wanted: Wanted = field(default_factory=Wanted)


def add_choices(command: argparse._ActionsContainer) -> None:
    """Add the display options to a command line; their names are the CLI's."""
    command.add_argument("--json", "-j", action="store_true", help="print engine events, one JSON object per line")
    command.add_argument("--diff", action="store_true", help="also show the properties of created resources")
    command.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="default: on a terminal")
    command.add_argument("--show-sames", action="store_true", help="also show unchanged resources")
    command.add_argument("--suppress-outputs", action="store_true", help="do not show the stack's outputs")
    command.add_argument("--suppress-progress", action="store_true", help="show only completed steps")


def choice_of(parsed: argparse.Namespace, project: Path) -> Choice:
    """The choice from the parsed options."""
    wanted = Wanted(
        diff=parsed.diff,
        sames=parsed.show_sames,
        outputs=not parsed.suppress_outputs,
        progress=not parsed.suppress_progress,
    )
    return Choice(project, json=parsed.json, colour=parsed.color, wanted=wanted)


def open_display(choice: Choice, stream: TextIO, environment: Mapping[str, str] = os.environ) -> Display:
    """The display for a stream."""
    if choice.json:
        return JsonLines(Output(stream))
    terminal = _is_drawn_on(stream, environment)
    colour = has_colour(choice, stream, environment)
    in_ci = environment.get("GITHUB_ACTIONS") == "true" or bool(environment.get("GITLAB_CI"))
    if terminal and not in_ci and _speaks_unicode(stream):
        # Imported on use: only a terminal needs it.
        from local.engine.display.live import LiveTree

        return LiveTree(stream, choice.wanted, colour=colour)
    return Lines(Output(stream), log_of(environment, colour=colour, project=choice.project), choice.wanted)


def open_details(choice: Choice, stream: TextIO, environment: Mapping[str, str] = os.environ) -> Display:
    """A display of every difference, as lines: for the answer `details` to the question."""
    log = PlainLog(colour=has_colour(choice, stream, environment))
    return Lines(Output(stream), log, replace(choice.wanted, diff=True, progress=False))


def has_colour(choice: Choice, stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether output to the stream is coloured."""
    # https://no-color.org: set and not empty.
    wished = _is_drawn_on(stream, environment) and not environment.get("NO_COLOR")
    return choice.colour == "always" or (choice.colour == "auto" and wished)


def _is_drawn_on(stream: TextIO, environment: Mapping[str, str]) -> bool:
    return stream.isatty() and environment.get("TERM", "") not in ("", "dumb")


def _speaks_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"
