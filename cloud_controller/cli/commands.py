"""The `cloud-controller` commands: run the daemon, show its plan, or apply the plan once.

Exit codes: 0 success; 1 failure, explained in one line on stderr; 2 usage error; with `plan --detailed-exitcode`, 3 for
changes, and 4 for a replaced address or a refused Service in manifests; `doctor`: 3 for warnings, 4 for critical
findings.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version as package_version

import orjson

from cloud_controller import cleanup as gone
from cloud_controller import logs, safeguard
from cloud_controller.binding import UNBOUND, Evidence, judge
from cloud_controller.cli import doctor as cli_doctor
from cloud_controller.cli import manifests as cli_manifests
from cloud_controller.cli import options as cli_options
from cloud_controller.cli import plan_services
from cloud_controller.cli.options import kubernetes
from cloud_controller.cli.parser import Parser
from cloud_controller.cli.planned_output import one_line, plain
from cloud_controller.cli.planned_service import ATTENTION, CHANGES, replaces_address
from cloud_controller.cloud import Cloud, CloudError, InvalidConfiguration
from cloud_controller.controller_names import NAMES, not_offered
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.route import RouteOptions
from cloud_controller.controllers.service import controller as service
from cloud_controller.converge import Converge, Refused, Report
from cloud_controller.daemon.leader import LeaderElector
from cloud_controller.daemon.manager import Manager
from cloud_controller.fence import WriteRefused
from cloud_controller.kube import NODES, ApiError, Kube, KubeconfigError, UnreachableError
from cloud_controller.plan import Plan, object_of
from cloud_controller.planning import Found, PlanSettings, find, without_healthy_backend
from cloud_controller.proof import prove
from cloud_controller.safeguard import Safeguard
from cloud_controller.stop_signals import stop_on_signals

_START_TIMEOUT = 10.0
"""Seconds to wait for the API server at startup, as upstream."""
_START_PAUSE = 0.5

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. argparse itself exits with 2 on a usage error."""
    try:
        options = cli_options.parse(*_parsers(), arguments)
        command: Callable[[argparse.Namespace], int] = options.command
        code = command(options)
        print(end="", flush=True)
        return code
    except BrokenPipeError:
        # The reader (`| head`) has closed the pipe. Python's flush at exit must not fail on it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        _print_error("interrupted; nothing was changed")
        return 1
    except OSError as error:
        _print_error(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
        return 1
    except (CloudError, ApiError, KubeconfigError, Refused, WriteRefused) as error:
        _print_error(str(error))
        return 1


def run(options: argparse.Namespace) -> int:
    """Run the controllers as a daemon until SIGTERM or SIGINT."""
    logs.configure(cli_options.log_level(options), options.logging_format)
    cloud = cli_options.cloud(options)
    settings = cli_options.manager_options(options, _left_out(cloud))
    kube = kubernetes(options)
    cloud.check_access(settings.controllers, read_only=settings.dry_run)
    _wait_for(kube)
    manager = Manager(kube, cloud, settings)
    code = manager.run(stop_on_signals())
    if manager.foreign is not None:
        # Repeated as the last line: `kubectl logs --tail` of a container that exited shows it.
        _print_error(manager.foreign)
    if manager.busy:
        # A normal exit would join the threads, and they could still send calls after another process leads.
        logging.shutdown()
        os._exit(code)
    return code


def plan(options: argparse.Namespace) -> int:
    """Show what each controller would do, or what would become of the Services in manifests (-f). Changes nothing.
    Needs only read access, and with -f the rights to create, update and patch Services, which dry runs require."""
    plan_services.check(options)
    if options.filename:
        logs.configure(cli_options.log_level(options), options.logging_format)
        return plan_services.run(options, lambda: (cli_options.cloud(options), *_settings(options, [service.NAME])))
    _, cloud, finders, _, proves = _opened(options)
    found = {name: find() for name, find in finders.items()}
    proves([each.evidence for each in found.values() if each.evidence])
    if (services := found.get("service")) is not None:
        found["service"] = replace(services, plan=services.plan + without_healthy_backend(cloud, services))
    if options.output == "json":
        _print_json({name: each.plan.to_json() for name, each in found.items()})
    else:
        for name, each in found.items():
            _show(name, each)
    return _detailed(found.values()) if options.detailed_exitcode else 0


def _detailed(found: Collection[Found]) -> int:
    if any(action.attention or replaces_address(action) for each in found for action in each.plan):
        return ATTENTION
    return CHANGES if any(each.plan.changes for each in found) else 0


def apply(options: argparse.Namespace) -> int:
    """Show the plan, ask for approval and apply it, until nothing is left to do."""
    kube, cloud, finders, guard, proves = _opened(options)
    cloud.check_access([*finders])
    elector = None
    if options.leader_elect:
        times = cli_options.lease_times(options)
        space, name = options.leader_elect_resource_namespace, options.leader_elect_resource_name
        elector = LeaderElector(kube.with_timeout(times.retry_period), space, name, times=times)
    return _converged(options, kube, cloud, finders, proves, guard, elector)


def cleanup(options: argparse.Namespace) -> int:
    """Delete what a cluster that no longer exists left in its cloud: load balancers, volumes with their data and, with
    --cluster-cidr, pod routes. Refused while the cloud shows the cluster or machines of it; where it cannot tell that
    the cluster is gone, --kubeconfig or --cluster-is-gone has to. Exits with 2 if nothing carries the cluster id."""
    logs.configure(cli_options.log_level(options), options.logging_format)
    cli_options.refuse_json_without_yes(options)
    cloud = cli_options.cloud(options)
    if cloud.cluster_id != options.cluster_id:
        why = f"{options.cluster_id!r} does not match the cloud config, which is for cluster {cloud.cluster_id!r}"
        raise InvalidConfiguration("cluster-id", why, repr(cloud.cluster_id))
    answered = gone.require_dead(cloud)
    ranges = cli_options.cluster_ranges(options)
    if cloud.routes is not None and not ranges:
        _log.info("keeping pod routes: --cluster-cidr is needed to tell them from other routes")
    routes = RouteOptions(ranges) if ranges else None
    stake = gone.at_stake(cloud, routes)
    if not stake and (found := gone.other_ids(cloud)) is not None:
        if options.output == "json":
            _print_json({"at_stake": stake.counts, "found_ids": found})
        listed = ", ".join(found) or "none"
        _print_error(f"nothing in the cloud carries cluster id {cloud.cluster_id}; ids that were found: {listed}")
        return 2
    shown = None
    if stake:
        kube = kubernetes(options) if options.kubeconfig else None
        shown = gone.evidence(cloud, stake, kube, answered=answered, said=options.cluster_is_gone)
        if options.output == "text":
            _print([f"cluster {cloud.cluster_id} is gone: {shown}", f"at stake: {stake}"])
    cluster = gone.GoneCluster()
    finders = gone.finders(cloud, routes)
    told = {"evidence": shown, "at_stake": stake.counts}
    proves = partial(judge, binding=UNBOUND, cluster_id=cloud.cluster_id)
    return _converged(options, cluster, cloud, finders, proves, Safeguard(cluster, "", ""), None, told)


def _converged(
    options: argparse.Namespace,
    kube: Kube,
    cloud: Cloud,
    finders: Mapping[str, Callable[[], Found]],
    proves: Callable[[Sequence[Evidence]], None],
    guard: Safeguard,
    elector: LeaderElector | None,
    told: Mapping[str, object] | None = None,
) -> int:
    """Show the plan, ask, and apply until nothing is left; return the exit code. `told`: for JSON too."""
    text = options.output == "text"
    work = Converge(
        kube,
        cloud,
        finders,
        proves,
        show=_show if text else lambda *_: None,
        approve=(lambda _: True) if options.yes else _ask,
        done=(lambda result: _print([f"  {result}"])) if text else lambda _: None,
        safeguard=guard,
    )
    report = work.run(elector, options.deadline, stop_on_signals)
    if text:
        _print(_outcome(report))
    else:
        _print_json({**(told or {}), **report.to_json()})
    return 0 if report.complete else 1


def confirm(options: argparse.Namespace) -> int:
    """Release held actions once; the controllers carry them out within seconds. A digest that none of them holds is
    refused."""
    space, lease = options.leader_elect_resource_namespace, options.leader_elect_resource_name
    safeguard.confirm(kubernetes(options), space, lease, options.digest)
    print(f"confirmed: {' '.join(options.digest)}")
    return 0


def version(_: argparse.Namespace) -> int:
    """Print the version."""
    print(package_version("cloud-controller"))
    return 0


# ----------------------------------------------------------------------------------------------------------- output


def _print_error(error: str) -> None:
    print(f"cloud-controller: {one_line(error)}", file=sys.stderr)


def _print(lines: Iterable[str]) -> None:
    """Print the lines without what could hide others: parts of them come from users of the cluster."""
    for line in lines:
        print(plain(line))


def _show(name: str, found: Found) -> None:
    _print(_shown(name, found))


def _shown(name: str, found: Found) -> Iterator[str]:
    yield f"{name}: {_counts(found.plan)}"
    for action in found.plan:
        yield f"  {action}"
        for change in action.changes:
            yield f"       {change}"
    for target in found.in_order:
        yield f"     {target}: up to date"
    yield from _attention(found.plan)


def _attention(found: Plan) -> Iterator[str]:
    noted = [action for action in found if action.attention]
    if noted:
        yield f"needs attention: {len(noted)}"
    for action in noted:
        yield f"  {object_of(action.target)}: {action.attention}: {action.reason or action.summary}"
        if action.acknowledgement:
            yield f"       to let it happen once, annotate the Service: {action.acknowledgement}"


def _counts(found: Plan) -> str:
    return ", ".join(f"{count} to {kind}" for kind, count in found.counts.items()) or "nothing to do"


def _outcome(report: Report) -> list[str]:
    lines = [f"applied: {report.applied} of {report.applied + len(report.failed)} actions"]
    lines += [f"failed: {line}" for line in report.failed]
    lines += [f"left: {line}" for line in report.left]
    return lines if report.applied or report.failed or report.left else ["nothing to do"]


def _print_json(document: object) -> None:
    print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def _ask(changes: int) -> bool:
    """Ask for approval on the terminal. Raises Refused if stdin is not a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise Refused(
            "stdin is not a terminal, so the plan cannot be approved; pass --yes to apply it without approval"
        )
    which = "this change" if changes == 1 else f"these {changes} changes"
    print(f"Apply {which} and any follow-up changes? Only 'yes' is accepted: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "yes"


# ------------------------------------------------------------------------------------------------------------ setup


def _opened(
    options: argparse.Namespace,
) -> tuple[Kube, Cloud, dict[str, Callable[[], Found]], Safeguard, Callable[[Sequence[Evidence]], None]]:
    """The clients, each controller's planner, the safeguard, and the proof. Raises for every invalid option."""
    logs.configure(cli_options.log_level(options), options.logging_format)
    cloud = cli_options.cloud(options)
    names = cli_options.chosen(options, _left_out(cloud))
    kube, settings, guard = _settings(options, names)
    machines = InstanceSnapshot(cloud.instances)
    finders: dict[str, Callable[[], Found]] = {
        name: partial(find, name, kube, cloud, machines, settings) for name in names
    }

    def proves(found: Sequence[Evidence]) -> None:
        ranges = settings.service.pod_ranges
        prove(found, lambda: kube.list(NODES).items, cloud, machines, ranges, guard.binding)

    return kube, cloud, finders, guard, proves


def _settings(options: argparse.Namespace, names: Sequence[str]) -> tuple[Kube, PlanSettings, Safeguard]:
    kube = kubernetes(options)
    settings, guard = cli_options.plan_settings(options, kube, names)
    return kube, settings, guard


def _left_out(cloud: Cloud) -> frozenset[str]:
    names = not_offered(cloud)
    if names:
        _log.info("controllers not supported cloud=%s controllers=%s", cloud.provider_name, ",".join(sorted(names)))
    return names


def _wait_for(kube: Kube) -> None:
    """Wait for the API server: the pod's network may become ready a little later than the pod."""
    deadline = time.monotonic() + _START_TIMEOUT
    while True:
        try:
            kube.version()
            return
        except UnreachableError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_START_PAUSE)


