"""Reads and patches Node objects: machine, taints, conditions and addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address

from cloud_controller import retries
from cloud_controller.cloud import (
    CloudError,
    Conflict,
    Instance,
    InstanceRef,
    Instances,
    InvalidConfiguration,
    NodeAddress,
)
from cloud_controller.kube import (
    NODES,
    ConflictError,
    InvalidError,
    KubeApi,
    NotFoundError,
    Object,
    PatchType,
    name,
    uid,
)

UNINITIALIZED_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
SHUTDOWN_TAINT = "node.cloudprovider.kubernetes.io/shutdown"
PROVIDED_IP = "alpha.kubernetes.io/provided-node-ip"

BATCH = 100
"""Maximum number of machines per describe call."""

Taint = Mapping[str, str]
Described = tuple[dict[str, Instance | None], dict[str, CloudError]]
"""Machines by node name (None: it does not exist), and errors of individual nodes."""


def ref(node: Object) -> InstanceRef:
    """The reference to the node's machine."""
    return InstanceRef(name(node), node["spec"].get("providerID") or None)


def age(node: Object) -> tuple[str, str]:
    """Sort key, oldest node first: if two nodes claim the same thing, the older one gets it."""
    return registered(node), name(node)


def registered(node: Object) -> str:
    """When the node was registered, as the API server writes times; '' if it does not say."""
    return str(node["metadata"].get("creationTimestamp") or "")


def taints(node: Object) -> list[Taint]:
    """The node's taints."""
    return list(node["spec"].get("taints") or [])


def has_taint(node: Object, key: str) -> bool:
    """Whether the node has a taint with this key, whatever its effect."""
    return any(taint["key"] == key for taint in taints(node))


def condition(node: Object, type: str) -> Mapping[str, str] | None:
    """The status condition of this type, or None."""
    for found in node.get("status", {}).get("conditions") or []:
        if found["type"] == type:
            return dict(found)
    return None


def is_ready(node: Object) -> bool:
    """Whether the node's Ready condition is True (not missing or Unknown)."""
    found = condition(node, "Ready")
    return found is not None and found["status"] == "True"


def pod_cidrs(node: Object) -> tuple[str, ...]:
    """The node's pod CIDRs; empty until kube-controller-manager has allocated them."""
    spec = node["spec"]
    return tuple(spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else []))


def addresses(node: Object) -> tuple[NodeAddress, ...]:
    """The addresses in the node's status, in order."""
    found = node.get("status", {}).get("addresses") or []
    return tuple(NodeAddress(entry["type"], entry["address"]) for entry in found)


def ip(text: str) -> IPv4Address | IPv6Address | None:
    """The address, an IPv4 one that is written as one of IPv6 as itself; None for a host name."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def merged_addresses(node: Object, instance: Instance) -> tuple[NodeAddress, ...]:
    """The node's desired addresses; empty (no change) if the cloud reports none.

    With `alpha.kubernetes.io/provided-node-ip` (one IP, or one per family, comma-separated), each matching cloud
    address comes first and is the only one of its type; the others follow in the cloud's order. Without a hostname from
    the cloud, the node keeps its own. Raises `InvalidConfiguration` if the annotation is invalid or names an IP that is
    not the machine's.
    """
    provided = _provided_ips(node)
    if not instance.addresses and not provided:
        return ()
    known = list(instance.addresses)
    if all(address.type != "Hostname" for address in known):
        known += [address for address in addresses(node) if address.type == "Hostname"]
    first: list[NodeAddress] = []
    for wanted in provided:
        matches = [address for address in instance.addresses if ip(address.address) == wanted]
        if not matches:
            has = ", ".join(address.address for address in instance.addresses)
            raise InvalidConfiguration(
                f"node {name(node)}: annotation {PROVIDED_IP}",
                f"{str(wanted)!r} is not an address of machine {instance.id}",
                has or "none: the cloud reports no address",
            )
        first += matches
    claimed = {address.type for address in first}
    return tuple(dict.fromkeys([*first, *(address for address in known if address.type not in claimed)]))


def describe(instances: Instances, nodes: Iterable[Object]) -> Described:
    """Describe the machines of these nodes, in batches.

    An invalid provider ID, or a name of two machines, fails its whole batch: bisecting isolates the node. Any other
    error is raised.
    """
    found: dict[str, Instance | None] = {}
    wrong: dict[str, CloudError] = {}

    def ask(refs: Sequence[InstanceRef]) -> None:
        try:
            answer = instances.describe(refs)
        except (InvalidConfiguration, Conflict) as error:
            if len(refs) == 1:
                wrong[refs[0].node_name] = error
                return
            middle = len(refs) // 2
            ask(refs[:middle])
            ask(refs[middle:])
            return
        found.update((asked.node_name, answer[asked]) for asked in refs)

    refs = [ref(node) for node in nodes]
    for start in range(0, len(refs), BATCH):
        ask(refs[start : start + BATCH])
    return found, wrong


def patch_node(kube: KubeApi, node: Object, change: Callable[[Object], Object | None]) -> None:
    """Merge-patch the node with the patch that `change` returns (None: no change), unless it was modified meanwhile.

    After a conflict, the node is read and `change` is called again. A node that is gone or was recreated is left alone.
    Raises `ApiError`.
    """

    def patched(attempt: int) -> None:
        current = kube.get(NODES, name(node)) if attempt else node
        patch = change(current) if uid(current) == uid(node) else None
        if patch is not None:
            metadata = {**patch.get("metadata", {}), "resourceVersion": current["metadata"]["resourceVersion"]}
            kube.patch(NODES, name(node), {**patch, "metadata": metadata}, type=PatchType.MERGE)

    with suppress(NotFoundError):
        retries.change(patched)


def patch_status(kube: KubeApi, node: Object, status: Mapping[str, object], type: PatchType) -> Object | None:
    """Patch the status of this node and return the result, or None if it is gone.

    The UID in the patch makes the API server reject it for a recreated node with the same name, which may have another
    machine. Raises `ApiError`.
    """
    patch = {"metadata": {"uid": uid(node)}, "status": status}

    def patched(_: int) -> Object | None:
        try:
            return kube.patch(NODES, name(node), patch, type=type, subresource="status")
        except NotFoundError:
            return None
        except (ConflictError, InvalidError):
            # The error does not tell a UID mismatch from other reasons, so read the node.
            if not _is_still_there(kube, node):
                return None
            raise

    return retries.change(patched)


def _is_still_there(kube: KubeApi, node: Object) -> bool:
    try:
        return uid(kube.get(NODES, name(node))) == uid(node)
    except NotFoundError:
        return False


def _provided_ips(node: Object) -> list[IPv4Address | IPv6Address]:
    given = (node["metadata"].get("annotations") or {}).get(PROVIDED_IP)
    if given is None:
        return []
    parts = [ip(part.strip()) for part in given.split(",")]
    found = [part for part in parts if part is not None]
    if len(found) != len(parts) or len({part.version for part in found}) != len(found):
        field = f"node {name(node)}: annotation {PROVIDED_IP}"
        raise InvalidConfiguration(field, f"{given!r} is not valid", "one IP address, or one IPv4 and one IPv6 address")
    return found
