"""The command line of the engine, in the CLI's terms, and the options that exclude each other."""

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
    "preview": "show what `up` would change; nothing is changed",
    "up": "create, update and delete resources as the program declares",
    "refresh": "update the state from the real resources",
    "destroy": "delete every resource in the state",
}
_EPILOG: Final = """\
A URN may contain `*` (any text without a colon) and `**` (any text); quote it: a shell expands `$` and `*`.

exit codes:
  0  success
  1  failure: a step, a policy, a preview, or a pending operation that could not be resolved
  2  invalid arguments: nothing was started
  7  there are changes and --expect-no-changes was given
  8  interrupted by Ctrl-C: the running steps are pending operations, which the next run resolves"""


def parse(arguments: Sequence[str] | None, also: Sequence[str] = ()) -> argparse.Namespace:
    """Parse the call; if it is invalid, end the process with code 2 and one line on standard error.

    `also`: options that the caller knows, for suggestions.
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
        help="remove the lock of a run that was killed",
        description="Remove the lock of a run that was killed. To stop a running one, press Ctrl-C where it runs.",
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
    """The resources that the run works on; None: all."""
    patterns = (*getattr(parsed, "target", ()), *getattr(parsed, "target_replace", ()))
    return Targets(patterns, dependents=parsed.target_dependents) if patterns else None


def replaces_of(parsed: argparse.Namespace) -> Targets | None:
    """The resources to replace even if they are unchanged; None: none."""
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
    what = command.add_argument_group("selection")
    _many(what, "--target", "-t", metavar="URN", help="work on this resource only; may be repeated")
    what.add_argument("--target-dependents", action="store_true", help="also work on what depends on a target")
    if runs_program:
        _many(what, "--replace", metavar="URN", help="replace this resource; may be repeated")
        _many(what, "--target-replace", metavar="URN", help="short for --target URN --replace URN")
    if name == "destroy":
        what.add_argument(
            "--exclude-protected", action="store_true", help="keep protected resources and what they need"
        )
    how = command.add_argument_group("execution")
    if name != "refresh":
        how.add_argument("--refresh", "-r", action="store_true", help="update the state from the real resources first")
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
            "--continue-on-error", action="store_true", help="after a failure, continue with what does not depend on it"
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
        how.add_argument("--preview-only", action="store_true", help="only show the changes; change nothing")
    if name == "refresh":
        how.add_argument("--clear-pending-creates", action="store_true", help="forget the creates of a killed run")
    if name == "preview":
        how.add_argument("--placeholder-secrets", action="store_true", help="needs no passphrase")
    if name != "destroy":
        how.add_argument("--expect-no-changes", action="store_true", help="fail if anything changes")
    unattended = "do not ask on a terminal before a resource is replaced or deleted"
    yes = unattended if name in ("up", "destroy") else "no effect; for compatibility with the CLI"
    how.add_argument("--yes", "-y", action="store_true", help=yes)
    if runs_program:
        policies = command.add_argument_group("policies")
        _many(policies, "--policy-pack", metavar="DIR", help="run this policy pack; may be repeated")
        _many(policies, "--policy-pack-config", metavar="FILE", help="once per --policy-pack, or never")
    shown: Any = command.add_argument_group("output")
    add_choices(shown)
    return command


def _many(group: Any, *names: str, **more: Any) -> None:
    group.add_argument(*names, action="append", default=[], **more)


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _contradiction(parsed: argparse.Namespace) -> str:
    """The conflict between options of a call; "" if there is none."""
    if parsed.target_dependents and targets_of(parsed) is None:
        return "--target-dependents needs a --target"
    if getattr(parsed, "exclude_protected", False) and parsed.target:
        return "--target and --exclude-protected cannot be combined"
    if getattr(parsed, "clear_pending_creates", False) and parsed.preview_only:
        return "--clear-pending-creates changes the state and cannot be combined with --preview-only"
    return ""
