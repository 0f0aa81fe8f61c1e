"""Run a stack on a site of this machine: a private cloud with real control planes, machines and load balancers.

up       bring the site up, then the stack, and leave both running
preview  show what `up` would change in the stack
refresh  read back what is really there into the stack's state
down     destroy the stack, then stop the site and delete its data
status   show what runs where
stop     stop the site's processes and keep everything; `up` goes on from there

kubeconfig  write the kubeconfig of the stack's cluster; prints the line that makes kubectl use it
kubectl     run kubectl on the stack's cluster: `kubectl --stack local -- get pods`
logs        print the log of a pod: `logs --pod NAMESPACE/NAME`, with --follow as it is written
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cloud_controller.cli.parser import Parser
from local import cluster_access, cluster_status, pulumi_backend
from local.api_site import ApiSite, SiteError
from local.aws.folder import site_root
from local.control_plane.binaries import ensure as ensure_binaries
from local.control_plane.build import BuildError
from local.engine import termination
from local.engine.cli_request import stack_name
from local.engine.stack.lock import LockedError, check_free
from local.engine.stack.secrets import SecretsError
from local.engine.stack.session import PASSPHRASE_FILE
from local.engine.stack.state import StateError
from local.mycloud.models.compute import PROCESS_ENDED
from local.mycloud.site import Site
from local.pulumi_cli import PulumiCli, PulumiCliError
from local.stack_copy import (
    StackFileError,
    check_stack_file,
    copy_of,
    needs_no_site,
    read_stack_file,
    simulated_region,
    write_stack_copy,
)
from local.stack_state import is_in_cli, is_in_engine, is_in_use, masked_outputs

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

PROJECT = Path(__file__).resolve().parents[1]
STATE_VARIABLE = "CLOUD_CONTROLLER_STATE"
PASSPHRASE_VARIABLES = frozenset({"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"})
SETTLE_SECONDS = 120.0
DELETE_UNMANAGED = "CLOUD_CONTROLLER_DELETE_UNMANAGED"
"""The environment variable that lets the program's guard delete what is not declared (components/cluster_end.py)."""


@dataclass(frozen=True, slots=True)
class Run:
    """One call of the command line."""

    site: ApiSite
    stack: str
    json: bool
    stack_file: Path
    engine_options: tuple[str, ...] = ()
    with_cli: bool = False
    """Whether Pulumi's own CLI runs the stack, and not the embedded engine."""
    delete_unmanaged: bool = False
    """Whether a `down` deletes Services and claims that the program does not declare."""
    access: cluster_access.Request | None = None
    """Of the commands that use the stack's cluster."""

    @property
    def cli(self) -> PulumiCli:
        return PulumiCli(PROJECT, self.stack, self.stack_dir)

    @property
    def stack_dir(self) -> Path:
        return self.site.folder.stack(self.stack)


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code: 0 done, 1 failed, 2 called wrongly."""
    options, more = _parse(argv)
    state = Path(options.state or os.environ.get(STATE_VARIABLE) or PROJECT / ".state")
    engine_options = [*(flag for flag in ("--json", "--diff") if getattr(options, flag[2:], False)), *more]
    stack_file = Path(options.config_file or PROJECT / "stacks" / f"Pulumi.{options.stack}.yaml")
    with_cli = options.engine == "pulumi"
    os.umask(0o077)  # whatever the user's is: keys and state are nobody else's to read, still less to change
    try:
        if options.command in _ENGINES_WORDS and not with_cli and needs_no_site(stack_file):
            return _recorded(options.command, options.stack, state, stack_file, engine_options)
        site = _site(state, options.stack, stack_file)
        run = Run(
            site,
            options.stack,
            options.json,
            stack_file,
            tuple(engine_options),
            with_cli,
            options.delete_unmanaged,
            cluster_access.Request(options.command, options.pod, options.follow, options.words),
        )
        code = _COMMANDS[options.command](run)
        sys.stdout.flush()
        return code
    except PermissionError as error:
        return _fail(error, FAILED)
    except BrokenPipeError:
        # Whoever read this (`| head`) has seen enough. What Python flushes at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK if options.command in _READING else FAILED
    except StackFileError as error:
        return _fail(error, USAGE)
    except (SiteError, SecretsError, StateError, LockedError, BuildError, PulumiCliError) as error:
        return _fail(error, FAILED)
    except KeyboardInterrupt:
        if options.command in _READING:
            return INTERRUPTED
        _tell(f"interrupted; `{options.command}` goes on from here")
        return FAILED


def _recorded(command: str, stack: str, state: Path, stack_file: Path, engine_options: list[str]) -> int:
    """Run the stack of a cloud that is not here: its resources are recorded, nothing is made and nothing is asked."""
    from local.engine import cli

    word = _ENGINES_WORDS[command]
    where = ["--stack", stack, "--state", str(state), "--config-file", str(stack_file), "--cwd", str(PROJECT)]
    more = _policies(stack) if command in ("up", "preview") else []
    has_passphrase = PASSPHRASE_VARIABLES & os.environ.keys() or (state / "stacks" / stack / PASSPHRASE_FILE).exists()
    if command == "preview" and not has_passphrase:
        more = ["--placeholder-secrets", *more]
    return cli.main([word, *where, *engine_options, *more])


def _site(state: Path, stack: str, stack_file: Path) -> ApiSite:
    """The checkout's site, of mycloud; a stack on a simulated AWS has a site of its own."""
    try:
        region = simulated_region(stack_file)
    except StackFileError:
        region = None  # whichever command needs the file says so
    if region is None and not site_root(state, stack).exists():
        return Site(state)
    # Imported on use: whoever has no stack on AWS does not wait for its SDK.
    from local.aws.site import AwsSite

    return AwsSite(state, stack, region)


