"""Run a stack on a site of this machine: a private cloud with real control planes, machines and load balancers.

up       start the site, then bring the stack up, and leave both running
preview  show what `up` would change in the stack
refresh  update the stack's state from the real resources
down     destroy the stack, then stop the site and delete its data
status   show what runs where
stop     stop the site's processes and keep all data; `up` starts it again

kubeconfig  write the kubeconfig of the stack's cluster and print the line that makes kubectl use it
kubectl     run kubectl on the stack's cluster: `kubectl --stack local -- get pods`
logs        print the log of a pod: `logs --pod NAMESPACE/NAME`; with --follow, new lines as they are written
pulumi      run Pulumi's CLI on the stack: `pulumi --stack local -- stack output`
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from cloud_controller.cli.parser import Parser
from cloud_controller.registry import InvalidEntryPoint
from local import cluster_access, termination
from local.api_site import ApiSite
from local.clouds import cloud_of_site, default_cloud
from local.commands import COMMANDS, READING
from local.errors import BuildError, SiteError
from local.pulumi.backend import StateError
from local.pulumi.cli import PulumiCliError
from local.pulumi.project import ProjectError
from local.pulumi.rehearsal import RehearsalError
from local.pulumi.secrets import SecretsError
from local.stack_file import StackFileError, cloud_of, is_recorded
from local.stack_run import FAILED, OK, PULUMI_COMMANDS, Run, UsageError, preview_recorded, report

USAGE, INTERRUPTED = 2, 130

FORWARDING = ("kubectl", "pulumi")
"""The commands that run another program, with the arguments after `--`."""
PROJECT = Path(__file__).resolve().parents[1]
STATE_VARIABLE = "CLOUD_CONTROLLER_STATE"


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code: 0 done, 1 failed, 2 usage error."""
    options, more = _parse(argv)
    state = Path(options.state or os.environ.get(STATE_VARIABLE) or PROJECT / ".state")
    pulumi_options = [*(flag for flag in ("--json", "--diff") if getattr(options, flag[2:], False)), *more]
    stack_file = Path(options.config_file or PROJECT / "stacks" / f"Pulumi.{options.stack}.yaml")
    os.umask(0o077)  # keys and state are private to the user, whatever umask the user has
    try:
        if options.command in PULUMI_COMMANDS and is_recorded(stack_file):
            if options.command == "preview":
                return preview_recorded(PROJECT, options.stack, stack_file, pulumi_options)
            raise UsageError(
                f"stack {options.stack!r} is for a cloud that no site here stands in for: `make preview` plans it "
                "as if nothing existed; `pulumi` runs it in the cloud"
            )
        run = Run(
            PROJECT,
            _site(state, options.stack, stack_file),
            options.stack,
            options.json,
            stack_file,
            tuple(pulumi_options),
            options.delete_unmanaged,
            cluster_access.Request(options.command, options.pod, options.follow, options.words),
        )
        code = COMMANDS[options.command](run)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader (`| head`) has closed the pipe. Python's flush at exit must not fail as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK if options.command in READING else FAILED
    except (ProjectError, StackFileError, UsageError) as error:
        return _fail(error, USAGE)
    except (
        OSError,
        InvalidEntryPoint,
        SiteError,
        SecretsError,
        StateError,
        BuildError,
        PulumiCliError,
        RehearsalError,
    ) as error:
        return _fail(error, FAILED)
    except KeyboardInterrupt:
        if options.command in READING:
            return INTERRUPTED
        report(f"interrupted; run `{options.command}` again to continue")
        return FAILED


def _site(state: Path, stack: str, stack_file: Path) -> ApiSite:
    """The stack's site: its own, if it has one, else that of the cloud in the stack file, else the default one."""
    try:
        cloud, section = cloud_of(stack_file)
    except StackFileError:
        cloud, section = default_cloud(), {}  # the commands that need the file report the error
    found = cloud_of_site(state, stack)
    if found is not None and found is not cloud:
        cloud, section = found, {}
    return cloud.site(state, stack, section)


def _parse(argv: list[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """The options and those for Pulumi's CLI. A usage error ends the process before anything starts."""
    parser = _parser()
    given = sys.argv[1:] if argv is None else argv
    split = given.index("--") if "--" in given else len(given)
    options, more = parser.parse_known_args(given[:split])
    options.words = tuple(given[split + 1 :])
    if options.words and options.command not in FORWARDING:
        parser.error("arguments after `--` are only for `kubectl` and `pulumi`")
    if (options.pod or options.follow) and options.command != "logs":
        parser.error("--pod and --follow are only for `logs`")
    if options.delete_unmanaged and options.command != "down":
        parser.error("--delete-unmanaged is only for `down`")
    if more and options.command in FORWARDING:
        parser.error(f"{options.command}'s own arguments follow `--`: {options.command} -- {' '.join(more)}")
    if more and options.command not in PULUMI_COMMANDS:
        parser.refuse(more)
    return options, more


def _stack_name(text: str) -> str:
    """The name, if it is valid by Pulumi's rule. Any other could lead out of the state folder."""
    if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,100}", text) or text in (".", ".."):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid stack name (up to 100 letters, digits, hyphens, underscores and periods)"
        )
    return text


def _parser() -> Parser:
    parser = Parser(
        forwards=True,
        prog="python -m local",
        description=__doc__,
        epilog="up, preview, refresh and down also take the options of `pulumi up|preview|refresh|destroy`, such as "
        "--target URN.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=list(COMMANDS), metavar="COMMAND", help=", ".join(COMMANDS))
    parser.add_argument("--stack", "-s", type=_stack_name, default="local", help="the stack's name (default: local)")
    parser.add_argument(
        "--state", metavar="DIR", help=f"the site's state folder (default: ${STATE_VARIABLE}, else .state)"
    )
    parser.add_argument(
        "--config-file", metavar="FILE", help="the stack's configuration (default: stacks/Pulumi.STACK.yaml)"
    )
    parser.add_argument("--json", action="store_true", help="for programs: status as JSON, else as `pulumi` writes it")
    parser.add_argument("--diff", action="store_true", help="also show the properties of new resources")
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
        help="with logs: the pod; NAME is enough if it is unique",
    )
    parser.add_argument("--follow", action="store_true", help="with logs: print new lines as they are written")
    return parser


def _fail(error: Exception, code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    termination.heed()
    sys.exit(main())
