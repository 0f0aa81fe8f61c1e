"""The command line's options, and what they mean; names and defaults are upstream's where they fit."""

from __future__ import annotations

import argparse
import re
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cloud_controller import clouds
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controllers.route import RouteOptions
from cloud_controller.controllers.service import ServiceOptions
from cloud_controller.kube import Kube
from cloud_controller.kube.rate_limit import RateLimit
from cloud_controller.leader import LeaseTimes
from cloud_controller.options import ManagerOptions, controllers

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def add_common(parser: argparse.ArgumentParser) -> None:
    """What every command needs to reach the cloud and the cluster."""
    reach = parser.add_argument_group("cloud and cluster")
    reach.add_argument(
        "--cloud",
        "--cloud-provider",
        required=True,
        metavar="NAME",
        help=f"the cloud; known here: {', '.join(clouds.names())}",
    )
    reach.add_argument("--cloud-config", metavar="FILE", help="the cloud's configuration and credentials")
    reach.add_argument("--kubeconfig", metavar="FILE", help="default: the service account of the pod")
    reach.add_argument("--context", metavar="NAME", help="of the kubeconfig; default: its current context")
    reach.add_argument(
        "--kube-api-qps", type=_rate, default=0.0, metavar="N", help="calls a second; 0, the default: no limit"
    )
    reach.add_argument(
        "--kube-api-burst", type=_positive, default=30, metavar="N", help="calls at once under that limit; default: 30"
    )
    what = parser.add_argument_group("controllers")
    what.add_argument(
        "--controllers",
        type=lambda text: text.split(","),
        default=["*"],
        metavar="LIST",
        help="names with commas between them, '*' for all, '-NAME' to take one of them out; default: *",
    )
    what.add_argument("--cluster-name", default="kubernetes", metavar="NAME", help="for people; default: kubernetes")
    what.add_argument("--cluster-cidr", default="", metavar="CIDR[,CIDR]", help="the pods' ranges; needed by route")
    what.add_argument(
        "--delete-foreign-routes",
        **_FLAG,
        help="also remove routes inside the pods' ranges that are not this cluster's; default: report them",
    )
    what.add_argument(
        "--backend-nodes",
        choices=("eligible", "ready-workers"),
        default="eligible",
        help="which nodes load balancers send to: as upstream (KEP-3458), or ready, schedulable workers only",
    )
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info", help="default: info"
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """What the daemon needs besides."""
    periods = parser.add_argument_group("periods", "such as 500ms, 5s, 5m or 12h")
    for name, default, text in _PERIODS:
        periods.add_argument(
            name, type=_duration, default=default, metavar="TIME", help=f"{text}; default: {default:g}s"
        )
    workers = parser.add_argument_group("workers")
    workers.add_argument("--concurrent-service-syncs", type=_positive, default=3, metavar="N", help="default: 3")
    workers.add_argument(
        "--concurrent-node-syncs", type=_positive, default=16, metavar="N", help="writes at once of a pass; default: 16"
    )
    leader = parser.add_argument_group("leader election")
    leader.add_argument(
        "--leader-elect", **_FLAG | {"default": True}, help="work only while holding the lease; default: true"
    )
    leader.add_argument(
        "--leader-elect-resource-namespace", default="kube-system", metavar="NS", help="default: kube-system"
    )
    leader.add_argument(
        "--leader-elect-resource-name",
        default="cloud-controller-manager",
        metavar="NAME",
        help="default: cloud-controller-manager",
    )
    for name, default, text in _LEASE:
        leader.add_argument(
            name, type=_duration, default=default, metavar="TIME", help=f"{text}; default: {default:g}s"
        )
    serving = parser.add_argument_group("serving", "/healthz, /livez, /readyz and /metrics, over plain HTTP")
    serving.add_argument("--bind-address", type=_address, default="127.0.0.1", metavar="IP", help="default: 127.0.0.1")
    serving.add_argument("--secure-port", type=_port, default=10258, metavar="PORT", help="0: none; default: 10258")


def kubernetes(options: argparse.Namespace) -> Kube:
    """The client that the options describe. Raises `KubeconfigError`."""
    limit = RateLimit(options.kube_api_qps, options.kube_api_burst) if options.kube_api_qps > 0 else None
    if options.kubeconfig:
        return Kube.from_file(Path(options.kubeconfig), context=options.context, rate_limit=limit)
    return Kube.in_cluster(rate_limit=limit)


def manager_options(options: argparse.Namespace) -> ManagerOptions:
    """The daemon's options. Raises `InvalidConfiguration`."""
    chosen = controllers(options.controllers)
    return ManagerOptions(
        controllers=chosen,
        route=route_options(options) if "route" in chosen else None,
        service=ServiceOptions(workers=options.concurrent_service_syncs, backend_nodes=options.backend_nodes),
        leader_elect=options.leader_elect,
        lease_namespace=options.leader_elect_resource_namespace,
        lease_name=options.leader_elect_resource_name,
        lease_times=LeaseTimes(
            options.leader_elect_lease_duration,
            options.leader_elect_renew_deadline,
            options.leader_elect_retry_period,
        ),
        bind_address=options.bind_address,
        port=options.secure_port,
        node_monitor_period=options.node_monitor_period,
        node_status_update_frequency=options.node_status_update_frequency,
        route_reconciliation_period=options.route_reconciliation_period,
        workers=options.concurrent_node_syncs,
    )


def route_options(options: argparse.Namespace) -> RouteOptions:
    """The route controller's options. Raises `InvalidConfiguration` for a missing or wrong range."""
    ranges = tuple(filter(None, (part.strip() for part in options.cluster_cidr.split(","))))
    if not ranges:
        why = "nothing is given; controller route needs it"
        raise InvalidConfiguration("cluster-cidr", why, "--cluster-cidr=CIDR, or --controllers='*,-route'")
    return RouteOptions(ranges, delete_foreign=options.delete_foreign_routes)


_PERIODS = (
    ("--node-monitor-period", 5.0, "how often the cloud is asked about nodes that are not ready"),
    ("--node-status-update-frequency", 300.0, "how often all nodes are compared with their machines"),
    ("--route-reconciliation-period", 30.0, "how often the route table is read though no node changed"),
)
_LEASE = (
    ("--leader-elect-lease-duration", 15.0, "after this a lease that is not renewed may be taken"),
    ("--leader-elect-renew-deadline", 10.0, "a leader that could not renew for so long ends"),
    ("--leader-elect-retry-period", 2.0, "between two tries"),
)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


_FLAG: dict[str, Any] = {"type": _boolean, "nargs": "?", "const": True, "default": False, "metavar": "true|false"}


def _duration(text: str) -> float:
    if not re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h))+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write for example 500ms, 10s, 5m or 1h30m")
    seconds = sum(float(n) * _UNITS[unit] for n, _, unit in re.findall(r"(\d+(\.\d+)?)(ms|s|m|h)", text))
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above zero")
    return seconds


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no IP address") from None


def _positive(text: str) -> int:
    return _integer(text, 1, 1000)


def _port(text: str) -> int:
    return _integer(text, 0, 65535)


def _integer(text: str, low: int, high: int) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer from {low} to {high}")
    return int(text)


def _rate(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number such as 20 or 0.5")
    return float(text)
