"""Plans the deletion of what a deleted cluster left in its cloud, for `cloud-controller cleanup`.

Deletes everything with the cluster's tags: load balancers and their parts, its parts of shared ones, volumes, and pod
routes. Preserved resources no longer carry these tags and stay, as do machines and networks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

from cloud_controller.binding import UNBOUND, own_tags
from cloud_controller.cloud import Cloud, InstanceState, TellsClusters, Untagged
from cloud_controller.controllers import route
from cloud_controller.controllers.service import controller as service
from cloud_controller.controllers.service import plan as service_plan
from cloud_controller.controllers.volume import controller as volume
from cloud_controller.controllers.volume.operations import DetachVolume, DiscardVolume
from cloud_controller.converge import Refused
from cloud_controller.kube import ApiError, Kube, KubeApi, NotFoundError
from cloud_controller.listed import listed
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    CLUSTER_UID_TAG,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.operations import LoadBalancers
from cloud_controller.plan import Action, ActionKind, Plan
from cloud_controller.planning import Found
from cloud_controller.safeguard import cluster_uid
from cloud_controller.volumes import CLAIM_TAG, AttachmentState, Volume, VolumeState

WHY = "its cluster is gone"
_PROBE_SECONDS = 5.0


class GoneCluster(Kube):
    """Stands for the API server of a deleted cluster: every object is not found."""

    def __init__(self) -> None:
        """Does not connect to anything."""

    def _json(self, method: str, path: str, **_: Any) -> NoReturn:
        raise NotFoundError(404, "NotFound", f"{method} {path}: {WHY}")


@dataclass(frozen=True, slots=True)
class Stake:
    """What of the cluster would be deleted: how many of each kind.

    `shared`: load balancers of which only its parts go. `uids`: the Kubernetes clusters that tags name; "" for an
    object that names none. `neighbours`: those that tags of other cluster ids name.
    """

    load_balancers: int = 0
    shared: int = 0
    volumes: int = 0
    routes: int = 0
    uids: Collection[str] = frozenset()
    neighbours: Collection[str] = frozenset()

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers, for `--output json`."""
        shared, routes = {"shared_load_balancers": self.shared}, {"pod_routes": self.routes}
        return {"load_balancers": self.load_balancers, **shared, "volumes": self.volumes, **routes}

    def __bool__(self) -> bool:
        return any(self.counts.values())

    def __str__(self) -> str:
        data = "with its data" if self.volumes == 1 else "with their data"
        found = (
            (self.load_balancers, _counted(self.load_balancers, "load balancer")),
            (self.shared, f"the cluster's parts of {_counted(self.shared, 'shared load balancer')}"),
            (self.volumes, f"{_counted(self.volumes, 'volume')} {data}"),
            (self.routes, _counted(self.routes, "pod route")),
        )
        return ", ".join(words for count, words in found if count)


def at_stake(cloud: Cloud, routes: route.RouteOptions | None) -> Stake:
    """Read what a cleanup would delete. Raises `CloudError`."""
    observed = cloud.load_balancers.read() if cloud.load_balancers is not None else ()
    ours = [lb for lb in observed if any(owner.cluster_id == cloud.cluster_id for owner in lb.owners)]
    whole = [lb for lb in ours if all(owner.cluster_id == cloud.cluster_id for owner in lb.owners) and lb.owner]
    every = cloud.volumes.list() if cloud.volumes else ()
    volumes = [each for each in every if each.belongs_to(cloud.cluster_id)]
    teardown = _routes(cloud, routes).plan.changes if cloud.routes is not None and routes is not None else ()
    tags = [*(tags for lb in ours for tags in own_tags(lb.model, cloud.cluster_id)), *(each.tags for each in volumes)]
    uids = frozenset(each.get(CLUSTER_UID_TAG, "") for each in tags)
    all_tags = (
        *(each for lb in observed for each in (lb.model.tags, *lb.model.part_tags)),
        *(one.tags for one in every),
    )
    others = (each for each in all_tags if each.get(CLUSTER_TAG, cloud.cluster_id) != cloud.cluster_id)
    neighbours = frozenset(uid for each in others if (uid := each.get(CLUSTER_UID_TAG)))
    return Stake(len(whole), len(ours) - len(whole), len(volumes), len(teardown), uids, neighbours)


