"""One run of a stack on a site: what it needs before its engine starts, and the call of that engine.

The embedded engine runs in this process, so that the stack's key is derived once; it is imported on use, because
`status` and `stop` need none of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local import cluster_access, pulumi_backend
from local.api_site import ApiSite
from local.engine.stack.lock import check_free
from local.engine.stack.session import PASSPHRASE_FILE
from local.pulumi_cli import PulumiCli, PulumiCliError
from local.stack_copy import copy_of, write_stack_copy
from local.stack_file import check_stack_file
from local.stack_state import is_in_cli, is_in_engine

OK, FAILED = 0, 1
PASSPHRASE_VARIABLES = frozenset({"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"})
SETTLE_SECONDS = 120.0
DELETE_UNMANAGED = "CLOUD_CONTROLLER_DELETE_UNMANAGED"
"""The environment variable that lets the program's guard delete undeclared objects (components/cluster_end.py)."""

ENGINE_COMMANDS: Final[Mapping[str, str]] = {"up": "up", "preview": "preview", "refresh": "refresh", "down": "destroy"}
"""The engine's command for each command that runs one."""


def report(message: str) -> None:
    """Print a line about progress."""
    print(message, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Run:
    """One call of the command line."""

    project: Path
    site: ApiSite
    stack: str
    json: bool
    stack_file: Path
    engine_options: tuple[str, ...] = ()
    with_cli: bool = False
    """Whether Pulumi's CLI runs the stack, not the embedded engine."""
    delete_unmanaged: bool = False
    """Whether `down` deletes Services and claims that the program does not declare."""
    access: cluster_access.Request | None = None
    """For the commands that use the stack's cluster."""

    @property
    def cli(self) -> PulumiCli:
        return PulumiCli(self.project, self.stack, self.stack_dir)

    @property
    def stack_dir(self) -> Path:
        return self.site.folder.stack(self.stack)


def prepare(run: Run, *, boot: bool = False) -> None:
    """Bring the site and its clusters up and write the stack's copy; `boot` starts crashed machines, too."""
    check_stack_file(run.stack_file, run.project)  # first: a mistyped name starts nothing
    require_engine(run)
    run.site.up(report)
    report(f"{run.site.CLOUD} is ready at {run.site.endpoint}")
    run.site.wait_settled(SETTLE_SECONDS, report)
    crashed = run.site.crashed_machines()
    follows = "starting it again" if boot else "`stop`, then `up`, starts it again"
    for machine in crashed:
        report(f"machine {machine} is stopped because its process ended; {follows}")
    if boot and crashed:
        run.site.boot_crashed_machines()
        run.site.wait_settled(SETTLE_SECONDS, report)
    write_stack_copy(run.stack_file, run.stack_dir, run.site.stack_config())


def require_engine(run: Run) -> None:
    """Raise PulumiCliError if the chosen engine is missing or the other engine's state holds the stack."""
    if run.with_cli:
        run.cli.require()
    held, other = (is_in_engine, "the embedded engine's") if run.with_cli else (is_in_cli, "the Pulumi CLI's")
    if held(run.stack_dir):
        if run.with_cli:
            run.cli.prepare()  # for the `pulumi stack import` that moves it
        raise PulumiCliError(
            f"stack {run.stack!r} is in {other} state: run it {'without' if run.with_cli else 'with'} ENGINE=pulumi "
            "(--engine pulumi), or move it as docs/engine.md describes"
        )


def require_free(run: Run) -> None:
    """Raise LockedError or PulumiCliError, naming the holder, if another run holds the stack's lock."""
    if not run.with_cli:
        check_free(run.stack_dir)
    elif ways := list(pulumi_backend.ways_past_locks(run.stack_dir)):
        raise PulumiCliError("\n".join(ways))


def run_engine(run: Run, command: str, *more: str) -> int:
    """Run the engine with the site's environment; its exit code."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(run.site.environment(before))
    if run.delete_unmanaged:
        os.environ[DELETE_UNMANAGED] = "true"
    try:
        if run.with_cli:
            return OK if run.cli.run(command, [*run.engine_options, *more]) else FAILED
        from local.engine import cli

        return cli.main([command, *_where(run), *run.engine_options, *more])
    finally:
        os.environ.clear()
        os.environ.update(before)


def confirm(run: Run, command: str) -> bool | None:
    """Ask in advance what the engine would ask during a command; None if the engine has to ask."""
    from local.engine import cli

    return cli.confirm([command, *_where(run), *run.engine_options])


def run_recorded(
    command: str, stack: str, state: Path, stack_file: Path, project: Path, engine_options: list[str]
) -> int:
    """Run the stack of a cloud that has no site here: the engine records its resources and calls no cloud."""
    from local.engine import cli

    where = ["--stack", stack, "--state", str(state), "--config-file", str(stack_file), "--cwd", str(project)]
    more = policies(project, stack) if command in ("up", "preview") else []
    has_passphrase = PASSPHRASE_VARIABLES & os.environ.keys() or (state / "stacks" / stack / PASSPHRASE_FILE).exists()
    if command == "preview" and not has_passphrase:
        more = ["--placeholder-secrets", *more]
    return cli.main([ENGINE_COMMANDS[command], *where, *engine_options, *more])


def policies(project: Path, stack: str) -> list[str]:
    """The options for the project's policy pack, with the stack's own levels and settings where it has a file."""
    settings = project / "stacks" / f"policies.{stack}.json"
    given = ["--policy-pack-config", str(settings)] if settings.exists() else []
    return ["--policy-pack", str(project / "policy"), *given]


def _where(run: Run) -> list[str]:
    return [
        *("--stack", run.stack),
        *("--state", str(run.site.folder.root)),
        *("--config-file", str(copy_of(run.stack_dir))),
        *("--cwd", str(run.project)),
    ]
