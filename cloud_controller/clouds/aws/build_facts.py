"""Reads what builds depend on besides Services: the VPC, tags of what Services name, and pods' security groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cloud_controller.clouds.aws.build_network import follows_endpoints, pod_addresses
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.facts import BuildFacts
from cloud_controller.clouds.aws.named import named_ids
from cloud_controller.clouds.aws.pod_groups import PodGroups
from cloud_controller.clouds.aws.tags import tags_of
from cloud_controller.clouds.aws.vpc_state import LIFETIME, VpcState
from cloud_controller.clouds.common.cache import Cache, Entries
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.load_balancers.model import Object

_VALUES = 200
"""The most values of a filter."""


class BuildFactsReader:
    """Reads the facts for builds, each kind in one batch. Safe to share between threads."""

    def __init__(self, api: Api, config: Config, vpc_state: VpcState, cache: Cache) -> None:
        self._api = api
        self._config = config
        self._vpc_state = vpc_state
        self._group_tags: Entries[Mapping[str, str]] = Entries(cache, LIFETIME)
        self._address_tags: Entries[Mapping[str, str]] = Entries(cache, LIFETIME)
        self._pod_groups = PodGroups(api, cache)

    def read(
        self, services: Sequence[Object], slices: Mapping[str, Sequence[Object]], with_tags: Collection[str]
    ) -> BuildFacts:
        """See `LoadBalancers.facts`. Raises InvalidConfiguration unless exactly one VPC is found."""
        vpc = self._vpc_state.facts()
        named = services if "security-group" in with_tags else ()
        groups = {group for service in named for group in named_ids(service, "security-group")}
        addresses = {address for service in services for address in named_ids(service, "elastic-ip")}
        pods: set[str] = set()
        for service in () if self._config.disable_security_group_ingress else services:
            if follows_endpoints(service):
                metadata = service["metadata"]
                pods |= pod_addresses(service, slices.get(f"{metadata['namespace']}/{metadata['name']}", ()))
        # Only addresses of the VPC can be a network interface's.
        pods = {address for address in pods if not vpc.is_outside(address)}
        return BuildFacts(
            vpc,
            self._group_tags.fetch_many(groups, self._tags_of_groups, missing={}),
            self._pod_groups.of(vpc.vpc_id, pods) if pods else {},
            self._address_tags.fetch_many(addresses, self._tags_of_addresses, missing={}),
        )

    def _tags_of_groups(self, group_ids: list[str]) -> dict[str, Mapping[str, str]]:
        found: dict[str, Mapping[str, str]] = {}
        for batch in batches(group_ids, _VALUES):
            filters = [{"Name": "group-id", "Values": batch}]
            pages = self._api.pages("ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=filters)
            found |= {group["GroupId"]: tags_of(group) for group in pages}
        return found

    def _tags_of_addresses(self, allocation_ids: list[str]) -> dict[str, Mapping[str, str]]:
        found: dict[str, Mapping[str, str]] = {}
        for batch in batches(allocation_ids, _VALUES):
            # By filter: an unknown ID is an error of the load balancer's creation, not of this read.
            filters = [{"Name": "allocation-id", "Values": batch}]
            answer = self._api.call("ec2", "DescribeAddresses", Filters=filters)
            found |= {each["AllocationId"]: tags_of(each) for each in answer["Addresses"]}
        return found
