"""`python -m local.engine stack ...`: shows or replaces the state of a stack."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from local.engine.stack.session import Request, open_session
from local.engine.stack.stacks import stacks_in
from local.engine.stack.state import StateError, Store
from local.engine.stack.state_import import import_state
from local.plugins.json_values import mask
from local.plugins.urn import STACK_TYPE
from local.plugins.values import without_secrets

OK, FAILED = 0, 1


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add `stack` and its views to the command line; `common` holds the options that select the stack."""
    command = commands.add_parser("stack", help="show or replace the state")
    views = command.add_subparsers(dest="view", required=True, metavar="VIEW", title="views")
    export = views.add_parser("export", parents=[common], help="print the state as JSON, secrets encrypted")
    export.add_argument("--file", metavar="FILE", help="write to this file (default: standard output)")
    export.add_argument("--show-secrets", action="store_true", help="show secrets in plain text")
    take = views.add_parser("import", parents=[common], help="replace the stack's state with an exported one")
    take.add_argument("--file", metavar="FILE", help="read from this file (default: standard input)")
    take.add_argument("--force", "-f", action="store_true", help="import despite errors in the state")
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--state", metavar="DIR", help="state folder (default: $CLOUD_CONTROLLER_STATE, .state)")
    listing = views.add_parser("ls", parents=[where], help="list the stacks of a state folder")
    listing.add_argument("--json", "-j", action="store_true")
    listing.set_defaults(cwd=".", stack="", config_file=None)
    output = views.add_parser("output", parents=[common], help="show the stack's outputs")
    output.add_argument("name", nargs="?", help="show only this output")
    output.add_argument("--json", action="store_true")
    output.add_argument("--show-secrets", action="store_true")


def run(parsed: argparse.Namespace, request: Request, out: TextIO) -> int:
    """Run one view; returns the exit code. Raises ProjectError, SecretsError, StateError."""
    return _VIEWS[parsed.view](parsed, request, out)


def _export(parsed: argparse.Namespace, request: Request, out: TextIO) -> int:
    store = open_session(request, writable=False).store
    _warn_of_simulated(store)
    document = store.export(show_secrets=parsed.show_secrets)
    text = json.dumps(document, indent=4) + "\n"
    if parsed.file is None:
        out.write(text)
    else:
        with os.fdopen(os.open(parsed.file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            if parsed.show_secrets and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                # An existing file may have been readable for everybody.
                os.fchmod(file.fileno(), 0o600)
            file.write(text)
    return OK


def _import(parsed: argparse.Namespace, request: Request, out: TextIO) -> int:
    name = parsed.file or "standard input"
    text = Path(parsed.file).read_text() if parsed.file else sys.stdin.read()
    try:
        document = json.loads(text)
    except ValueError as error:
        raise StateError(f"{name} is not JSON: {error}") from error
    imported = import_state(request, document, force=parsed.force)
    for warning in imported.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if imported.backup is not None:
        print(f"the previous state is in {imported.backup}", file=sys.stderr)
    out.write(f"Import complete: {imported.resources} resources.\n")
    return OK


def _output(parsed: argparse.Namespace, request: Request, out: TextIO) -> int:
    store = open_session(request, writable=False).store
    _warn_of_simulated(store)
    stacks = [r for r in store.snapshot.live().values() if r.type == STACK_TYPE]
    outputs = stacks[0].outputs if stacks else {}
    shown = without_secrets(outputs) if parsed.show_secrets else mask(outputs)
    if parsed.name is not None:
        if parsed.name not in shown:
            print(f"error: there is no output {parsed.name!r} (outputs: {', '.join(shown) or 'none'})", file=sys.stderr)
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


def _warn_of_simulated(store: Store) -> None:
    if simulated := sum(resource.simulated for resource in store.snapshot.all()):
        print(f"warning: simulated resources, with nothing real behind them: {simulated}", file=sys.stderr)


def _list(parsed: argparse.Namespace, request: Request, out: TextIO) -> int:
    found = stacks_in(request.state_dir)
    if parsed.json:
        json.dump([stack.to_json() for stack in found], out, indent=2)
        out.write("\n")
        return OK
    rows = [("NAME", "LAST UPDATE", "RESOURCE COUNT")]
    rows += [(s.name, "in progress" if s.in_progress else s.last_update or "n/a", str(s.resources)) for s in found]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, updated, count in rows:
        out.write(f"{name:<{widths[0]}}  {updated:<{widths[1]}}  {count}\n")
    return OK


_VIEWS: Mapping[str, Callable[[argparse.Namespace, Request, TextIO], int]] = {
    "export": _export,
    "import": _import,
    "ls": _list,
    "output": _output,
}
