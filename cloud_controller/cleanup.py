"""What a cluster that is gone has left in its cloud, as plans that delete it: `cloud-controller cleanup`.

Everything that carries the cluster's tags goes: load balancers with their parts, parts on shared ones, volumes, and
pod routes. What was preserved on purpose carries none of them any more and stays, and so do machines and networks.
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
from cloud_controller.load_balancers.model import LoadBalancerState, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.operations import LoadBalancers
from cloud_controller.plan import Action, ActionKind, Plan
from cloud_controller.planning import Found
from cloud_controller.volumes import CLAIM_TAG, AttachmentState, Volume, VolumeState

WHY = "its cluster is gone"
_PROBE_SECONDS = 5.0


class GoneCluster(Kube):
    """The API server of a cluster that is gone: there, nothing exists any more."""

    def __init__(self) -> None:
        """There is nothing to connect to."""

    def _json(self, method: str, path: str, **_: Any) -> NoReturn:
        raise NotFoundError(404, "NotFound", f"{method} {path}: {WHY}")


def require_gone(cloud: Cloud) -> None:
    """Raise Refused if the cloud gives access to the cluster and its API server answers, whatever it answers.

    WITHOUT THIS, a cluster that lives would lose all its load balancers and volumes. So a cloud that does not tell
    (any other `CloudError`) ends it too.
    """
    try:
        kube = Kube.from_kubeconfig(cloud.cluster_access()).with_timeout(_PROBE_SECONDS)
    except (NotFound, Conflict, KubeconfigError):
        return  # There is none, or none that works.
    try:
        kube.version()
    except UnreachableError:
        return
    except ApiError:
        pass  # It answers, though not to us.
    raise Refused(
        f"cluster {cloud.cluster_id} is not gone: {kube.server} answers. Delete its Services and claims there, and its "
        "controller deletes what it made for them"
    )


def finders(cloud: Cloud, routes: route.RouteOptions | None) -> Mapping[str, Callable[[], Found]]:
    """By controller, what plans the deletion of its objects; none for routes without `routes` (the pods' ranges)."""
    found: dict[str, Callable[[], Found]] = {}
    if cloud.load_balancers is not None:
        found[service.NAME] = partial(_load_balancers, cloud.load_balancers, cloud.cluster_id)
    if cloud.volumes is not None:
        volumes = cloud.volumes
        found[volume.NAME] = lambda: plan_volumes(volumes.list(), cloud.cluster_id)
    if cloud.routes is not None and routes is not None:
        found[route.NAME] = lambda: Found(route.plan_teardown(route.observe_table(cloud), routes))
    return found


def plan_load_balancers(observed: Sequence[ObservedLoadBalancer], cluster_id: str, builder: LoadBalancers) -> Found:
    """All that belongs to the cluster's Services is deleted; no other part of a shared load balancer is touched."""
    owners = {owner.uid: owner for lb in observed for owner in lb.owners if owner.cluster_id == cluster_id}
    plan = Plan()
    for owner in sorted(map(_named, owners.values()), key=lambda each: (each.namespace, each.name)):
        plan += Plan.of(
            replace(action, reason=WHY) if action.operation else action
            # Of whatever Kubernetes cluster of this id: nobody is there to compare with, or to confirm anything.
            for action in service_plan.plan_orphans(observed, owner, builder.catalogue, UNBOUND, deleted=True)
        )
    concerned = [lb for lb in observed if any(owner.cluster_id == cluster_id for owner in lb.owners)]
    busy = (lb for lb in concerned if not lb.settled or lb.state is LoadBalancerState.DELETING)
    return Found(plan, busy=tuple(sorted(f"load balancer {lb.id}" for lb in busy)))


def plan_volumes(volumes: Iterable[Volume], cluster_id: str) -> Found:
    """Every volume of the cluster's claims is detached and deleted. DATA ARE LOST, those of retained volumes too."""
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
            summary = f"delete the {each.size_gib} GiB of claim {each.tags.get(CLAIM_TAG, '?')}"
            plan.append(Action(ActionKind.DELETE, target, summary, reason=WHY, operation=DiscardVolume(each)))
    return Found(Plan.of(plan), busy=tuple(busy))


def _load_balancers(load_balancers: LoadBalancers, cluster_id: str) -> Found:
    return plan_load_balancers(load_balancers.read(), cluster_id, load_balancers)


def _named(owner: Owner) -> Owner:
    """The owner with what a target needs, where the tag that names the Service is missing."""
    return owner if owner.name else replace(owner, namespace="unknown", name=owner.uid)
