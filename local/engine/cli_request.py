"""The part of the command line that selects the stack; `__main__` reads it first.

It imports little, so that deriving the passphrase's key, which takes long, starts before the other imports.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from local.engine.stack.session import Request, default_state_dir, open_ahead


def stack_name(text: str) -> str:
    """The name, if it is valid by the CLI's rule. Any other could lead out of the state folder."""
    if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,100}", text) or text in (".", ".."):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid stack name (up to 100 letters, digits, hyphens, underscores and periods)"
        )
    return text


def which_stack(*, required: bool = True, keeps: bool = False) -> argparse.ArgumentParser:
    """The options of every command; with `keeps` an omitted one keeps the value given before the action."""
    parser = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS if keeps else None)
    where = parser.add_argument_group("stack")
    where.add_argument("--stack", "-s", metavar="NAME", type=stack_name, required=required, help="the stack's name")
    where.add_argument("--state", metavar="DIR", help="state folder (default: $CLOUD_CONTROLLER_STATE, .state)")
    where.add_argument("--config-file", metavar="FILE", help="use this stack file instead of Pulumi.STACK.yaml")
    where.add_argument(
        "--cwd", "-C", metavar="DIR", default=argparse.SUPPRESS if keeps else ".", help="the project's folder"
    )
    return parser


def request_of(parsed: argparse.Namespace) -> Request:
    """The stack that the options select."""
    project_dir = Path(parsed.cwd).resolve()
    return Request(
        project_dir,
        parsed.stack,
        Path(parsed.state).resolve() if parsed.state else default_state_dir(project_dir).resolve(),
        Path(parsed.config_file).resolve() if parsed.config_file else None,
        getattr(parsed, "placeholder_secrets", False),
    )


def begin(arguments: Sequence[str] | None = None) -> None:
    """Start deriving the keys ahead. The command itself reports errors in the arguments."""
    options = which_stack(required=False)
    parser = argparse.ArgumentParser(parents=[options], add_help=False, exit_on_error=False, allow_abbrev=False)
    try:
        parsed, _ = parser.parse_known_args(arguments)
    except argparse.ArgumentError:
        return
    if parsed.stack:
        open_ahead(request_of(parsed))