def _up(run: Run) -> int:
    check_stack_file(run.stack_file, PROJECT)  # before minutes of building: a mistyped name builds nothing
    _require_engine(run)
    _require_free(run)  # a second `up` fails here, and does not wait for what the first one makes
    ensure_binaries(_tell)
    _engine_ready(run)
    code = _engine(run, "up", *_policies(run.stack))
    if code != OK:
        return code
    for line in run.site.after_up(str(masked_outputs(run.stack_dir).get("clusterId", ""))):
        print(line, file=sys.stderr if run.json else sys.stdout)
    return OK


def _preview(run: Run) -> int:
    was_up = run.site.folder.site_file.exists()
    _engine_ready(run)
    code = _engine(run, "preview", *_policies(run.stack))
    if not was_up:
        _tell("nothing was made but the site's own processes: `up` goes on from here, `down` stops them")
    return code


def _refresh(run: Run) -> int:
    _require_free(run)
    _engine_ready(run)
    return _engine(run, "refresh")


def _down(run: Run) -> int:
    if not run.stack_dir.is_dir():
        read_stack_file(run.stack_file)  # a mistyped name must not pass for a stack that is down already
    if not run.site.folder.root.is_dir() or not (run.site.folder.site_file.exists() or is_in_use(run.stack_dir)):
        _tell(f"there is no site in {run.site.folder.root}: nothing to do")
        return OK
    if is_in_use(run.stack_dir):
        _require_free(run)
        agreed = None if run.with_cli else _ask(run, "destroy")
        if agreed is False:
            return FAILED
        # The daemon that runs there has to take down what it made: its finalizers hold up the destroy until then.
        _engine_ready(run, boot=True)
        if not _others(run) and not _PARTIAL & {option.partition("=")[0] for option in run.engine_options}:
            run.site.end_simulated_machines()  # no stack declares them, and a cluster that has machines stays
        code = _engine(run, "destroy", *(["--yes"] if agreed else []))
        if code != OK:
            return code
        if is_in_use(run.stack_dir):
            _tell("the site goes on running: the stack still has resources")
            return OK
    # Asked anew: of two that end at the same time, the second to be done stops the site.
    if others := _others(run):
        _tell(f"the site goes on running: it holds stack {', '.join(others)} too")
        return OK
    if left := run.site.left():
        # Somebody wanted them to outlive the stack. Who says so of a site that is stopped has been told.
        run.site.down(keep_data=True, tell=_tell)
        _tell(f"the site is stopped; it keeps its data, for there is left: {', '.join(left)}; `down` again deletes it")
        return OK
    if (nothing := run.site.nothing_left()) is not None:
        _tell(nothing)
    run.site.down(tell=_tell)
    _tell("the site is stopped and its data are deleted")
    return OK


