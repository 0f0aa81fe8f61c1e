"""`python -m local.engine stack ...`: looks at the state of a stack."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from local.engine.resource import mask
from local.engine.session import Request, open_session
from local.engine.urn import STACK_TYPE
from local.engine.values import without_secrets

OK, FAILED = 0, 1


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add `stack` and its views to the command line; `common` holds the options that say which stack."""
    views = commands.add_parser("stack", help="look at the state").add_subparsers(dest="view", required=True)
    views.add_parser("export", parents=[common], help="the state as JSON, secrets encrypted")
    output = views.add_parser("output", parents=[common], help="the stack's outputs")
    output.add_argument("name", nargs="?", help="only this one")
    output.add_argument("--json", action="store_true")
    output.add_argument("--show-secrets", action="store_true")


def run(parsed: argparse.Namespace, request: Request, out: TextIO) -> int:
    """Run one view; returns the exit code. Raises ProjectError, SecretsError, StateError."""
    return _VIEWS[parsed.view](parsed, request, out)


def _export(parsed: argparse.Namespace, request: Request, out: TextIO) -> int:
    del parsed
    json.dump(open_session(request, writable=False).store.export(), out, indent=4)
    out.write("\n")
    return OK


def _output(parsed: argparse.Namespace, request: Request, out: TextIO) -> int:
    session = open_session(request, writable=False)
    stacks = [r for r in session.store.snapshot.live().values() if r.type == STACK_TYPE]
    outputs = stacks[0].outputs if stacks else {}
    shown = without_secrets(outputs) if parsed.show_secrets else mask(outputs)
    if parsed.name is not None:
        if parsed.name not in shown:
            print(f"error: no output {parsed.name!r}; there are: {', '.join(shown) or 'none'}", file=sys.stderr)
            return FAILED
        value = shown[parsed.name]
        text = json.dumps(value) if parsed.json or not isinstance(value, str) else value
        out.write(text + "\n")
    elif parsed.json:
        json.dump(shown, out, indent=2)
        out.write("\n")
    else:
        for name, value in shown.items():
            out.write(f"{name}: {value if isinstance(value, str) else json.dumps(value)}\n")
    return OK


_VIEWS: Mapping[str, Callable[[argparse.Namespace, Request, TextIO], int]] = {
    "export": _export,
    "output": _output,
}