def require_dead(cloud: Cloud) -> bool:
    """Raise Refused, which nothing overrides, while the cloud shows the cluster or a machine of it.

    True: the cloud answers that there is no such cluster. False: it cannot tell.

    WITHOUT THIS CHECK, A LIVE CLUSTER WOULD LOSE ALL LOAD BALANCERS AND VOLUMES. Any `CloudError` leaves the question
    open, and is therefore raised too.
    """
    has_cluster = cloud.has_cluster() if isinstance(cloud, TellsClusters) else None
    if has_cluster:
        raise Refused(_lives(cloud, f"{cloud.provider_name} shows it, whether its API server answers or not"))
    machines = () if isinstance(cloud.instances, Untagged) else cloud.instances.list()
    if alive := [each for each in machines if each.state is not InstanceState.TERMINATED]:
        named = listed([f"{each.id} ({each.name}, {each.state})" for each in alive])
        raise Refused(_lives(cloud, f"it has {_counted(len(alive), 'machine')}: {named}"))
    return has_cluster is False


def other_ids(cloud: Cloud) -> Sequence[str] | None:
    """The cluster ids that tags in the account name, as far as the cloud tells; None if the cloud config's is one."""
    ids = cloud.cluster_ids() if isinstance(cloud, TellsClusters) else ()
    return None if cloud.cluster_id in ids else sorted(ids)


def evidence(cloud: Cloud, stake: Stake, kube: KubeApi | None, *, answered: bool, said: bool) -> str:
    """What shows that the cluster is gone. Raises Refused if nothing does, or if it lives.

    `kube`: its former API server. `answered`: the cloud says so (`require_dead`). `said`: the user does.
    DANGER: ANY OTHER CLUSTER'S API SERVER SHOWS THE SAME AS ONE THAT TOOK THIS ONE'S PLACE.
    """
    doubt = f"{cloud.provider_name} cannot tell"
    if kube is not None:
        try:
            return _another_cluster(cloud, stake, kube.with_timeout(_PROBE_SECONDS))
        except _Unknown as error:
            doubt = str(error)
    if answered:
        return f"{cloud.provider_name} answers that there is no such cluster"
    if said:
        return "--cluster-is-gone says so"
    raise Refused(
        f"nothing shows that cluster {cloud.cluster_id} is gone: {doubt}. At stake: {stake}. Pass --kubeconfig of its "
        "former API server, if another cluster answers there now, or --cluster-is-gone, if you know that it is gone"
    )


class _Unknown(Exception):
    """The API server does not tell which cluster it is."""


def _another_cluster(cloud: Cloud, stake: Stake, kube: KubeApi) -> str:
    try:
        uid = cluster_uid(kube)
    except (ApiError, KeyError, TypeError) as error:
        raise _Unknown(f"the API server does not tell which cluster it is ({error})") from error
    if uid in stake.uids:
        raise Refused(_lives(cloud, f"its API server answers (UID {uid}, which the tags name)"))
    if uid in stake.neighbours:
        raise _Unknown(f"the kubeconfig is for another cluster of this account (UID {uid}), which proves nothing")
    if "" in stake.uids or not stake.uids:
        raise _Unknown(f"another cluster may answer (UID {uid}), but not all that is at stake is tagged with a UID")
    return f"another cluster answers in its place: UID {uid} instead of {', '.join(sorted(stake.uids))}"


def _lives(cloud: Cloud, why: str) -> str:
    return (
        f"cluster {cloud.cluster_id} still exists: {why}. Delete its Services and PersistentVolumeClaims there; its "
        "controller then deletes their load balancers and volumes"
    )


def _counted(count: int, of: str) -> str:
    return f"{count} {of}" if count == 1 else f"{count} {of}s"


def finders(cloud: Cloud, routes: route.RouteOptions | None) -> Mapping[str, Callable[[], Found]]:
    """The planner of each controller's deletions. Without `routes` (the pod CIDRs), routes have none."""
    found: dict[str, Callable[[], Found]] = {}
    if cloud.load_balancers is not None:
        found[service.NAME] = partial(_load_balancers, cloud.load_balancers, cloud.cluster_id)
    if cloud.volumes is not None:
        volumes = cloud.volumes
        found[volume.NAME] = lambda: plan_volumes(volumes.list(), cloud.cluster_id)
    if cloud.routes is not None and routes is not None:
        found[route.NAME] = partial(_routes, cloud, routes)
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


def _routes(cloud: Cloud, routes: route.RouteOptions) -> Found:
    return Found(route.plan_teardown(route.observe_table(cloud), routes))


def _load_balancers(load_balancers: LoadBalancers, cluster_id: str) -> Found:
    return plan_load_balancers(load_balancers.read(), cluster_id, load_balancers.builder.catalogue)


def _named(owner: Owner) -> Owner:
    """The owner with a placeholder name if the tag that names the Service is missing."""
    return owner if owner.name else replace(owner, namespace="unknown", name=owner.uid)
