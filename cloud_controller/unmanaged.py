"""Finds Services and claims that hold load balancers or volumes but that the cluster's program does not declare.

A destroy removes the controller that would delete them: their load balancers and volumes would stay in the cloud and
block the deletion of its network. The rules are pure; `find`, `ownerless` and `delete` call the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from cloud_controller.cloud import Cloud
from cloud_controller.controllers.service.rules import finalizers, has_finalizer
from cloud_controller.controllers.volume import objects as view
from cloud_controller.kube import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SERVICES,
    ConflictError,
    KubeApi,
    NotFoundError,
    Object,
    key,
    name,
    namespace,
    uid,
)
from cloud_controller.load_balancers.model import LoadBalancerState
from cloud_controller.load_balancers.sharing import LEFT_TAG


@dataclass(frozen=True, slots=True)
class Declared:
    """The objects that the program itself deletes, as NAMESPACE/NAME."""

    services: frozenset[str] = frozenset()
    claims: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """Undeclared objects that are not being deleted yet; `leaving` describes those that are.

    `pods`: the pods that use each claim (NAMESPACE/NAME); Kubernetes keeps the claim until they are gone.
    """

    services: tuple[Object, ...] = ()
    claims: tuple[Object, ...] = ()
    pods: Mapping[str, Sequence[str]] = field(default_factory=dict)
    leaving: tuple[str, ...] = ()

    @property
    def present(self) -> tuple[str, ...]:
        """Descriptions of the objects that are not being deleted yet."""
        services = (f"Service {key(each)}{_addresses(each)}" for each in self.services)
        claims = (f"PersistentVolumeClaim {key(each)}" for each in self.claims)
        return (*services, *claims)

    @property
    def in_use(self) -> tuple[str, ...]:
        """Descriptions of the claims that pods use."""
        used = [each for each in map(key, self.claims) if each in self.pods]
        return tuple(f"PersistentVolumeClaim {each} by pod {', '.join(self.pods[each])}" for each in used)


def find(kube: KubeApi, declared: Declared) -> Unmanaged:
    """Read the objects that `among` needs, and apply it. Raises `ApiError`."""
    services = kube.list(SERVICES).items
    claims = kube.list(PERSISTENT_VOLUME_CLAIMS).items
    pods = kube.list(PODS).items if claims else ()
    # PersistentVolumes last: a claim may have got its volume since the claims were listed.
    return among(services, claims, kube.list(PERSISTENT_VOLUMES).items, pods, declared)


def among(
    services: Iterable[Object],
    claims: Iterable[Object],
    pvs: Iterable[Object],
    pods: Iterable[Object],
    declared: Declared,
) -> Unmanaged:
    """The objects that hold, or are about to get, a load balancer or a volume that is deleted with them.

    Services of another controller's class count too: their load balancers are also outside the cluster.
    """
    holding = sorted((each for each in services if _holds_load_balancer(each)), key=key)
    by_uid = {uid(each): each for each in sorted(claims, key=key)}
    volumes = {claim: pv for pv in pvs if (claim := _claim_that_deletes(pv))}
    holders = [each for each in by_uid.values() if uid(each) in volumes or _is_provisioning(each)]
    orphaned = [pv for claim, pv in volumes.items() if claim not in by_uid]
    leaving = [
        *(f"Service {key(each)}" for each in holding if view.is_deleting(each)),
        *(f"PersistentVolumeClaim {key(each)}" for each in holders if view.is_deleting(each)),
        *(f"PersistentVolume {name(each)}" for each in sorted(orphaned, key=name)),
    ]
    return Unmanaged(
        tuple(each for each in holding if not view.is_deleting(each) and key(each) not in declared.services),
        tuple(each for each in holders if not view.is_deleting(each) and key(each) not in declared.claims),
        _users(pods),
        tuple(leaving),
    )


def find_served(kube: KubeApi, cloud: Cloud, declared: Declared, *, without_class: bool) -> Unmanaged:
    """As `find`, of Services that this cloud's controller serves, and of no claims. Raises `ApiError`, `CloudError`.

    For a cluster that stays: there, a destroy need not care about what other controllers serve. `without_class`:
    whether ours serves Services without a class (`Rules.without_class`).
    """
    found = cloud.load_balancers.read() if cloud.load_balancers is not None else ()
    served = {owner.uid for lb in found for owner in lb.owners if owner.cluster_id == cloud.cluster_id}
    ours: set[str | None] = {*cloud.load_balancer_classes, *([None] if without_class else [])}

    def counts(service: Object) -> bool:
        # Its load balancer may be gone already, and only the finalizer left to be removed.
        leaving = view.is_deleting(service) and service["spec"].get("loadBalancerClass") in ours
        return has_finalizer(service) and (uid(service) in served or leaving)

    return among(filter(counts, kube.list(SERVICES).items), (), (), (), declared)


def ownerless(kube: KubeApi, cloud: Cloud) -> tuple[list[str], list[str]]:
    """Descriptions of the cluster's load balancers whose Services are gone: those that stay, and those being deleted.

    A load balancer stays if its deletion is held until it is confirmed, or if other clusters use it. Raises `ApiError`
    and `CloudError`.
    """
    # Load balancers first: if the Service of one is not in the later list, it is really gone.
    found = cloud.load_balancers.read() if cloud.load_balancers is not None else ()
    alive = {uid(each) for each in kube.list(SERVICES).items} if found else set()
    held: list[str] = []
    leaving: list[str] = []
    for lb in sorted(found, key=lambda lb: lb.id):
        gone = [owner for owner in lb.owners if owner.cluster_id == cloud.cluster_id and owner.uid not in alive]
        users = [owner for owner in lb.owners if owner not in gone]
        theirs = any(owner.cluster_id != cloud.cluster_id for owner in users)
        if gone == [lb.owner] and LEFT_TAG in lb.model.tags and not theirs:
            # It is deleted automatically with its last user.
            leaving += [] if users else [f"load balancer {lb.id} of {lb.owner}"]
        else:
            to = leaving if lb.state is LoadBalancerState.DELETING else held
            to += [f"load balancer {lb.id} of {owner}" for owner in gone]
    return held, leaving


def delete(kube: KubeApi, found: Unmanaged) -> None:
    """Delete these Services and claims; finalizers keep them until the controller has cleaned up.

    DATA IS LOST: the volumes of the claims are deleted too.
    """
    for resource, objects in ((SERVICES, found.services), (PERSISTENT_VOLUME_CLAIMS, found.claims)):
        for each in objects:
            # Gone, or another object now has the name: the next `find` decides about that one.
            with suppress(NotFoundError, ConflictError):
                kube.delete(resource, name(each), namespace(each), uid=uid(each))


# --------------------------------------------------------------------------------------------------------- helpers


def _holds_load_balancer(service: Object) -> bool:
    """Whether it has type LoadBalancer, or had: the finalizer stays until the load balancer is gone."""
    return service["spec"].get("type") == "LoadBalancer" or bool(finalizers(service))


def _claim_that_deletes(pv: Object) -> str | None:
    """The UID of the claim with which the driver that provisioned the volume deletes it; None if there is none."""
    made = view.PROVISIONED_BY in (pv["metadata"].get("annotations") or {})
    spec = pv["spec"]
    deleted = made and spec.get("csi") and view.reclaim_policy(pv) == "Delete"
    # Without UID, it is reserved for any claim of that name.
    return (spec.get("claimRef") or {}).get("uid") if deleted else None


def _is_provisioning(claim: Object) -> bool:
    return view.provisioner_of(claim) is not None and not claim["spec"].get("volumeName")


def _users(pods: Iterable[Object]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for pod in pods:
        for claim in _claims_of(pod):
            users.setdefault(f"{namespace(pod)}/{claim}", []).append(name(pod))
    return users


def _claims_of(pod: Object) -> Iterator[str]:
    """The claims that a pod uses; a terminated pod uses none (kube-controller-manager's rule)."""
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return
    for volume in pod["spec"].get("volumes") or []:
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            yield f"{name(pod)}-{volume['name']}"


def _addresses(service: Object) -> str:
    ingress = (service.get("status", {}).get("loadBalancer") or {}).get("ingress") or []
    found = ", ".join(str(each.get("ip") or each.get("hostname")) for each in ingress)
    return f" ({found})" if found else ""
