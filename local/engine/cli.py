"""The command line: `python -m local.engine preview|up|refresh|destroy|stack ... --stack NAME`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from local.engine import cli_stack
from local.engine.display import Display, add_choices, choice_of, open_display
from local.engine.dynamic import DynamicProvider, DynamicServer
from local.engine.events import Event, Sink
from local.engine.lock import LockedError
from local.engine.operations import Options, destroy, load_policy_config, preview, refresh, up
from local.engine.project import ProjectError
from local.engine.provider import Provider
from local.engine.providers import ProviderFactory
from local.engine.resource import ResourceState
from local.engine.secrets import SecretsError
from local.engine.session import Request, Session, default_state_dir
from local.engine.state import StateError

OK, FAILED, USAGE = 0, 1, 2
_OPERATIONS: Mapping[str, Callable[[Request, Options, Sink], bool]] = {
    "preview": preview,
    "up": up,
    "refresh": refresh,
    "destroy": destroy,
}


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 failed, 2 called wrongly."""
    stream = out or sys.stdout
    parsed = _parser().parse_args(arguments)
    project_dir = Path(parsed.cwd).resolve()
    state_dir = Path(parsed.state).resolve() if parsed.state else default_state_dir(project_dir).resolve()
    request = Request(
        project_dir,
        parsed.stack,
        state_dir,
        Path(parsed.config_file).resolve() if parsed.config_file else None,
        getattr(parsed, "placeholder_secrets", False),
    )
    display = None if parsed.command == "stack" else open_display(choice_of(parsed, project_dir), stream)
    failure = ""
    try:
        if display is None:
            return cli_stack.run(parsed, request, stream)
        return OK if _run(parsed, request, display) else FAILED
    except (ProjectError, SecretsError, StateError, LockedError, OSError, ValueError) as error:
        failure = str(error)
        return FAILED
    except KeyboardInterrupt:
        failure = "interrupted; the next run goes on from here"
        return FAILED
    finally:
        if display is not None:
            display.close(failure)
        elif failure:
            print(f"error: {failure}", file=sys.stderr)


def _run(parsed: argparse.Namespace, request: Request, display: Display) -> bool:
    options = Options(
        LocalProviders, _packs(parsed), clear_pending_creates=getattr(parsed, "clear_pending_creates", False)
    )
    if parsed.command == "up" and not parsed.skip_preview and not _previewed(request, options, display):
        return False
    return _OPERATIONS[parsed.command](request, options, display)


def _previewed(request: Request, options: Options, display: Display) -> bool:
    """Whether a preview goes well; only one that fails is shown, so that wrong input leaves nothing half made."""
    events: list[Event] = []

    def keep(event: Event) -> None:
        events.append(event)
        display.checking(event)

    if preview(request, options, keep):
        return True
    for event in events:
        display(event)
    return False


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--stack", "-s", required=True, help="the stack's name")
    common.add_argument("--state", metavar="DIR", help="state folder (default: $CLOUD_CONTROLLER_STATE, .state)")
    common.add_argument("--config-file", metavar="FILE", help="use this stack file instead of Pulumi.STACK.yaml")
    common.add_argument("--cwd", "-C", metavar="DIR", default=".", help="the project's folder")
    parser = argparse.ArgumentParser(prog="python -m local.engine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, operation in _OPERATIONS.items():
        command = commands.add_parser(name, parents=[common], help=(operation.__doc__ or "").split(".")[0])
        add_choices(command)
        command.add_argument("--yes", "-y", action="store_true", help="accepted for the CLI's sake: nothing is asked")
        if name in ("preview", "up"):
            command.add_argument("--policy-pack", metavar="DIR", action="append", default=[], help="may be repeated")
            command.add_argument("--policy-pack-config", metavar="FILE", action="append", default=[])
        if name == "refresh":
            command.add_argument(
                "--clear-pending-creates", action="store_true", help="forget what a killed run was creating"
            )
        if name == "up":
            command.add_argument("--skip-preview", action="store_true", help="do not make sure by a preview first")
        if name == "preview":
            command.add_argument("--placeholder-secrets", action="store_true", help="preview without the passphrase")
    cli_stack.add_parser(commands, common)
    return parser


def _packs(parsed: argparse.Namespace) -> list[tuple[Path, Mapping[str, Any] | None]]:
    packs = [Path(p).resolve() for p in getattr(parsed, "policy_pack", [])]
    files = [Path(p) for p in getattr(parsed, "policy_pack_config", [])]
    if files and len(files) != len(packs):
        raise ValueError(f"{len(files)} --policy-pack-config for {len(packs)} --policy-pack: the numbers must match")
    configs: list[Mapping[str, Any] | None]
    configs = [load_policy_config(f) for f in files] if files else [None for _ in packs]
    return list(zip(packs, configs, strict=True))


class LocalProviders:
    """The packages that this engine runs: dynamic resources and Kubernetes."""

    def __init__(self, session: Session, on_line: Callable[[str], None]) -> None:
        self._config = session.config.as_properties()
        self._server = DynamicServer(session.project.main, session.project.name, on_line)

    def factories(self) -> Mapping[str, ProviderFactory]:
        """By package."""
        return {"pulumi-python": self._dynamic, "kubernetes": _kubernetes}

    def close(self) -> None:
        """End the dynamic provider's server."""
        self._server.close()

    def _dynamic(self, resource: ResourceState) -> Provider:
        return DynamicProvider(self._server, resource.inputs, resource.urn, str(resource.id))


def _kubernetes(resource: ResourceState) -> Provider:
    # Imported on use: a stack without Kubernetes needs none of it.
    from local.engine.kubernetes.provider import KubernetesProvider

    return KubernetesProvider(resource.inputs)
