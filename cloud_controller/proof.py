"""Proves before the first write that the cloud config and the Kubernetes cluster belong together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from cloud_controller.binding import Binding, Evidence, judge
from cloud_controller.cloud import AccessDenied, Cloud, InvalidConfiguration
from cloud_controller.controllers import route
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.kube import Object

_log = logging.getLogger(__name__)


def prove(
    found: Sequence[Evidence],
    nodes: Callable[[], Iterable[Object]],
    cloud: Cloud,
    machines: InstanceSnapshot,
    ranges: Sequence[str],
    binding: Binding,
) -> None:
    """Raise ForeignCluster if what the cloud has of the cluster is another Kubernetes cluster's.

    `found`: the controllers' evidence. If none of it is alive, machines and routes (`ranges`: the pod CIDRs, if known)
    are evidence too, whichever controllers run. Raises the errors of `cloud` and `nodes`.
    """
    judge(found, binding, cloud.cluster_id)
    if not binding.uid or binding.moved_from is not None or any(each.alive for each in found):
        return
    present = tuple(nodes())
    of_machines = machines.evidence(present)
    judge([of_machines], binding, cloud.cluster_id)
    if of_machines.alive or not ranges or cloud.routes is None or any(each.kind == route.EVIDENCE for each in found):
        return

    def of_routes() -> Evidence:
        return route.evidence(route.observe_nodes(present, cloud, machines), route.RouteOptions(tuple(ranges)))

    if (routes := readable("routes", of_routes)) is not None:
        judge([routes], binding, cloud.cluster_id)


def readable(of: str, read: Callable[[], Evidence | None]) -> Evidence | None:
    """The evidence; None if the credentials do not allow to read it. Raises other errors of the cloud."""
    try:
        return read()
    except (AccessDenied, InvalidConfiguration) as error:
        # Whoever needs it will report it; the others need not wait.
        _log.warning("could not read evidence of=%s error=%r", of, str(error))
        return None
