"""The command `cloud-controller`: run the daemon, or show what it would do.

Exit codes: 0 done, 1 it could not be done (one line on stderr says why), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version as package_version
from pathlib import Path

import orjson

from cloud_controller import clouds, logs
from cloud_controller.cli_options import add_common, add_run, kubernetes, manager_options, route_options
from cloud_controller.cloud import Cloud, CloudError, InvalidConfiguration
from cloud_controller.controllers import NAMES, node, node_lifecycle, route, service
from cloud_controller.kube import ApiError, Kube, KubeconfigError, UnreachableError
from cloud_controller.manager import Manager
from cloud_controller.options import controllers
from cloud_controller.plan import Plan


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; answers its exit code (argparse exits with 2 by itself)."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except (CloudError, ApiError, KubeconfigError, OSError) as error:
        print(f"cloud-controller: {error}", file=sys.stderr)
        return 1


def run(options: argparse.Namespace) -> int:
    """`cloud-controller run`: the daemon, until SIGTERM or SIGINT."""
    logs.configure(options.log_level)
    settings = manager_options(options)
    cloud = _cloud(options)
    kube = kubernetes(options)
    cloud.check_access(settings.controllers)
    _wait_for(kube, settings.start_timeout)
    manager = Manager(kube, cloud, settings)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return manager.run(stop)


def plan(options: argparse.Namespace) -> int:
    """`cloud-controller plan`: observe and plan, for each controller; changes nothing."""
    logs.configure(options.log_level)
    chosen = controllers(options.controllers)
    cloud = _cloud(options)
    kube = kubernetes(options)
    if route.NAME in chosen:
        route_options(options)  # What is wrong with them is told before anything is asked.
    plans = {name: _plan(name, kube, cloud, options) for name in chosen}
    if options.output == "json":
        document = {name: found.to_json() for name, found in plans.items()}
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
        return 0
    for name, found in plans.items():
        print(f"{name}: {_counted(found)}")
        for action in found:
            print(f"  {action}")
            for change in action.changes:
                print(f"       {change}")
    return 0


def version(_: argparse.Namespace) -> int:
    """`cloud-controller version`."""
    print(package_version("cloud-controller"))
    return 0


def _plan(name: str, kube: Kube, cloud: Cloud, options: argparse.Namespace) -> Plan:
    match name:
        case node.NAME:
            return node.plan(node.observe(kube, cloud))
        case node_lifecycle.NAME:
            return node_lifecycle.plan(node_lifecycle.observe(kube, cloud))
        case route.NAME:
            settings = route_options(options)
            return route.plan(route.observe(kube, cloud), settings)
        case service.NAME:
            rules = service.ServiceOptions(backend_nodes=options.backend_nodes)
            return service.plan(service.observe(kube, cloud), rules)
    raise ValueError(f"{name!r} is no controller")


def _counted(found: Plan) -> str:
    return ", ".join(f"{count} to {kind}" for kind, count in found.counts.items()) or "nothing to do"


def _wait_for(kube: Kube, seconds: float) -> None:
    """In a pod, the way to the API server may come up a little later than the pod."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            kube.version()
            return
        except UnreachableError:
            if time.monotonic() >= deadline:
                raise


def _cloud(options: argparse.Namespace) -> Cloud:
    try:
        text = "" if options.cloud_config is None else Path(options.cloud_config).read_text()
    except UnicodeDecodeError:
        raise InvalidConfiguration("cloud-config", f"{options.cloud_config} is no text") from None
    return clouds.load(options.cloud, text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cloud-controller",
        description="A cloud controller manager that shows its plan: initialises nodes, writes pod routes, turns "
        "Services of type LoadBalancer into load balancers.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    runs = commands.add_parser("run", help="run the controllers as a daemon", description=run.__doc__)
    add_common(runs)
    add_run(runs)
    runs.set_defaults(command=run)
    plans = commands.add_parser(
        "plan", help="show what the controllers would do, and change nothing", description=plan.__doc__
    )
    add_common(plans)
    plans.add_argument("--output", choices=("text", "json"), default="text", help="default: text")
    plans.set_defaults(command=plan)
    versions = commands.add_parser("version", help="print the version", description=version.__doc__)
    versions.set_defaults(command=version)
    parser.epilog = f"Controllers: {', '.join(NAMES)}; upstream's names are understood as well."
    return parser


if __name__ == "__main__":
    sys.exit(main())
