"""tinycloud's API, which is this process's memory, as the interface `Cloud`."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import yaml

from cloud_controller.cloud import (
    CallObserver,
    Fence,
    Instance,
    InstanceRef,
    InstanceState,
    InvalidConfiguration,
    NodeAddress,
    NotFound,
)
from cloud_controller.fence import unfenced
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend
from cloud_controller.load_balancers.failures import one_by_one
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    Built,
    HealthCheck,
    Ingress,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    Object,
    ObservedLoadBalancer,
    Owner,
    Pool,
)
from cloud_controller.load_balancers.operations import (
    CreateLoadBalancer,
    DeleteLoadBalancer,
    Operation,
    OperationResult,
)
from tinycloud.annotations import CATALOGUE, CLASS

LOAD_BALANCERS: dict[str, ObservedLoadBalancer] = {}
"""All that the cloud has, by id."""
_numbers = itertools.count(1)


@dataclass
class Tiny:
    """One cluster's part of tinycloud. `machines`: their addresses by the names of their nodes."""

    cluster_id: str
    machines: Mapping[str, str]
    fence: Fence = field(default=unfenced)

    provider_name = "tiny"
    load_balancer_classes = frozenset({CLASS})
    routes = None
    volumes = None
    catalogue = CATALOGUE

    @classmethod
    def from_config(cls, text: str) -> Tiny:
        """From YAML with `cluster` and `machines`."""
        config = yaml.safe_load(text) or {}
        if "cluster" not in config:
            raise InvalidConfiguration("cluster", "missing", "the cluster's id")
        return cls(config["cluster"], config.get("machines") or {})

    @property
    def instances(self) -> Tiny:
        return self

    @property
    def load_balancers(self) -> Tiny:
        return self

    def check_access(self, controllers: Collection[str], *, read_only: bool = False) -> None:
        del controllers, read_only

    def observe_calls(self, observer: CallObserver) -> None:
        del observer

    def fence_writes(self, fence: Fence) -> None:
        self.fence = fence

    def cluster_access(self) -> str:
        raise NotFound("tinycloud runs no control planes")

    # ---------------------------------------------------------------------------------------------------- instances

    def list(self) -> Sequence[Instance]:
        return [self._instance(name) for name in self.machines]

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        return {ref: self._instance(ref.node_name) if ref.node_name in self.machines else None for ref in refs}

    def _instance(self, name: str) -> Instance:
        return Instance(
            id=name,
            provider_id=f"tiny://{name}",
            name=name,
            type="only",
            zone="here",
            region="here",
            state=InstanceState.RUNNING,
            addresses=(NodeAddress("InternalIP", self.machines[name]), NodeAddress("Hostname", name)),
        )

    # ----------------------------------------------------------------------------------- load balancers: pure builds

    def claims(self, _: Object) -> bool:
        return True

    def follows_endpoints(self, _: Object) -> bool:
        return False

    def drains(self, _: Object) -> bool:
        return True

    def pod_ranges(self, _: Object) -> None:
        return None

    def foreign_name(self, _: Owner) -> None:
        return None

    def backend(self, node: Object) -> NodeBackend | None:
        name = node["metadata"]["name"]
        return NodeBackend(name, name, self.machines[name]) if name in self.machines else None

    def build(self, service: Object, backends: Backends) -> Built:
        metadata = service["metadata"]
        settings = CATALOGUE.parse(metadata.get("annotations"))
        owner = Owner(self.cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])
        members = self.members(service, backends)
        check = HealthCheck("TCP")
        model = LoadBalancerModel(
            name=owner.load_balancer_name,
            attributes={"scheme": settings.text("scheme")},
            listeners=tuple(Listener(*key, pool=f"{key[0]}-{key[1]}") for key in members),
            pools=tuple(Pool(f"{key[0]}-{key[1]}", check, found) for key, found in members.items()),
            tags=owner.tags,
        )
        return Built(model)

    def members(self, service: Object, backends: Backends) -> Mapping[tuple[str, int], tuple[Member, ...]]:
        ports = service["spec"]["ports"]
        return {(port["protocol"], port["port"]): backends.by_node_port(port["nodePort"]) for port in ports}

    # --------------------------------------------------------------------------------- load balancers: reads, writes

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> Sequence[ObservedLoadBalancer]:
        ours = [lb for lb in LOAD_BALANCERS.values() if lb.model.tags.get(CLUSTER_TAG) == self.cluster_id]
        return [
            lb for lb in ours if service_uids is None or lb.id in ids or (lb.owner and lb.owner.uid in service_uids)
        ]

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]:
        pools = LOAD_BALANCERS[id].model.pools
        return {(pool.name, member.address, member.port): True for pool in pools for member in pool.members}

    def perform(self, _: ObservedLoadBalancer | None, operations: Sequence[Operation]) -> Sequence[OperationResult]:
        return one_by_one(operations, self._perform)

    def _perform(self, operation: Operation) -> ObservedLoadBalancer | None:
        self.fence()
        if isinstance(operation, CreateLoadBalancer):
            return self._create(operation)
        if isinstance(operation, DeleteLoadBalancer):
            LOAD_BALANCERS.pop(operation.id, None)
        else:
            changed = apply_operation(LOAD_BALANCERS[operation.id], operation)
            LOAD_BALANCERS[operation.id] = replace(changed, settled=True)
        return None

    def _create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        number = next(_numbers)
        ingress = (Ingress(ip=f"192.0.2.{number}"),)
        made = ObservedLoadBalancer(f"lb-{number}", LoadBalancerState.READY, operation.model, ingress)
        LOAD_BALANCERS[made.id] = made
        return made

    # --------------------------------------------------------------------------------------------------- checkpoint

    def dump(self, limit: int) -> bytes:
        del limit
        return b""

    def restore(self, memory: bytes) -> None:
        del memory
