"""What precedes an `up` or `destroy`: a preview that must succeed and, on a terminal, a question."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TextIO

from local.engine.display.choice import Display, choice_of, has_colour, open_details
from local.engine.display.confirm import DeclinedError, agreed, asks
from local.engine.display.words import PREVIEWED_DESTROY
from local.engine.events import Event, Prelude
from local.engine.operations import Options, destroy, preview
from local.engine.stack.lock import check_free
from local.engine.stack.session import Request


def may_begin(parsed: argparse.Namespace, request: Request, options: Options, display: Display, out: TextIO) -> bool:
    """Whether the operation may start; False if its preview failed, which is then shown. Raises DeclinedError, and
    LockedError if another run is changing the stack.

    A successful preview is not shown: it ensures that invalid input leaves nothing half made, and finds what would be
    lost. Before a destroy it runs only if there is a terminal to ask on.
    """
    if parsed.command != "preview" and not getattr(parsed, "preview_only", False):
        check_free(request.stack_dir)  # before a preview and a question that would be in vain
    asking = is_asked(parsed, out)
    if parsed.command == "up" and not parsed.skip_preview:
        look = preview
    elif parsed.command == "destroy" and asking and not parsed.preview_only:
        look, options = destroy, replace(options, preview_only=True)
    else:
        return True
    events: list[Event] = []

    def keep(event: Event) -> None:
        events.append(event)
        display.checking(event)

    if not look(request, options, keep):
        for event in events:
            display(event)
        return False
    choice = choice_of(parsed, request.project_dir)

    def show_details() -> None:
        details = open_details(choice, out)
        for event in events:
            if isinstance(event, Prelude) and event.operation == "destroy":
                details(replace(event, operation=PREVIEWED_DESTROY))
            else:
                details(event)
        details.close()

    if asking and not agreed(events, out, colour=has_colour(choice, out), details=show_details):
        raise DeclinedError
    return True


def is_asked(parsed: argparse.Namespace, out: TextIO) -> bool:
    """Whether to ask before a resource is lost."""
    return asks(out, yes=parsed.yes, json=parsed.json)
