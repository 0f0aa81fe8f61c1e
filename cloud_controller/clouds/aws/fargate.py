"""Fargate tasks as nodes: they have no instance, only a network interface."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from cloud_controller.cloud import Instance, InstanceState, NodeAddress
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.provider_ids import provider_id
from cloud_controller.clouds.common.concurrent_calls import batches

_PREFIX = "fargate-"
_IP_NAME = re.compile(r"ip-(?P<ip>\d+-\d+-\d+-\d+)(?:\..*)?")
_BATCH = 200
"""The most values in one filter."""


def describe(api: Api, vpc_id: Callable[[], str], names: Collection[str]) -> dict[str, Instance]:
    """The running tasks of these names (`fargate-ip-10-0-0-1.REGION.compute.internal`).

    A task runs as long as its interface is attached; nothing else shows its state.
    """
    if not names:
        return {}
    by_ip = {ip_of(name): name for name in names}
    found: dict[str, Instance] = {}
    for some in batches(sorted(by_ip), _BATCH):
        filters = [
            {"Name": "addresses.private-ip-address", "Values": some},
            # Another VPC may use the same addresses.
            {"Name": "vpc-id", "Values": [vpc_id()]},
        ]
        for interface in api.pages(
            "ec2", "DescribeNetworkInterfaces", "NetworkInterfaces", Filters=filters, MaxResults=1000
        ):
            name = by_ip.get(interface["PrivateIpAddress"])
            if name is not None and (interface.get("Attachment") or {}).get("Status") == "attached":
                found[name] = _instance(api, name, interface)
    return found


def ip_of(name: str) -> str:
    """The private address in a task's name."""
    rest = name.removeprefix(_PREFIX)
    by_name = _IP_NAME.fullmatch(rest)
    return by_name["ip"].replace("-", ".") if by_name else rest


def _instance(api: Api, name: str, interface: Mapping[str, Any]) -> Instance:
    zone = interface["AvailabilityZone"]
    return Instance(
        id=name,
        provider_id=provider_id(zone, name),
        name=name,
        # AWS has no instance type for tasks, so the label is omitted.
        type="",
        zone=zone,
        region=api.region,
        state=InstanceState.RUNNING,
        addresses=tuple(_addresses(api, interface)),
    )


def _addresses(api: Api, interface: Mapping[str, Any]) -> Iterator[NodeAddress]:
    for family in api.config.node_ip_families:
        if family == "ipv4":
            yield NodeAddress("InternalIP", interface["PrivateIpAddress"])
        else:
            for entry in (interface.get("Ipv6Addresses") or ())[:1]:
                yield NodeAddress("InternalIP", entry["Ipv6Address"])
    if private_name := interface.get("PrivateDnsName"):
        yield NodeAddress("InternalDNS", private_name)
