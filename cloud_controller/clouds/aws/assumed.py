"""What builds need of AWS, assumed: for plans without the cloud. Pure.

The VPC has the subnets that the Service names, otherwise as many as it names addresses for, otherwise three. Each is
in a zone of its own, public, and has both address families.
"""

from __future__ import annotations

from contextlib import suppress
from ipaddress import AddressValueError, IPv4Address

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.build import AwsBuilder
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.facts import BuildFacts, Facts, Subnet
from cloud_controller.clouds.descriptor import Assumed
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import Object

_SUBNETS = 3


def assumed(cluster_id: str, service: Object) -> Assumed:
    """See `CloudDescriptor.assumed`."""
    addresses = _words(service, "private_ipv4_addresses")
    number = len(_words(service, "eip_allocations")) or len(addresses) or _SUBNETS
    names = dict.fromkeys(_words(service, "subnets")) or [f"subnet-assumed-{each}" for each in range(1, number + 1)]
    subnets = tuple(_subnet(index, name, addresses) for index, name in enumerate(names))
    return Assumed(AwsBuilder(Config(cluster_id)), Fact(BuildFacts(Facts("vpc-assumed", subnets))))


def _subnet(index: int, name: str, addresses: tuple[str, ...]) -> Subnet:
    cidr = f"10.{index // 256 % 256}.{index % 256}.0/24"
    if index < len(addresses):
        with suppress(AddressValueError):
            cidr = f"{IPv4Address(addresses[index])}/32"
    # A name without this prefix is the tag Name's.
    by_id = name.startswith("subnet-")
    return Subnet(
        id=name if by_id else f"subnet-assumed-{index + 1}",
        zone=f"assumed-region-{index + 1}a",
        cidr=cidr,
        ipv6_cidr=f"fd00:0:0:{index:x}::/64",
        public=True,
        tags={} if by_id else {"Name": name},
    )


def _words(service: Object, argument: str) -> tuple[str, ...]:
    """The value of a list annotation; empty if it is invalid, which `build` refuses."""
    try:
        found = CATALOGUE.value(service["metadata"].get("annotations"), argument)
    except InvalidConfiguration:
        return ()
    return found if isinstance(found, tuple) else ()