def _others(run: Run) -> list[str]:
    """The other stacks that the site holds; those that are only recorded lie beside them."""
    held = (each for each in run.stack_dir.parent.glob("*") if copy_of(each).exists() and is_in_use(each))
    return sorted(each.name for each in held if each != run.stack_dir)


def _status(run: Run) -> int:
    status, outputs = run.site.status(), masked_outputs(run.stack_dir)
    clusters = cluster_status.clusters_status(cluster_access.admin_kubeconfigs(run.site.folder))
    if run.json:
        print(json.dumps({**status, "kubernetes": clusters, "outputs": outputs}, indent=2))
    else:
        print("\n".join([run.site.render(status, outputs), *cluster_status.render(clusters)]))
    return OK


def _access(run: Run) -> int:
    assert run.access is not None
    cluster_id = masked_outputs(run.stack_dir).get("clusterId")
    return cluster_access.run(run.access, run.site.folder, run.stack_dir, cluster_id)


def _stop(run: Run) -> int:
    was_there = run.site.folder.site_file.exists()
    run.site.down(keep_data=True, tell=_tell)  # even so: what a killed start left behind ends, too
    if was_there:
        _tell("the site is stopped; `up` goes on from here")
    else:
        _tell(f"there is no site in {run.site.folder.root}: nothing to do")
    return OK


_COMMANDS: Mapping[str, Callable[[Run], int]] = {
    "up": _up,
    "preview": _preview,
    "refresh": _refresh,
    "down": _down,
    "status": _status,
    "stop": _stop,
    "kubeconfig": _access,
    "kubectl": _access,
    "logs": _access,
}


_READING: Final = ("status", "kubeconfig", "kubectl", "logs")
_ENGINES_WORDS: Final = {"up": "up", "preview": "preview", "refresh": "refresh", "down": "destroy"}
"""What the commands that run an engine are called there."""
_PARTIAL: Final = frozenset({"--target", "-t", "--exclude-protected", "--preview-only"})
"""The engine's options with which a `down` leaves something."""


def _engine_ready(run: Run, *, boot: bool = False) -> None:
    """The site is up, its clusters run, and the stack's copy says where it is; `boot` what has crashed, too."""
    check_stack_file(run.stack_file, PROJECT)  # before anything is started: a mistyped name starts nothing
    _require_engine(run)
    run.site.up(_tell)
    _tell(f"{run.site.CLOUD} answers at {run.site.endpoint}")
    run.site.wait_settled(SETTLE_SECONDS, _tell)
    crashed = run.site.crashed_machines()
    follows = "it is booted again" if boot else "`stop`, then `up`, boots it again"
    for machine in crashed:
        _tell(f"machine {machine} is stopped, for {PROCESS_ENDED}; {follows}")
    if boot and crashed:
        run.site.boot_crashed_machines()
        run.site.wait_settled(SETTLE_SECONDS, _tell)
    write_stack_copy(run.stack_file, run.stack_dir, run.site.stack_config())


def _require_engine(run: Run) -> None:
    """Raise PulumiCliError unless the engine that is asked for is there, and the other one does not hold the stack."""
    if run.with_cli:
        run.cli.require()
    held, other = (is_in_engine, "the embedded engine's") if run.with_cli else (is_in_cli, "the Pulumi CLI's")
    if held(run.stack_dir):
        if run.with_cli:
            run.cli.prepare()  # for the `pulumi stack import` that moves it
        raise PulumiCliError(
            f"stack {run.stack!r} lives in {other} state: {'without' if run.with_cli else 'with'} ENGINE=pulumi "
            "(--engine pulumi) it goes on there; docs/engine.md says how a stack moves"
        )


def _require_free(run: Run) -> None:
    """Raise LockedError or PulumiCliError, naming the holder, if a run holds the stack's lock."""
    if not run.with_cli:
        check_free(run.stack_dir)
    elif ways := list(pulumi_backend.ways_past_locks(run.stack_dir)):
        raise PulumiCliError("\n".join(ways))


