"""mycloud's machines as the machines behind nodes, described in batches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from cloud_controller.cloud import (
    Instance,
    InstanceRef,
    InstanceState,
    NodeAddress,
    NotFound,
)
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.clouds.common.node_names import by_node_name
from cloud_controller.clouds.mycloud.annotations import INGRESS_NODE
from cloud_controller.clouds.mycloud.client import PAGE, Client, Object, known_state
from cloud_controller.clouds.mycloud.provider_ids import machine_in, provider_id
from cloud_controller.clouds.mycloud.scope import Scope
from cloud_controller.load_balancers.model import CLUSTER_TAG

_STATES = {
    "creating": InstanceState.PENDING,
    "running": InstanceState.RUNNING,
    "stopping": InstanceState.STOPPED,
    "stopped": InstanceState.STOPPED,
    # It exists, but runs nothing.
    "failed": InstanceState.STOPPED,
    "terminated": InstanceState.TERMINATED,
}


class MyCloudInstances:
    """The machines of one cluster."""

    def __init__(self, client: Client, scope: Scope) -> None:
        self._client = client
        self._scope = scope

    def list(self) -> Sequence[Instance]:
        """Every machine with the cluster's tag; terminated ones for an hour."""
        return [_instance(machine) for machine in self._client.list("machines", tags=self._tags)]

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        """Each machine, by ID or, for a node without provider ID, by name among the cluster's machines.

        None: terminated, or unknown to the cloud. Raises InvalidConfiguration for another cloud's provider ID (None
        would delete the node), and Conflict if two machines have a node's name.
        """
        wanted = {
            ref: machine_in(f"node {ref.node_name}: spec.providerID", ref.provider_id) if ref.provider_id else None
            for ref in refs
        }
        by_id = self._by_id(machine for machine in wanted.values() if machine is not None)
        by_name = self._by_name({ref.node_name for ref, machine in wanted.items() if machine is None})
        return {
            ref: by_name.get(ref.node_name) if machine is None else by_id.get(machine)
            for ref, machine in wanted.items()
        }

    @property
    def _tags(self) -> dict[str, str]:
        return {CLUSTER_TAG: self._scope.cluster_id}

    def _by_id(self, ids: Iterable[str]) -> dict[str, Instance]:
        wanted = {*ids}
        machines = {machine["id"]: machine for machine in self._client.list("machines", ids=wanted)}
        for missing in wanted - machines.keys():
            # Lists lag behind, also lists by ID. Only a GET of the object proves that it does not exist.
            with suppress(NotFound):
                machines[missing] = self._client.get("machines", missing)
        return {of: _instance(machine) for of, machine in machines.items() if machine["state"] != "terminated"}

    def _by_name(self, names: Collection[str]) -> dict[str, Instance]:
        """mycloud's names are DNS labels, and so in lower case: its filter, which is exact, finds them all."""
        machines = [
            machine
            for some in batches(sorted(names), PAGE)
            for machine in self._client.list("machines", tags=self._tags, names=",".join(some))
            if machine["state"] != "terminated"
        ]
        found = by_node_name(names, machines, lambda each: [each["name"]], lambda each: str(each["id"]))
        return {name: _instance(machine) for name, machine in found.items()}


def _instance(machine: Object) -> Instance:
    tags = machine["tags"]
    return Instance(
        id=machine["id"],
        provider_id=provider_id(machine),
        name=machine["name"],
        type=machine["type"],
        zone=machine["zone"],
        region=machine["region"],
        state=known_state(machine, _STATES),
        addresses=(
            *(NodeAddress("InternalIP", address) for address in machine["private_ips"]),
            *(NodeAddress("InternalIP", address) for address in machine["ipv6_addresses"]),
            NodeAddress("Hostname", machine["name"]),
        ),
        # Without the machine's tag, a kubelet must not attract the load balancers' traffic by itself.
        additional_annotations={INGRESS_NODE: tags.get(INGRESS_NODE)},
        tags=tags,
        created_at=datetime.fromisoformat(machine["created_at"]),
    )
