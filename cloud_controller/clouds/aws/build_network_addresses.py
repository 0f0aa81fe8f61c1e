"""The address families and the chosen addresses of a network load balancer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws import attributes as aws
from cloud_controller.clouds.aws.facts import Subnet
from cloud_controller.clouds.aws.refusals import UDP_NEEDS_PREFIX
from cloud_controller.clouds.aws.request import Request, field
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Ignored

_SOURCE_NAT = "enable_prefix_for_ipv6_source_nat"


@dataclass(frozen=True, slots=True)
class AddressType:
    """The address families of the load balancer (`ipv4`, `dualstack`) and of its targets (`ipv4`, `ipv6`).

    `source_nat`: `on` if the load balancer has IPv6 prefixes as source addresses, else `off`.
    """

    type: str
    of_targets: str
    source_nat: str = "off"
    ignored: tuple[Ignored, ...] = ()

    @property
    def attributes(self) -> dict[str, Value | None]:
        """The model's attributes."""
        with_ipv6: dict[str, Value | None] = {aws.SOURCE_NAT: self.source_nat} if self.type == "dualstack" else {}
        return {"ip_address_type": self.type, **with_ipv6}


def address_type(asked: Request, subnets: Sequence[Subnet], transports: Sequence[str]) -> AddressType:
    """The address type for the Service's families or its annotation.

    A Service that prefers both families gets IPv4 only, with a warning, if both are not possible. Raises
    InvalidConfiguration if it requires both.
    """
    families = asked.spec.get("ipFamilies") or ["IPv4"]
    of_targets = "ipv6" if families[0] == "IPv6" else "ipv4"
    given = asked.settings.text("ip_address_type")
    source_nat = str(asked.settings.text(_SOURCE_NAT))
    if given == "ipv4" or (given is None and "IPv6" not in families):
        why = "the load balancer has no IPv6 addresses"
        return AddressType("ipv4", of_targets, ignored=tuple(asked.ignored(_SOURCE_NAT, why)))
    obstacle = _obstacle(subnets, () if source_nat == "on" else transports)
    if obstacle is None:
        return AddressType("dualstack", of_targets, source_nat)
    if given is not None:
        raise InvalidConfiguration(field("ip_address_type"), f"{given!r} is not possible: {obstacle}", "ipv4")
    if of_targets == "ipv6" or asked.spec.get("ipFamilyPolicy") == "RequireDualStack":
        raise InvalidConfiguration("spec.ipFamilies", f"{', '.join(families)} is not possible: {obstacle}", "IPv4")
    without = Ignored("spec.ipFamilies", tuple(families), f"the load balancer has only IPv4 addresses: {obstacle}")
    return AddressType("ipv4", of_targets, ignored=(without,))


def _obstacle(subnets: Sequence[Subnet], transports: Sequence[str]) -> str | None:
    without = [subnet.id for subnet in subnets if not subnet.ipv6_cidr]
    if without:
        return f"no IPv6 range in {', '.join(without)}"
    if any("UDP" in transport for transport in transports):
        return UDP_NEEDS_PREFIX
    return None


def own_addresses(asked: Request, subnets: Sequence[Subnet]) -> dict[str, Value | None]:
    """`eip_allocations` and `private_ipv4_addresses`, in the order of the sorted subnets.

    Raises InvalidConfiguration if they do not match the subnets.
    """
    return {
        "eip_allocations": _eip_allocations(asked, subnets),
        "private_ipv4_addresses": _private_addresses(asked, subnets),
    }


def _eip_allocations(asked: Request, subnets: Sequence[Subnet]) -> tuple[str, ...]:
    given = asked.words("eip_allocations")
    _require_fit(field("eip_allocations"), given, subnets)
    # The annotation's order is that of the named subnets, or of their zones.
    return tuple(allocation for _, allocation in sorted(zip((s.id for s in subnets), given, strict=False)))


def _private_addresses(asked: Request, subnets: Sequence[Subnet]) -> tuple[str, ...]:
    given, where = asked.words("private_ipv4_addresses"), field("private_ipv4_addresses")
    _require_fit(where, given, subnets)
    of_subnet: dict[str, str] = {}
    for word in given:
        address = IPv4Address(word)
        home = next((each for each in subnets if each.cidr and address in IPv4Network(each.cidr)), None)
        if home is None or home.id in of_subnet:
            ranges = ", ".join(f"{subnet.id} ({subnet.cidr})" for subnet in subnets)
            why = (
                f"{word} is not in the load balancer's subnets" if home is None else (f"two addresses are in {home.id}")
            )
            raise InvalidConfiguration(where, why, f"one address in each of {ranges}")
        of_subnet[home.id] = str(address)
    return tuple(address for _, address in sorted(of_subnet.items()))


def _require_fit(where: str, given: Sequence[str], subnets: Sequence[Subnet]) -> None:
    if given and len(given) != len(subnets):
        why = f"{len(given)} values for {len(subnets)} subnets ({', '.join(subnet.id for subnet in subnets)})"
        raise InvalidConfiguration(where, why, "one for each subnet")
