"""The command line: `python -m local.engine preview|up|refresh|destroy|cancel|config|stack ... --stack NAME`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TextIO

from cloud_controller.registry import InvalidEntryPoint
from local.clouds import CLOUDS
from local.engine import cli_config, cli_stack
from local.engine.cli_arguments import packs_of, parse, replaces_of, targets_of
from local.engine.cli_confirm import is_asked, may_begin
from local.engine.cli_request import request_of
from local.engine.display.choice import Display, choice_of, open_display
from local.engine.display.confirm import DeclinedError
from local.engine.events import Event, Sink, Summary
from local.engine.operations import Options, destroy, preview, refresh, up
from local.engine.providers.dynamic import DynamicProvider
from local.engine.providers.registry import OTHERS, InstanceFactory
from local.engine.stack.lock import LockedError, cancel
from local.engine.stack.project import ProjectError
from local.engine.stack.resource import ResourceState
from local.engine.stack.secrets import SecretsError
from local.engine.stack.session import Request, Session
from local.engine.stack.state import StateError
from local.engine.steps.planner import Op
from local.plugins.dynamic import DynamicServer
from local.plugins.provider import Provider
from local.plugins.recorder import Recorder

OK, FAILED, USAGE, CHANGED, TERMINATED = 0, 1, 2, 7, 8
_OPERATIONS: Mapping[str, Callable[[Request, Options, Sink], bool]] = {
    "preview": preview,
    "up": up,
    "refresh": refresh,
    "destroy": destroy,
}
_SWITCHES: Final = (
    "refresh",
    "continue_on_error",
    "preview_only",
    "exclude_protected",
    "with_program",
    "clear_pending_creates",
)
"""The options that are called in `Options` as they are on the command line."""
_EXPECTED: Final = (InvalidEntryPoint, ProjectError, SecretsError, StateError, LockedError, ValueError)
"""What is wrong with what people gave, in words for them."""


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run one command; returns the exit code, as `--help` lists them."""
    stream = out or sys.stdout
    parsed = parse(arguments)
    request = request_of(parsed)
    display = open_display(choice_of(parsed, request.project_dir), stream) if parsed.command in _OPERATIONS else None
    failure = ""
    try:
        if display is None:
            if parsed.command == "cancel":
                return _cancel(request, stream)
            if parsed.command == "config":
                return cli_config.run(parsed, request, stream)
            return cli_stack.run(parsed, request, stream)
        options = _options(parsed)
        if not may_begin(parsed, request, options, display, stream):
            return FAILED
        ok, changed = _operate(parsed, request, options, display)
        if ok and changed and getattr(parsed, "expect_no_changes", False):
            planned = parsed.command == "preview" or getattr(parsed, "preview_only", False)
            failure = f"no changes were expected but changes {'were proposed' if planned else 'occurred'}"
            return CHANGED
        return OK if ok else FAILED
    except OSError as error:
        failure = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return FAILED
    except (*_EXPECTED, DeclinedError) as error:
        failure = str(error)
        return FAILED
    except KeyboardInterrupt:
        failure = "interrupted" if display is None else "interrupted; the next run continues from here"
        return TERMINATED
    finally:
        if display is not None:
            display.close(failure)
        elif failure:
            print(f"error: {failure}", file=sys.stderr)


def confirm(arguments: Sequence[str], out: TextIO | None = None) -> bool | None:
    """Ask what `main` would ask before this `up` or `destroy`, and change nothing.

    True: call `main` with `--yes`. False: the answer was no, or the preview failed, as was shown. None: there is nobody
    to ask, or no preview can be made now, so `main` sees to it.
    """
    stream = out or sys.stdout
    parsed = parse(arguments)
    if not is_asked(parsed, stream):
        return None
    request = request_of(parsed)
    display = open_display(choice_of(parsed, request.project_dir), stream)
    failure = ""
    try:
        return may_begin(parsed, request, _options(parsed), display, stream)
    except DeclinedError as error:
        failure = str(error)
        return False
    except (OSError, *_EXPECTED):
        return None
    finally:
        display.close(failure)


def _options(parsed: argparse.Namespace) -> Options:
    switches: dict[str, Any] = {name: getattr(parsed, name, False) for name in _SWITCHES}
    return Options(
        LocalProviders,
        packs_of(parsed),
        parallel=parsed.parallel,
        targets=targets_of(parsed),
        replaces=replaces_of(parsed),
        **switches,
    )


def _operate(parsed: argparse.Namespace, request: Request, options: Options, display: Display) -> tuple[bool, bool]:
    """Run an operation; whether all went well, and whether anything changed or, in a preview, would."""
    changes: Counter[Op] = Counter()

    def counting(event: Event) -> None:
        if isinstance(event, Summary):
            changes.update(event.changes)
        display(event)

    ok = _OPERATIONS[parsed.command](request, options, counting)
    return ok, any(count for op, count in changes.items() if op not in (Op.SAME, Op.READ, Op.DISCARD))


def _cancel(request: Request, out: TextIO) -> int:
    pid = cancel(request.stack_dir)
    if pid is None:
        out.write(f"no run holds the lock of stack {request.stack}: there is nothing to cancel\n")
    else:
        out.write(f"removed the lock of a killed run (process {pid}); the next run continues from there\n")
    return OK


class LocalProviders:
    """The packages that this engine runs: dynamic resources, Kubernetes, and those of the clouds on this machine.

    It records all others.
    """

    def __init__(self, session: Session, on_line: Callable[[str], None]) -> None:
        self._config = session.config.as_properties()
        self._server = DynamicServer(session.project.main, session.project.name, on_line)

    def factories(self) -> Mapping[str, InstanceFactory]:
        """By package."""
        clouds = {
            package: lambda resource, factory=factory: factory(resource.inputs)
            for cloud in CLOUDS.all()
            for package, factory in cloud.providers.items()
        }
        return {**clouds, "pulumi-python": self._dynamic, "kubernetes": _kubernetes, OTHERS: _recorded}

    def close(self) -> None:
        """End the dynamic provider's server."""
        self._server.close()

    def _dynamic(self, resource: ResourceState) -> Provider:
        return DynamicProvider(self._server, resource.inputs, resource.urn, str(resource.id))


def _recorded(resource: ResourceState) -> Provider:
    return Recorder(resource.inputs)


def _kubernetes(resource: ResourceState) -> Provider:
    # Imported on use: not every stack has Kubernetes objects.
    from local.plugins.kubernetes.provider import KubernetesProvider

    return KubernetesProvider(resource.inputs)
