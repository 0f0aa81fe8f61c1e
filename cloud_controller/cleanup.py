"""Plans the deletion of what a deleted cluster left in its cloud, for `cloud-controller cleanup`.

Deletes everything with the cluster's tags: load balancers and their parts, its parts of shared ones, volumes, and pod
routes. Preserved resources no longer carry these tags and stay, as do machines and networks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from cloud_controller.binding import UNBOUND
from cloud_controller.cloud import Cloud, Conflict, NotFound
from cloud_controller.controllers import route
from cloud_controller.controllers.service import controller as service
from cloud_controller.controllers.service import plan as service_plan
from cloud_controller.controllers.volume import controller as volume
from cloud_controller.controllers.volume.operations import DetachVolume, DiscardVolume
from cloud_controller.converge import Refused
from cloud_controller.kube import ApiError, Kube, KubeconfigError, NotFoundError, UnreachableError
from cloud_controller.kube_errors import TlsError
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.model import LoadBalancerState, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.operations import LoadBalancers
from cloud_controller.plan import Action, ActionKind, Plan
from cloud_controller.planning import Found
from cloud_controller.volumes import CLAIM_TAG, AttachmentState, Volume, VolumeState

WHY = "its cluster is gone"
_PROBE_SECONDS = 5.0


class GoneCluster(Kube):
    """Stands for the API server of a deleted cluster: every object is not found."""

    def __init__(self) -> None:
        """Does not connect to anything."""

    def _json(self, method: str, path: str, **_: Any) -> NoReturn:
        raise NotFoundError(404, "NotFound", f"{method} {path}: {WHY}")


def require_gone(cloud: Cloud) -> None:
    """Raise Refused if the cloud gives access to the cluster and its API server answers, even with an error.

    WITHOUT THIS CHECK, A LIVE CLUSTER WOULD LOSE ALL LOAD BALANCERS AND VOLUMES. Any other `CloudError`, which leaves
    the question open, is therefore raised too.
    """
    try:
        kube = Kube.from_kubeconfig(cloud.cluster_access()).with_timeout(_PROBE_SECONDS)
    except (NotFound, Conflict, KubeconfigError):
        return  # There is no cluster, or no access that works.
    try:
        kube.version()
    except ApiError as error:
        # A server that rejects our request runs, and so does one whose certificate the kubeconfig does not expect.
        if isinstance(error, UnreachableError) and not isinstance(error, TlsError):
            return
    raise Refused(
        f"cluster {cloud.cluster_id} still exists: {kube.server} answers. Delete its Services and "
        "PersistentVolumeClaims there; its controller then deletes their load balancers and volumes"
    )


def finders(cloud: Cloud, routes: route.RouteOptions | None) -> Mapping[str, Callable[[], Found]]:
    """The planner of each controller's deletions. Without `routes` (the pod CIDRs), routes have none."""
    found: dict[str, Callable[[], Found]] = {}
    if cloud.load_balancers is not None:
        found[service.NAME] = partial(_load_balancers, cloud.load_balancers, cloud.cluster_id)
    if cloud.volumes is not None:
        volumes = cloud.volumes
        found[volume.NAME] = lambda: plan_volumes(volumes.list(), cloud.cluster_id)
    if cloud.routes is not None and routes is not None:
        found[route.NAME] = lambda: Found(route.plan_teardown(route.observe_table(cloud), routes))
    return found


def plan_load_balancers(observed: Sequence[ObservedLoadBalancer], cluster_id: str, catalogue: Catalogue) -> Found:
    """Delete all that belongs to the cluster's Services; other parts of shared load balancers stay."""
    owners = {owner.uid: owner for lb in observed for owner in lb.owners if owner.cluster_id == cluster_id}
    plan = Plan()
    for owner in sorted(map(_named, owners.values()), key=lambda each: (each.namespace, each.name)):
        plan += Plan.of(
            replace(action, reason=WHY) if action.operation else action
            # UNBOUND: the cluster is gone, so its UID cannot be compared, and nobody could confirm a held action.
            for action in service_plan.plan_orphans(observed, owner, catalogue, UNBOUND, deleted=True)
        )
    concerned = [lb for lb in observed if any(owner.cluster_id == cluster_id for owner in lb.owners)]
    busy = (lb for lb in concerned if not lb.settled or lb.state is LoadBalancerState.DELETING)
    return Found(
        plan,
        busy=tuple(sorted(f"load balancer {lb.id}" for lb in busy)),
        load_balancers={lb.id: lb for lb in observed},
    )


def plan_volumes(volumes: Iterable[Volume], cluster_id: str) -> Found:
    """Detach and delete every volume of the cluster's claims. DATA IS LOST, including that of retained volumes."""
    plan: list[Action] = []
    busy: list[str] = []
    for each in sorted(volumes, key=lambda each: each.id):
        if not each.belongs_to(cluster_id):
            continue
        target = f"volume/{each.id}"
        detaching = any(found.state is AttachmentState.DETACHING for found in each.attachments)
        if each.state is VolumeState.DELETING or detaching:
            busy.append(target)
        elif each.attachments:
            where = each.attachments[0].provider_id
            detach = DetachVolume(None, each.id, where)
            plan.append(Action(ActionKind.UPDATE, target, f"detach it from {where}", reason=WHY, operation=detach))
        else:
            summary = f"delete the volume of claim {each.tags.get(CLAIM_TAG, '?')} ({each.size_gib} GiB)"
            plan.append(Action(ActionKind.DELETE, target, summary, reason=WHY, operation=DiscardVolume(each)))
    return Found(Plan.of(plan), busy=tuple(busy))


def _load_balancers(load_balancers: LoadBalancers, cluster_id: str) -> Found:
    return plan_load_balancers(load_balancers.read(), cluster_id, load_balancers.builder.catalogue)


def _named(owner: Owner) -> Owner:
    """The owner with a placeholder name if the tag that names the Service is missing."""
    return owner if owner.name else replace(owner, namespace="unknown", name=owner.uid)
