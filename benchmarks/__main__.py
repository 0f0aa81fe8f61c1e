"""Runs the benchmarks: `python -m benchmarks [NAME]`; one JSON object per line on stdout, everything else on stderr."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from benchmarks.figure import Figure


def _measure(module: str, *arguments: int | str, function: str = "measure", **options: bool) -> Sequence[Figure]:
    # Imported only when it runs.
    figures: Sequence[Figure] = getattr(import_module(f"benchmarks.{module}"), function)(*arguments, **options)
    return figures


def _aws(function: str, count: int, module: str = "aws.workloads", **options: bool) -> Callable[[], Sequence[Figure]]:
    return partial(_measure, module, count, function=function, **options)


def _alicloud(function: str, *counts: int, module: str = "alicloud.workloads") -> Callable[[], Sequence[Figure]]:
    return partial(_measure, module, *counts, function=function)


def _openstack(function: str, *counts: int, module: str = "openstack.workloads") -> Callable[[], Sequence[Figure]]:
    return partial(_measure, module, *counts, function=function)


_restarts = partial(_aws, module="aws.restarts")


BENCHMARKS: dict[str, Callable[[], Sequence[Figure]]] = {
    "control-plane-ready": partial(_measure, "control_plane_ready"),
    "up-local": partial(_measure, "up_local"),
    "preview-local": partial(_measure, "preview_local"),
    "noop-up-local": partial(_measure, "preview_local", function="noop_up"),
    "stacks-diff": partial(_measure, "stacks_diff"),
    "mycloud-nodes-500": partial(_measure, "mycloud_nodes", 500),
    "mycloud-nodes-1000": partial(_measure, "mycloud_nodes", 1000),
    "mycloud-nodes-5000": partial(_measure, "mycloud_nodes", 5000),
    "mycloud-services-500": partial(_measure, "mycloud_services", 500),
    "mycloud-plan-500": partial(_measure, "mycloud_plan_files", 500),
    "mycloud-node-added": partial(_measure, "mycloud_node_added", 500),
    "mycloud-idle": partial(_measure, "mycloud_idle", 5000, 500),
    "aws-nodes-200": _aws("nodes", 200),
    "aws-nodes-1000": _aws("nodes", 1000),
    "aws-nodes-5000": _aws("nodes", 5000),
    "aws-services-10": _aws("services", 10),
    "aws-services-100": _aws("services", 100),
    "aws-services-100-limited": _aws("services", 100, limited=True),
    "aws-node-added": _aws("node_added", 100),
    "aws-annotation": _aws("annotation", 10),
    "aws-restart": _restarts("restart", 10),
    "aws-restart-100": _restarts("checkpoint", 100),
    "aws-restart-500": _restarts("checkpoint", 500),
    "aws-restart-100-limited": _restarts("checkpoint", 100, limited=True),
    "aws-restart-500-limited": _restarts("checkpoint", 500, limited=True),
    "aws-idle": _aws("idle", 10),
    "aws-idle-hour": _aws("idle_hour", 10),
    "aws-delete": _aws("delete", 10),
    "alicloud-nodes-200": _alicloud("nodes", 200),
    "alicloud-nodes-1000": _alicloud("nodes", 1000),
    "alicloud-nodes-5000": _alicloud("nodes", 5000),
    "alicloud-routes-200": _alicloud("routes", 200),
    "alicloud-clb-10": _alicloud("creation", 10, 0),
    "alicloud-clb-100": _alicloud("creation", 100, 0),
    "alicloud-nlb-10": _alicloud("creation", 0, 10),
    "alicloud-nlb-100": _alicloud("creation", 0, 100),
    "alicloud-node-added-10": _alicloud("node_added", 10, 10),
    "alicloud-node-added-100": _alicloud("node_added", 100, 100),
    "alicloud-annotation": _alicloud("annotation"),
    "alicloud-restart": _alicloud("as_recorded", module="alicloud.restarts"),
    "alicloud-restart-100": _alicloud("restart", 100, 100, module="alicloud.restarts"),
    "alicloud-idle": _alicloud("idle"),
    "alicloud-delete": _alicloud("delete"),
    "openstack-nodes-50": _openstack("nodes", 50),
    "openstack-nodes-200": _openstack("nodes", 200),
    "openstack-routes": _openstack("routes"),
    "openstack-load-balancers": _openstack("life", module="openstack.load_balancers"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the named benchmark, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", nargs="?", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    options = parser.parse_args(arguments)
    # So that SIGTERM, too, ends what a benchmark has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for name in [options.name] if options.name else BENCHMARKS:
        for figure in BENCHMARKS[name]():
            print(figure.to_json(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
