"""tinycloud as the interface `Cloud`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import get_args

import yaml

from cloud_controller.cloud import (
    CallObserver,
    CloudError,
    Fence,
    Instance,
    InstanceRef,
    InstanceState,
    InvalidConfiguration,
    NodeAddress,
    NotFound,
)
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend
from cloud_controller.load_balancers.failures import Failures, one_by_one
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    Built,
    HealthCheck,
    Listener,
    LoadBalancerModel,
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
from tinycloud.api import ACCOUNT
from tinycloud.client import Client


@dataclass(frozen=True)
class TinyBuilder:
    """What Services and nodes become; pure. No fact of the cloud matters."""

    cluster_id: str
    machines: Mapping[str, str]

    catalogue = CATALOGUE

    def claims(self, _: Object) -> bool:
        return True

    def follows_endpoints(self, _: Object) -> bool:
        return False

    def drains(self, _: Object) -> bool:
        return True

    def pod_ranges(self, *_: object) -> None:
        return None

    def foreign_name(self, _: Owner) -> None:
        return None

    def backend(self, node: Object) -> NodeBackend | None:
        name = node["metadata"]["name"]
        return NodeBackend(name, name, self.machines[name]) if name in self.machines else None

    def build(self, service: Object, backends: Backends, _: None) -> Built:
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


@dataclass
class Tiny:
    """One cluster's part of tinycloud. `machines`: their addresses by the names of their nodes."""

    cluster_id: str
    machines: Mapping[str, str]
    client: Client = field(default_factory=lambda: Client(ACCOUNT))

    provider_name = "tiny"
    load_balancer_classes = frozenset({CLASS})
    routes = None
    volumes = None

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

    @property
    def builder(self) -> TinyBuilder:
        return TinyBuilder(self.cluster_id, self.machines)

    def check_access(self, controllers: Collection[str], *, read_only: bool = False) -> None:
        del controllers, read_only

    def observe_calls(self, observer: CallObserver) -> None:
        self.client.observer = observer

    def fence_writes(self, fence: Fence) -> None:
        self.client.fence = fence

    def cluster_access(self) -> str:
        raise NotFound("tinycloud runs no control planes")

    # ---------------------------------------------------------------------------------------------------- instances

    def list(self) -> Sequence[Instance]:
        return [self._instance(name) for name in self.machines]

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        names = {ref: _machine(ref) for ref in refs}
        return {ref: self._instance(name) if name in self.machines else None for ref, name in names.items()}

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

    # ----------------------------------------------------------------------------------------------- load balancers

    def facts(self, *_: object) -> None:
        return None

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> Sequence[ObservedLoadBalancer]:
        tag = (CLUSTER_TAG, self.cluster_id)
        found = {lb.id: lb for lb in self._pages(tag)}
        if service_uids is not None:
            found = {of: lb for of, lb in found.items() if of in ids or (lb.owner and lb.owner.uid in service_uids)}
        for missing in {*ids} - found.keys():
            # Lists may lag behind; a read of the object does not.
            with suppress(NotFound):
                found[missing] = self.client.call("get_load_balancer", missing)
        return [*found.values()]

    def _pages(self, *tags: tuple[str, str]) -> Iterator[ObservedLoadBalancer]:
        cursor, more = "", True
        while more:
            page, cursor = self.client.call("list_load_balancers", tags, cursor)
            yield from page
            more = bool(cursor)

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]:
        pools = self.client.call("get_load_balancer", id).model.pools
        return {(pool.name, member.address, member.port): True for pool in pools for member in pool.members}

    def perform(self, lb: ObservedLoadBalancer | None, operations: Sequence[Operation]) -> Sequence[OperationResult]:
        """The API takes a whole load balancer: one call makes a change, however many operations it has."""
        if lb is None or any(isinstance(each, DeleteLoadBalancer) for each in operations):
            return one_by_one(operations, dict.fromkeys(get_args(Operation), self._one))
        error = self._put(lb.id, operations)
        results = {id(each): OperationResult(each, error) for each in operations}
        failures = Failures()
        failures.record(lb, error)
        # Dead members must not stay because a setting is refused.
        if error is not None and (permitted := [each for each in operations if failures.permit(each)]):
            again = self._put(lb.id, permitted)
            results |= {id(each): OperationResult(each, again) for each in permitted}
        return [results[id(each)] for each in operations]

    def _put(self, lb_id: str, operations: Sequence[Operation]) -> CloudError | None:
        try:
            lb = self.client.call("get_load_balancer", lb_id)
            self.client.call("put_load_balancer", lb_id, reduce(apply_operation, operations, lb).model)
        except CloudError as error:
            return error
        return None

    def _one(self, operation: Operation) -> ObservedLoadBalancer | None:
        if isinstance(operation, CreateLoadBalancer):
            made: ObservedLoadBalancer = self.client.call(
                "create_load_balancer", operation.model, operation.client_token
            )
            return made
        if isinstance(operation, DeleteLoadBalancer):
            with suppress(NotFound):
                self.client.call("delete_load_balancer", operation.id)
        elif error := self._put(operation.id, [operation]):
            raise error
        return None

    # --------------------------------------------------------------------------------------------------- checkpoint

    def dump(self, limit: int) -> bytes:
        del limit
        return b""

    def restore(self, memory: bytes) -> None:
        del memory


def _machine(ref: InstanceRef) -> str:
    if ref.provider_id is None:
        return ref.node_name
    scheme, _, name = ref.provider_id.partition("://")
    if scheme != Tiny.provider_name:
        why = f"{ref.provider_id!r} is not a tinycloud provider ID"
        raise InvalidConfiguration(f"node {ref.node_name}: spec.providerID", why, "tiny://NAME")
    return name
