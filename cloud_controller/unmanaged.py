"""Which Services and claims hold load balancers or volumes, though the cluster's program does not declare them.

A destroy ends the controller that would delete these: a Service's load balancer, or a claim's volume, would stay
in the cloud, and block its network. The rules are pure; `find`, `ownerless` and `delete` talk to the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from cloud_controller.cloud import Cloud
from cloud_controller.controllers.service.rules import finalizers
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
    """What the program deletes itself, as NAMESPACE/NAME."""

    services: frozenset[str] = frozenset()
    claims: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """Objects that nobody has deleted yet; `leaving`: those that are being deleted, in words.

    `pods`: by claim (NAMESPACE/NAME) the pods that use it; until they are gone, Kubernetes keeps the claim.
    """

    services: tuple[Object, ...] = ()
    claims: tuple[Object, ...] = ()
    pods: Mapping[str, Sequence[str]] = field(default_factory=dict)
    leaving: tuple[str, ...] = ()

    @property
    def present(self) -> tuple[str, ...]:
        """The objects that nobody has deleted yet, in words."""
        services = (f"Service {key(each)}{_addresses(each)}" for each in self.services)
        claims = (f"PersistentVolumeClaim {key(each)}" for each in self.claims)
        return (*services, *claims)

    @property
    def in_use(self) -> tuple[str, ...]:
        """Those of the claims that pods use, in words."""
        used = [each for each in map(key, self.claims) if each in self.pods]
        return tuple(f"PersistentVolumeClaim {each} by pod {', '.join(self.pods[each])}" for each in used)


def find(kube: KubeApi, declared: Declared) -> Unmanaged:
    """Read what `among` needs. Raises `ApiError`."""
    services = kube.list(SERVICES).items
    claims = kube.list(PERSISTENT_VOLUME_CLAIMS).items
    pods = kube.list(PODS).items if claims else ()
    # Last: a claim may have got its volume since.
    return among(services, claims, kube.list(PERSISTENT_VOLUMES).items, pods, declared)


def among(
    services: Iterable[Object],
    claims: Iterable[Object],
    pvs: Iterable[Object],
    pods: Iterable[Object],
    declared: Declared,
) -> Unmanaged:
    """Which of these hold, or are about to get, a load balancer or a volume that would go with them.

    A Service of another controller's class counts too: what that made is outside of the cluster as well.
    """
    holding = sorted((each for each in services if _holds_load_balancer(each)), key=key)
    by_uid = {uid(each): each for each in sorted(claims, key=key)}
    volumes = {pv["spec"]["claimRef"]["uid"]: pv for pv in pvs if _is_deleted_with_claim(pv)}
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


def ownerless(kube: KubeApi, cloud: Cloud) -> tuple[list[str], list[str]]:
    """The cluster's load balancers whose Services are gone, in words: first those that nobody deletes.

    Their deletion is held until somebody confirms it, and no Service is left by which they could be deleted; or other
    clusters use them. The others are being deleted. Raises `ApiError`, `CloudError`.
    """
    # In this order: a load balancer that is read, and whose Service is not found later, has none.
    found = cloud.load_balancers.read() if cloud.load_balancers is not None else ()
    alive = {uid(each) for each in kube.list(SERVICES).items} if found else set()
    held: list[str] = []
    leaving: list[str] = []
    for lb in sorted(found, key=lambda lb: lb.id):
        gone = [owner for owner in lb.owners if owner.cluster_id == cloud.cluster_id and owner.uid not in alive]
        users = [owner for owner in lb.owners if owner not in gone]
        theirs = any(owner.cluster_id != cloud.cluster_id for owner in users)
        if gone == [lb.owner] and LEFT_TAG in lb.model.tags and not theirs:
            # It goes by itself with the last of its users.
            leaving += [] if users else [f"load balancer {lb.id} of {lb.owner}"]
        else:
            to = leaving if lb.state is LoadBalancerState.DELETING else held
            to += [f"load balancer {lb.id} of {owner}" for owner in gone]
    return held, leaving


def delete(kube: KubeApi, found: Unmanaged) -> None:
    """Delete the Services and claims that nobody has deleted yet; finalizers keep them until the controller is through.

    DATA ARE LOST: the volumes of the claims go too.
    """
    for resource, objects in ((SERVICES, found.services), (PERSISTENT_VOLUME_CLAIMS, found.claims)):
        for each in objects:
            # Gone, or another object of the same name: the next look decides about that.
            with suppress(NotFoundError, ConflictError):
                kube.delete(resource, name(each), namespace(each), uid=uid(each))


# --------------------------------------------------------------------------------------------------------- helpers


def _holds_load_balancer(service: Object) -> bool:
    """A finalizer is left on one that was of type LoadBalancer, until its load balancer is gone."""
    return service["spec"].get("type") == "LoadBalancer" or bool(finalizers(service))


def _is_deleted_with_claim(pv: Object) -> bool:
    """Whether its driver, which made the volume, deletes it when the claim is gone."""
    made = view.PROVISIONED_BY in (pv["metadata"].get("annotations") or {})
    spec = pv["spec"]
    return made and bool(spec.get("csi") and spec.get("claimRef")) and view.reclaim_policy(pv) == "Delete"


def _is_provisioning(claim: Object) -> bool:
    return view.provisioner_of(claim) is not None and not claim["spec"].get("volumeName")


def _users(pods: Iterable[Object]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for pod in pods:
        for claim in _claims_of(pod):
            users.setdefault(f"{namespace(pod)}/{claim}", []).append(name(pod))
    return users


def _claims_of(pod: Object) -> Iterator[str]:
    """The names of the claims that a pod uses; one that has ended uses none (kube-controller-manager's rule)."""
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
