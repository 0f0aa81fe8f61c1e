"""Checks that the cloud config and the Kubernetes cluster belong together. Pure.

A cluster's identity is the UID of its namespace `kube-system`. All created resources are tagged with it, besides the
cloud config's cluster id. With cluster A's cloud config and cluster B's kubeconfig, or after a data loss in etcd, A's
resources look unused: WITHOUT THIS CHECK, THE CONTROLLERS WOULD DELETE THEM.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cloud_controller.cloud_errors import ForeignCluster
from cloud_controller.listed import listed
from cloud_controller.load_balancers.model import CLUSTER_UID_TAG, Built, LoadBalancerModel, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.sharing import LEFT_TAG

NOTHING = "none"
"""The value of `--moved-from-cluster` that starts a cluster without any of its former resources."""
_TAKE_OVER = (
    "Only if this cluster takes the place of that one, end its controllers and pass its UID with --moved-from-cluster: "
    "`kubectl get namespace kube-system -o jsonpath={.metadata.uid}` there shows it or, if nothing answers any more, "
    f"the tag {CLUSTER_UID_TAG} of these"
)


@dataclass(frozen=True, slots=True)
class Binding:
    """The identity of the Kubernetes cluster. With an empty `uid`, nothing is compared or tagged.

    `moved_from` (`--moved-from-cluster`): the UID of the cluster whose resources this one takes over, or `none` to
    start although no existing resource belongs to an object of this cluster.
    """

    uid: str = ""
    moved_from: str | None = None

    @property
    def tags(self) -> dict[str, str]:
        """The identity tags of all created resources, besides the owner's tags."""
        return {CLUSTER_UID_TAG: self.uid} if self.uid else {}

    def foreign_uid(self, tags: Mapping[str, str]) -> str | None:
        """The UID of the other Kubernetes cluster in these tags; None if there is none."""
        tagged = tags.get(CLUSTER_UID_TAG)
        return tagged if self.uid and tagged not in (None, "", self.uid, self.moved_from) else None

    def tagged(self, built: Built) -> Built:
        """The desired load balancer with the identity tags added to everything that the Service owns."""
        if not self.uid:
            return built
        model = built.model
        listeners = tuple(replace(each, tags=self._added(each.tags)) for each in model.listeners)
        pools = tuple(replace(each, tags=self._added(each.tags)) for each in model.pools)
        return replace(built, model=replace(model, tags=self._added(model.tags), listeners=listeners, pools=pools))

    def _added(self, tags: Mapping[str, str]) -> Mapping[str, str]:
        return {**tags, **self.tags} if Owner.of_tags(tags) else tags


UNBOUND = Binding()
"""For plans without a cluster, or before its identity is known."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One kind of cloud resources with this cluster id.

    - `found`: their number.
    - `alive`: how many belong to an existing Service, claim, PersistentVolume or Node of this Kubernetes cluster.
    - `foreign`: the names of those tagged with another cluster's UID, by UID.
    """

    kind: str
    found: int = 0
    alive: int = 0
    foreign: Mapping[str, Sequence[str]] = field(default_factory=dict)


def of_load_balancers(
    observed: Iterable[ObservedLoadBalancer], services: Collection[str], cluster_id: str, binding: Binding
) -> Evidence:
    """The evidence of load balancers; `services`: the UIDs of the existing Services."""
    found = alive = 0
    foreign: dict[str, list[str]] = {}
    for lb in observed:
        own = {owner.uid for owner in lb.owners if owner.cluster_id == cluster_id}
        if LEFT_TAG in lb.model.tags and lb.owner:
            own.discard(lb.owner.uid)  # Its Service has left it and may be long gone.
        found += bool(own)
        alive += bool(own & {*services})
        for tags in own_tags(lb.model, cluster_id):
            if uid := binding.foreign_uid(tags):
                foreign.setdefault(uid, []).append(lb.id)
    return Evidence("load balancers", found, alive, foreign)


def judge(evidence: Sequence[Evidence], binding: Binding, cluster_id: str) -> None:
    """Raise ForeignCluster if the evidence contradicts that the resources belong to this Kubernetes cluster.

    The message does not have the other cluster's UID: WITH IT, WHOEVER PASTES IT TAKES OVER A LIVING CLUSTER.
    """
    for each in evidence:
        names = [name for of in each.foreign.values() for name in of]
        if names:
            raise ForeignCluster(
                f"cluster {cluster_id}: {each.kind} {listed(sorted({*names}))} serve another API server than this one "
                f"(UID {binding.uid}): the cloud config or the kubeconfig is for another cluster. {_TAKE_OVER}"
            )
    present = [each for each in evidence if each.found]
    if present and not any(each.alive for each in present) and binding.moved_from is None:
        what = ", ".join(f"{each.found} {each.kind}" for each in present)
        raise ForeignCluster(
            f"cluster {cluster_id}: the cloud has {what} of this cluster, but none belongs to a Service, "
            f"PersistentVolumeClaim or Node of this API server (UID {binding.uid}). They may serve another one: then "
            "the cloud config or the kubeconfig is for another cluster. Only if there is no other one (etcd has lost "
            f"its data), start without them: --moved-from-cluster={NOTHING}"
        )


def own_tags(model: LoadBalancerModel, cluster_id: str) -> Iterator[Mapping[str, str]]:
    """The tags of the load balancer and of its parts that are this cluster's."""
    for tags in (model.tags, *model.part_tags):
        owner = Owner.of_tags(tags)
        if owner is not None and owner.cluster_id == cluster_id:
            yield tags