def _engine(run: Run, command: str, *more: str) -> int:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(run.site.environment(before))
    if run.delete_unmanaged:
        os.environ[DELETE_UNMANAGED] = "true"
    try:
        return _run_engine(run, command, *more)
    finally:
        os.environ.clear()
        os.environ.update(before)


def _run_engine(run: Run, command: str, *more: str) -> int:
    if run.with_cli:
        return OK if run.cli.run(command, [*run.engine_options, *more]) else FAILED
    # Imported on use: status and stop need none of it. In process, so that the stack's key is derived once.
    from local.engine import cli

    return cli.main([command, *_where(run), *run.engine_options, *more])


def _ask(run: Run, command: str) -> bool | None:
    """Ask before a command what its engine would ask in the middle of it; None where that has to do it itself."""
    from local.engine import cli

    return cli.confirm([command, *_where(run), *run.engine_options])


def _where(run: Run) -> list[str]:
    copy = run.stack_dir / f"Pulumi.{run.stack}.yaml"
    return [
        *("--stack", run.stack),
        *("--state", str(run.site.folder.root)),
        *("--config-file", str(copy)),
        *("--cwd", str(PROJECT)),
    ]


def _policies(stack: str) -> list[str]:
    """The project's pack, with the levels and settings of the stack's own file, if it has one."""
    settings = PROJECT / "stacks" / f"policies.{stack}.json"
    given = ["--policy-pack-config", str(settings)] if settings.exists() else []
    return ["--policy-pack", str(PROJECT / "policy"), *given]


def _parse(argv: list[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """The call, and what of it is the engine's. A wrong one ends here, before anything is started."""
    parser = _parser()
    given = sys.argv[1:] if argv is None else argv
    split = given.index("--") if "--" in given else len(given)
    options, more = parser.parse_known_args(given[:split])
    options.words = tuple(given[split + 1 :])
    if options.words and options.command != "kubectl":
        parser.error("words after `--` go with `kubectl`")
    if (options.pod or options.follow) and options.command != "logs":
        parser.error("--pod and --follow go with `logs`")
    if options.delete_unmanaged and options.command != "down":
        parser.error("--delete-unmanaged goes with `down`")
    if more and options.command not in _ENGINES_WORDS:
        parser.refuse(more)
    if more and options.engine == "embedded":
        from local.engine import cli_arguments

        cli_arguments.parse([_ENGINES_WORDS[options.command], "--stack", options.stack, *more], parser.options)
    return options, more


def _parser() -> Parser:
    parser = Parser(
        forwards=True,
        prog="python -m local",
        description=__doc__,
        epilog="up, preview, refresh and down also take the options of `python -m local.engine "
        "up|preview|refresh|destroy`, such as --target URN.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=list(_COMMANDS), metavar="COMMAND", help=", ".join(_COMMANDS))
    parser.add_argument("--stack", "-s", type=stack_name, default="local", help="the stack's name (default: local)")
    parser.add_argument(
        "--state", metavar="DIR", help=f"the site's state folder (default: ${STATE_VARIABLE}, else .state)"
    )
    parser.add_argument(
        "--config-file", metavar="FILE", help="the stack's configuration (default: stacks/Pulumi.STACK.yaml)"
    )
    parser.add_argument(
        "--engine",
        choices=["embedded", "pulumi"],
        default="embedded",
        help="which engine runs it (default: embedded)",
    )
    parser.add_argument("--json", action="store_true", help="for programs: status as JSON, else engine events")
    parser.add_argument("--diff", action="store_true", help="show the properties of what is created, too")
    parser.add_argument(
        "--delete-unmanaged",
        action="store_true",
        help="with down: first delete the LoadBalancer Services, and the claims with their volumes' data, that the "
        "program does not declare",
    )
    parser.add_argument(
        "--pod",
        metavar="NAMESPACE/NAME",
        default="",
        help="with logs: the pod; NAME is enough if only one has it",
    )
    parser.add_argument("--follow", action="store_true", help="with logs: go on as more is written")
    return parser


def _tell(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _fail(error: Exception, code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    termination.heed()
    sys.exit(main())
