"""What a daemon can be told: its options, checked, with upstream's names and defaults where they fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloud_controller import rbac
from cloud_controller.cloud import Cloud, InvalidConfiguration
from cloud_controller.controllers import NAMES
from cloud_controller.controllers.route import RouteOptions
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.daemon.leader import LeaseTimes
from cloud_controller.kube import Kube


@dataclass(frozen=True)
class Serving:
    """What is served over HTTPS, where, and to whom. Port 0 picks a free one.

    `certificate`: PEM files of certificate and key; None makes a self-signed one. `protected`: paths that are not open
    (themselves, or as `/healthz/*`) ask for a bearer token, which the API server must know (`authentication`) and whose
    user it must allow to get the path (`authorization`); None asks it as the daemon. `configuration` is for /configz.
    """

    address: str = "127.0.0.1"
    port: int = 10258
    certificate: tuple[Path, Path] | None = None
    open_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    protected: bool = True
    authentication: Kube | None = None
    authorization: Kube | None = None
    configuration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ManagerOptions:
    """How the daemon runs. Times are seconds; `controllers` are canonical names."""

    controllers: tuple[str, ...]
    route: RouteOptions | None = None
    """Needed by controller `route` alone."""
    service: ServiceOptions = field(default_factory=ServiceOptions)
    leader_elect: bool = True
    lease_namespace: str = rbac.LEASE_NAMESPACE
    lease_name: str = rbac.LEASE_NAME
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
    serving: Serving | None = None
    """None: no HTTP server."""
    moved_from_cluster: str | None = None
    """See `binding.Binding`."""
    dry_run: bool = False
    """Plan and log, and write nothing anywhere."""
    node_monitor_period: float = 5.0
    node_deletion_grace_period: float = 0.0
    node_status_update_frequency: float = 300.0
    route_reconciliation_period: float = 30.0
    workers: int = 16
    status_workers: int = 16
    """Writes at once of a pass over all nodes."""


def controllers(given: Sequence[str], not_offered: Collection[str] = ()) -> tuple[str, ...]:
    """The controllers that a `--controllers` list means: names or upstream's aliases, `*` for all, `-NAME` for not.

    Those in `not_offered` (see there) are left out of `*`, as upstream does. Raises `InvalidConfiguration` for a name
    that is none, for one in `not_offered`, and where nothing is left.
    """
    chosen: set[str] = set()
    for item in filter(None, (item.strip() for item in given)):
        if item == "*":
            chosen.update(name for name in NAMES if name not in not_offered)
        elif not item.startswith("-"):
            chosen.add(rbac.canonical(item))
    for item in (item.strip() for item in given):
        if item.startswith("-"):
            # As upstream: `-route` alone means nothing; it takes from what `*` or names gave.
            chosen.discard(rbac.canonical(item[1:]))
    for name in sorted(chosen & {*not_offered}):
        raise InvalidConfiguration("controllers", f"the cloud offers nothing to {name}", f"'*', or without {name}")
    if not chosen:
        raise InvalidConfiguration("controllers", "no controller is left", f"*, -NAME, {', '.join(NAMES)}")
    return tuple(name for name in NAMES if name in chosen)


def not_offered(cloud: Cloud) -> frozenset[str]:
    """The controllers for which this cloud has no work: its networks have no route tables, say."""
    offers = {"route": cloud.routes, "service": cloud.load_balancers, "volume": cloud.volumes}
    return frozenset(name for name, offer in offers.items() if offer is None)
