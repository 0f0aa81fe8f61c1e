"""One run of a stack on a site: what it needs before Pulumi's CLI starts, and the call of the CLI."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local import cluster_access
from local.api_site import ApiSite
from local.pulumi import toolchain
from local.pulumi.cli import PulumiCli, on_stack
from local.pulumi.rehearsal import Checkout, Rehearsal
from local.stack_copy import write_stack_copy
from local.stack_file import check_stack_file

OK, FAILED = 0, 1
SETTLE_SECONDS = 120.0
DELETE_UNMANAGED = "CLOUD_CONTROLLER_DELETE_UNMANAGED"
"""The environment variable that lets the program's guard delete undeclared objects (components/cluster_end.py)."""

PULUMI_COMMANDS: Final[Mapping[str, str]] = {"up": "up", "preview": "preview", "refresh": "refresh", "down": "destroy"}
"""The CLI's command for each command that runs it."""


class UsageError(Exception):
    """The command line is wrong; nothing was started."""


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
    pulumi_options: tuple[str, ...] = ()
    """For the commands that run Pulumi's CLI."""
    delete_unmanaged: bool = False
    """Whether `down` deletes Services and claims that the program does not declare."""
    access: cluster_access.Request | None = None
    """For the commands that use the stack's cluster."""

    @property
    def stack_dir(self) -> Path:
        return self.site.folder.stack(self.stack)


def prepare(run: Run, *, boot: bool = False) -> None:
    """Bring the site and its clusters up and write the stack's copy; `boot` starts crashed machines, too."""
    check_stack_file(run.stack_file)  # first: a mistyped name starts nothing
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


def require_pulumi(run: Run, command: str) -> PulumiCli:
    """The CLI, which is built if it is missing. Raises BuildError, or UsageError if it refuses the run's options."""
    cli = on_stack(run.project, run.stack, run.stack_dir)
    if run.pulumi_options and (wrong := cli.check_options(command, run.pulumi_options)):
        raise UsageError(wrong)
    return cli


def run_pulumi(run: Run, cli: PulumiCli, command: str, *more: str) -> int:
    """Run the CLI with the site's environment; its exit code."""
    environment = run.site.environment(os.environ)
    if run.delete_unmanaged:
        environment[DELETE_UNMANAGED] = "true"
    return cli.run(command, [*run.pulumi_options, *more], environment)


def preview_recorded(project: Path, stack: str, stack_file: Path, options: Sequence[str]) -> int:
    """Preview a stack of a cloud that has no site here, as if nothing existed; the CLI's exit code.

    Raises BuildError, ProjectError, RehearsalError.
    """
    tools = toolchain.find(report)
    with tempfile.TemporaryDirectory(prefix="preview-") as folder:
        rehearsal = Rehearsal(tools, stack, Path(folder))
        given = [*options, *policies(project, stack)]
        checkout = Checkout(project, stack_file=stack_file)
        return rehearsal.preview(checkout, *given, capture=False).returncode


def policies(project: Path, stack: str) -> list[str]:
    """The options for the project's policy pack, with the stack's own levels and settings where it has a file."""
    settings = project / "stacks" / f"policies.{stack}.json"
    given = ["--policy-pack-config", str(settings)] if settings.exists() else []
    return ["--policy-pack", str(project / "policy"), *given]