def _parsers() -> tuple[Parser, Mapping[str, Parser]]:
    """The main parser, and the parsers of the commands that take a config file, by command name."""
    parser = Parser(
        prog="cloud-controller",
        description="A cloud controller manager that shows its plan. It initialises nodes, writes pod routes, creates "
        "load balancers for Services of type LoadBalancer and provisions volumes for PersistentVolumeClaims.",
        epilog=f"Controllers: {', '.join(NAMES)}. Upstream's controller names are accepted too.",
    )
    parser.add_argument("--version", action="version", version=package_version("cloud-controller"))
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command_name")
    runs = commands.add_parser("run", help="run the controllers as a daemon", description=run.__doc__)
    cli_options.add_common(runs)
    cli_options.add_run(runs)
    runs.set_defaults(command=run)
    plans = commands.add_parser(
        "plan", help="show what the controllers would do without changing anything", description=plan.__doc__
    )
    cli_options.add_common(plans)
    plan_services.add(plans)
    cli_options.add_lease_name(
        plans.add_argument_group("lease", "the Lease that stores the confirmations of held actions")
    )
    plans.set_defaults(command=plan)
    applies = commands.add_parser("apply", help="apply the controllers' plan once", description=apply.__doc__)
    cli_options.add_common(applies)
    cli_options.add_lease(applies)
    cli_options.add_outcome(applies)
    applies.set_defaults(command=apply)
    confirms = commands.add_parser(
        "confirm", help="release held actions by the digests that `plan` shows", description=confirm.__doc__
    )
    confirms.add_argument("digest", nargs="+", metavar="DIGEST", help="digest of a held action")
    cli_options.add_cluster(confirms.add_argument_group("cluster"))
    cli_options.add_lease_name(confirms.add_argument_group("lease"))
    confirms.set_defaults(command=confirm)
    cleans = commands.add_parser(
        "cleanup", help="delete what a cluster that no longer exists left in its cloud", description=cleanup.__doc__
    )
    cli_options.add_cleanup(cleans)
    cli_options.add_outcome(cleans)
    cleans.set_defaults(command=cleanup)
    prints = commands.add_parser(
        "manifests", help="print the manifests that run the daemon in a cluster", description=cli_manifests.run.__doc__
    )
    cli_manifests.add(prints)
    prints.set_defaults(command=partial(cli_manifests.run, partial(cli_options.parse, parser, {"run": runs})))
    doctors = commands.add_parser(
        "doctor",
        help="find what is wrong with the cloud controller manager",
        description=cli_doctor.run.__doc__,
    )
    cli_options.add_common(doctors)
    cli_doctor.add(doctors)
    doctors.set_defaults(command=cli_doctor.run)
    versions = commands.add_parser("version", help="print the version", description=version.__doc__)
    versions.set_defaults(command=version)
    return parser, {"run": runs, "plan": plans, "apply": applies, "doctor": doctors}
