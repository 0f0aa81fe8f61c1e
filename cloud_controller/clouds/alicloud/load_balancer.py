"""Alibaba Cloud's load balancers: reads both kinds, and hands each operation to the kind of its load balancer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from cloud_controller.clouds.alicloud.build import KIND, AliCloudBuilder, BuildFacts, by_pod, elastic_ips
from cloud_controller.clouds.alicloud.clb.load_balancer import ClassicLoadBalancers
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.alicloud.config import Config
from cloud_controller.clouds.alicloud.nlb.load_balancers import NetworkLoadBalancers
from cloud_controller.clouds.alicloud.nlb.memory_text import from_bytes
from cloud_controller.clouds.alicloud.tags import tags_of
from cloud_controller.clouds.common.cache import Cache, Entries
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls, batches
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import Object, ObservedLoadBalancer
from cloud_controller.load_balancers.operations import CreateLoadBalancer, Operation, OperationResult

_SIZE = 8
"""Bytes of the size of the first part of a checkpoint."""
_EMPTY = 100
"""At least the bytes of a part with nothing in it."""
_LIFETIME = 600.0
"""Seconds after which the VPC's CIDRs and the tags of elastic IPs are read again."""
_ADDRESSES = 50
"""Elastic IPs of one call."""


class Kind(Protocol):
    """The load balancers of one kind; see `LoadBalancers`."""

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> Sequence[ObservedLoadBalancer]: ...

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]: ...

    def perform(
        self, load_balancer: ObservedLoadBalancer | None, operations: Sequence[Operation]
    ) -> Sequence[OperationResult]: ...


class AliCloudLoadBalancers:
    """The load balancers of one cluster. Safe to share between threads."""

    def __init__(self, client: Client, config: Config, cache: Cache) -> None:
        self._client = client
        self._config = config
        self._builder = AliCloudBuilder(config)
        self._ranges: Entries[tuple[str, ...]] = Entries(cache, _LIFETIME)
        self._address_tags: Entries[Mapping[str, str]] = Entries(cache, _LIFETIME)
        # Each kind makes concurrent calls itself; on the same threads, reads would deadlock waiting for one another.
        self._both = ConcurrentCalls()
        calls = ConcurrentCalls()
        self._classic = ClassicLoadBalancers(client, config, cache, calls)
        self._network = NetworkLoadBalancers(client, config, cache, calls)
        self._kinds: dict[str, Kind] = {
            "clb": self._classic,
            "nlb": self._network,
        }

    @property
    def builder(self) -> AliCloudBuilder:
        """What Services and nodes become; pure."""
        return self._builder

    # -------------------------------------------------------------------------------------------------------- reads

    def facts(self, services: Sequence[Object], *_: object) -> Fact[BuildFacts]:
        """The cluster's VPC; its CIDRs if one of these Services has pods as backends; tags of elastic IPs."""

        def read() -> BuildFacts:
            vpc = self._config.vpc_id
            ranges = self._ranges.fetch(vpc, self._read_ranges) if any(map(by_pod, services)) else ()
            addresses = {each for service in services for each in elastic_ips(service)}
            return BuildFacts(vpc, ranges, self._address_tags.fetch_many(addresses, self._read_addresses, missing={}))

        return Fact.read(read)

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> list[ObservedLoadBalancer]:
        """Those of the cluster of both kinds, or those of these Services; and those with these IDs."""
        kinds = {name: [each for each in ids if kind_of_id(each) == name] for name in self._kinds}
        if service_uids is not None and not service_uids:
            kinds = {name: of_kind for name, of_kind in kinds.items() if of_kind}
        found = self._both(partial(self._kinds[name].read, service_uids, of_kind) for name, of_kind in kinds.items())
        return [_with_kind(lb, name) for name, part in zip(kinds, found, strict=True) for lb in part]

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]:
        """Whether each member passes its health check; members of unknown health are absent."""
        return self._kinds[kind_of_id(id)].health(id)

    def _read_ranges(self) -> tuple[str, ...]:
        answer = self._client.call("vpc", "DescribeVpcAttribute", {"VpcId": self._config.vpc_id})
        secondary = (answer.get("SecondaryCidrBlocks") or {}).get("SecondaryCidrBlock") or []
        found = [answer.get("CidrBlock"), *secondary, answer.get("Ipv6CidrBlock")]
        return tuple(str(each) for each in found if each)

    def _read_addresses(self, allocation_ids: list[str]) -> dict[str, Mapping[str, str]]:
        found: dict[str, Mapping[str, str]] = {}
        for batch in batches(allocation_ids, _ADDRESSES):
            asked = {"AllocationId": ",".join(batch), "PageSize": _ADDRESSES}
            answer = self._client.call("vpc", "DescribeEipAddresses", asked)
            shown = (answer.get("EipAddresses") or {}).get("EipAddress") or []
            found |= {each["AllocationId"]: tags_of((each.get("Tags") or {}).get("Tag") or []) for each in shown}
        return found

    # ------------------------------------------------------------------------------------------------------- writes

    def perform(
        self, load_balancer: ObservedLoadBalancer | None, operations: Sequence[Operation]
    ) -> list[OperationResult]:
        """The operations, by the load balancer's kind."""
        first = operations[0]
        of_new = isinstance(first, CreateLoadBalancer)
        kind = str(first.model.attributes[KIND]) if isinstance(first, CreateLoadBalancer) else kind_of_id(first.id)
        results = self._kinds[kind].perform(None if of_new else load_balancer, operations)
        return [replace(each, created=each.created and _with_kind(each.created, kind)) for each in results]

    # ---------------------------------------------------------------------------------------------------- a restart

    def dump(self, limit: int) -> bytes:
        """See `Remembering.dump`: what the API returns part by part, of each kind, with the size of the first."""
        classic = self._classic.dump(limit - _SIZE - _EMPTY)
        return len(classic).to_bytes(_SIZE) + classic + self._network.dump(limit - _SIZE - len(classic))

    def restore(self, memory: bytes) -> None:
        """See `Remembering.restore`."""
        size = int.from_bytes(memory[:_SIZE])
        classic, network = memory[_SIZE : _SIZE + size], memory[_SIZE + size :]
        # It raises before anything of the other kind is loaded.
        from_bytes(network)
        self._classic.restore(classic)
        self._network.restore(network)


def kind_of_id(id: str) -> str:
    """The kind of the load balancer with this ID."""
    return "nlb" if id.startswith("nlb-") else "clb"


def _with_kind(lb: ObservedLoadBalancer, kind: str) -> ObservedLoadBalancer:
    return replace(lb, model=replace(lb.model, attributes={**lb.model.attributes, KIND: kind}))
