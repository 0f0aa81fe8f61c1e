"""What the command line of the engine understands, in the CLI's words, and what of it does not go together."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cloud_controller.cli.parser import Parser
from local.engine import cli_config, cli_stack
from local.engine.cli_request import which_stack
from local.engine.display.choice import add_choices
from local.engine.operations import default_parallel
from local.engine.steps.targets import Targets

_HELP: Final = {
    "preview": "tell what `up` would do; nothing is changed",
    "up": "bring the stack to what the program says",
    "refresh": "bring the state up to date with what is",
    "destroy": "delete everything that the state knows",
}
_EPILOG: Final = """\
A URN may hold `*` (any text without a colon) and `**` (any text); quote it, for `$` and `*` mean something to a shell.

exit codes:
  0  done
  1  failed: a step, a policy, a preview, an operation that is still undecided
  2  called wrongly: nothing was begun
  7  there are changes and --expect-no-changes was given
  8  ended at once by Ctrl-C: what was running is undecided, and the next run resolves it"""


def parse(arguments: Sequence[str] | None, also: Sequence[str] = ()) -> argparse.Namespace:
    """The call; ends the process with code 2, and one line on standard error, if it is a wrong one.

    `also`: options that the caller knows, for hints.
    """
    common = which_stack()
    parser = Parser(
        prog="python -m local.engine", description="Run a Pulumi program against its stack: the embedded engine."
    )
    commands: Any = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    operations = {name: _operation(commands, common, name) for name in _HELP}
    for operation in operations.values():
        operation.also = also
    commands.add_parser(
        "cancel",
        parents=[common],
        help="take away the lock that a dead run left",
        description="Take away the lock that a dead run left. One that is alive is ended with Ctrl-C where it runs.",
    )
    cli_stack.add_parser(commands, common)
    config = cli_config.add_parser(commands)
    parsed = parser.parse_args(arguments)
    if parsed.command == "config" and not parsed.stack:
        config.error("the following arguments are required: --stack/-s")
    if parsed.command in operations and (wrong := _contradiction(parsed)):
        operations[parsed.command].error(wrong)
    return parsed


def targets_of(parsed: argparse.Namespace) -> Targets | None:
    """What the run is about; None: everything."""
    patterns = (*getattr(parsed, "target", ()), *getattr(parsed, "target_replace", ()))
    return Targets(patterns, dependents=parsed.target_dependents) if patterns else None


def replaces_of(parsed: argparse.Namespace) -> Targets | None:
    """What is replaced whether or not it differs; None: nothing."""
    patterns = (*getattr(parsed, "replace", ()), *getattr(parsed, "target_replace", ()))
    return Targets(patterns) if patterns else None


def packs_of(parsed: argparse.Namespace) -> list[tuple[Path, Mapping[str, Any] | None]]:
    """The policy packs and their configurations. Raises ValueError, OSError."""
    packs = [Path(p).resolve() for p in getattr(parsed, "policy_pack", [])]
    files = [Path(p) for p in getattr(parsed, "policy_pack_config", [])]
    if files and len(files) != len(packs):
        raise ValueError(f"{len(files)} --policy-pack-config for {len(packs)} --policy-pack: the numbers must match")
    configs: list[Mapping[str, Any] | None]
    configs = [_pack_config(f) for f in files] if files else [None for _ in packs]
    return list(zip(packs, configs, strict=True))


def _pack_config(path: Path) -> dict[str, Any]:
    data = json.loads(path.read_text())
    if not isinstance(data, dict):
        raise ValueError(f"{path} must hold a JSON object")
    return data


def _operation(commands: Any, common: argparse.ArgumentParser, name: str) -> Parser:
    command: Parser = commands.add_parser(
        name,
        parents=[common],
        help=_HELP[name],
        description=f"{_HELP[name].capitalize()}.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    runs_program = name in ("preview", "up")
    what = command.add_argument_group("what it is about")
    _many(what, "--target", "-t", metavar="URN", help="only this resource; may be repeated")
    what.add_argument("--target-dependents", action="store_true", help="and whatever depends on a target")
    if runs_program:
        _many(what, "--replace", metavar="URN", help="replace this resource; may be repeated")
        _many(what, "--target-replace", metavar="URN", help="short for --target URN --replace URN")
    if name == "destroy":
        what.add_argument("--exclude-protected", action="store_true", help="leave what is protected, and what it needs")
    how = command.add_argument_group("how it goes about it")
    if name != "refresh":
        how.add_argument("--refresh", "-r", action="store_true", help="first bring the state up to date with what is")
    how.add_argument(
        "--parallel",
        "-p",
        type=_at_least_one,
        metavar="N",
        default=default_parallel(),
        help="work on at most N resources at once; 1: one after the other (default: %(default)s)",
    )
    if name in ("up", "destroy"):
        how.add_argument(
            "--continue-on-error", action="store_true", help="after a failure go on with what does not need it"
        )
    if name == "up":
        how.add_argument(
            "--skip-preview",
            "-f",
            action="store_true",
            help="skip the preview that checks the run first, and do not ask",
        )
    if name == "destroy":
        how.add_argument(
            "--run-program", dest="with_program", action="store_true", help="run the program for its delete hooks"
        )
    if name in ("refresh", "destroy"):
        how.add_argument("--preview-only", action="store_true", help="only tell; nothing is changed")
    if name == "refresh":
        how.add_argument("--clear-pending-creates", action="store_true", help="forget what a killed run was creating")
    if name == "preview":
        how.add_argument("--placeholder-secrets", action="store_true", help="without the passphrase")
    if name != "destroy":
        how.add_argument("--expect-no-changes", action="store_true", help="fail if anything changes")
    asked = "do not ask on a terminal before something is replaced or deleted"
    told = asked if name in ("up", "destroy") else "accepted for the CLI's sake: nothing is asked"
    how.add_argument("--yes", "-y", action="store_true", help=told)
    if runs_program:
        policies = command.add_argument_group("policies")
        _many(policies, "--policy-pack", metavar="DIR", help="may be repeated")
        _many(policies, "--policy-pack-config", metavar="FILE", help="as many as packs, or none")
    shown: Any = command.add_argument_group("what is shown")
    add_choices(shown)
    return command


def _many(group: Any, *names: str, **more: Any) -> None:
    group.add_argument(*names, action="append", default=[], **more)


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: a whole number from 1")
    return int(text)


def _contradiction(parsed: argparse.Namespace) -> str:
    """What does not go together in a call; "" if all does."""
    if parsed.target_dependents and targets_of(parsed) is None:
        return "--target-dependents needs a --target"
    if getattr(parsed, "exclude_protected", False) and parsed.target:
        return "--target and --exclude-protected do not go together"
    if getattr(parsed, "clear_pending_creates", False) and parsed.preview_only:
        return "--clear-pending-creates changes the state: it does not go with --preview-only"
    return ""
