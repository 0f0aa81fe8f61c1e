"""Do this cloud config and this Kubernetes cluster belong together? Pure rules over what both sides say.

A cluster's identity is the UID of its namespace `kube-system`. Everything that the controllers make carries it as a
tag, beside the cluster id of the cloud config. With cluster A's cloud config and cluster B's kubeconfig, or with an
etcd that lost its data, A's objects look as if nobody needed them any more: here is what tells the difference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cloud_controller.cloud_errors import CloudError
from cloud_controller.load_balancers.model import CLUSTER_UID_TAG, Built, LoadBalancerModel, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.sharing import LEFT_TAG

NOTHING = "none"
"""The value of `--moved-from-cluster` with which a cluster begins without any of its objects."""
_SHOWN = 5


class ForeignCluster(CloudError):
    """The cloud config and the Kubernetes cluster do not belong together; nothing may be written to either."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The identity of the Kubernetes cluster. With an empty `uid`, nothing is compared or tagged.

    `moved_from` (`--moved-from-cluster`): the UID of the cluster whose objects this one takes over on purpose, or
    `none`: it begins without the objects that the cloud still has of this cluster id.
    """

    uid: str = ""
    moved_from: str | None = None

    @property
    def tags(self) -> dict[str, str]:
        """The tags of everything that the controllers make, beside its owner's."""
        return {CLUSTER_UID_TAG: self.uid} if self.uid else {}

    def foreign_uid(self, tags: Mapping[str, str]) -> str | None:
        """The UID of the other Kubernetes cluster whose object carries these tags; None if it is not another's."""
        tagged = tags.get(CLUSTER_UID_TAG)
        return tagged if self.uid and tagged not in (None, "", self.uid, self.moved_from) else None

    def tagged(self, built: Built) -> Built:
        """The load balancer that a live Service asks for, with this cluster's tags on whatever is the Service's."""
        if not self.uid:
            return built
        model = built.model
        listeners = tuple(replace(each, tags=self._added(each.tags)) for each in model.listeners)
        pools = tuple(replace(each, tags=self._added(each.tags)) for each in model.pools)
        return replace(built, model=replace(model, tags=self._added(model.tags), listeners=listeners, pools=pools))

    def _added(self, tags: Mapping[str, str]) -> Mapping[str, str]:
        return {**tags, **self.tags} if Owner.of_tags(tags) else tags


UNBOUND = Binding()
"""Of a plan that is made without a cluster, or before its identity is known."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the cloud has of one kind of this cluster id's objects.

    `found`: how many there are; `alive`: how many of them belong to a live Service, claim, PersistentVolume or Node of
    this Kubernetes cluster; `foreign`: the names of those that carry another cluster's UID, by that UID.
    """

    kind: str
    found: int = 0
    alive: int = 0
    foreign: Mapping[str, Sequence[str]] = field(default_factory=dict)


def of_load_balancers(
    observed: Iterable[ObservedLoadBalancer], services: Collection[str], cluster_id: str, binding: Binding
) -> Evidence:
    """The evidence of load balancers; `services` are the UIDs of the live Services."""
    found = alive = 0
    foreign: dict[str, list[str]] = {}
    for lb in observed:
        own = {owner.uid for owner in lb.owners if owner.cluster_id == cluster_id}
        if LEFT_TAG in lb.model.tags and lb.owner:
            own.discard(lb.owner.uid)  # Its Service said itself that it is needed no more, and may be long gone.
        found += bool(own)
        alive += bool(own & {*services})
        for tags in _own_tags(lb.model, cluster_id):
            if uid := binding.foreign_uid(tags):
                foreign.setdefault(uid, []).append(lb.id)
    return Evidence("load balancers", found, alive, foreign)


def judge(evidence: Sequence[Evidence], binding: Binding, cluster_id: str) -> None:
    """Raise ForeignCluster unless the cloud's objects may be this Kubernetes cluster's."""
    for each in evidence:
        for uid, names in each.foreign.items():
            raise ForeignCluster(
                f"cluster {cluster_id}: {each.kind} {_listed(names)} were made for the Kubernetes cluster {uid}, and "
                f"this one is {binding.uid} (the UID of namespace kube-system): the cloud config or the kubeconfig is "
                f"another cluster's; to move the cluster here on purpose, give --moved-from-cluster={uid}"
            )
    present = [each for each in evidence if each.found]
    if present and not any(each.alive for each in present) and binding.moved_from is None:
        what = ", ".join(f"{each.found} {each.kind}" for each in present)
        raise ForeignCluster(
            f"cluster {cluster_id}: the cloud has {what} of this cluster, but none belongs to a Service, claim or "
            f"Node of this Kubernetes cluster ({binding.uid}): the cloud config or the kubeconfig is another "
            f"cluster's, or etcd lost its data; to start without them on purpose, give --moved-from-cluster={NOTHING}"
        )


def _own_tags(model: LoadBalancerModel, cluster_id: str) -> Iterable[Mapping[str, str]]:
    for tags in (model.tags, *model.part_tags):
        owner = Owner.of_tags(tags)
        if owner is not None and owner.cluster_id == cluster_id:
            yield tags


def _listed(names: Sequence[str]) -> str:
    unique = sorted({*names})
    more = f" and {len(unique) - _SHOWN} more" if len(unique) > _SHOWN else ""
    return ", ".join(unique[:_SHOWN]) + more
