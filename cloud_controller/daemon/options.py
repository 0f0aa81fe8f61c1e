"""The daemon's options, with upstream's names and defaults where they fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from cloud_controller import rbac
from cloud_controller.controllers.route import RouteOptions
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.daemon.leader import LeaseTimes
from cloud_controller.kube import Kube


@dataclass(frozen=True)
class Serving:
    """The HTTPS server's options.

    - `port`: 0 picks a free one.
    - `certificate`: PEM files of certificate and key; None: self-signed.
    - `open_paths`: served without authorization, including everything below them (`/healthz` means `/healthz/*`).
    - `protected`: other paths require a bearer token that the API server authenticates and authorizes.
    - `authentication`, `authorization`: the clients for these reviews; None: the daemon's own.
    - `configuration`: shown in /configz.
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
    """Required by controller `route` only."""
    service: ServiceOptions = field(default_factory=ServiceOptions)
    leader_elect: bool = True
    lease_namespace: str = rbac.LEASE_NAMESPACE
    lease_name: str = rbac.LEASE_NAME
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
    serving: Serving | None = None
    """None: no HTTP server."""
    moved_from_cluster: str | None = None
    """See `binding.Binding`."""
    credential_expires: date | None = None
    """The last day of the cloud credential, for its metric."""
    dry_run: bool = False
    """Log plans without writing anything."""
    node_monitor_period: float = 5.0
    node_deletion_grace_period: float = 0.0
    node_status_update_frequency: float = 300.0
    route_reconciliation_period: float = 30.0
    workers: int = 16
    status_workers: int = 16
    """Writes at once of a pass over all nodes."""
