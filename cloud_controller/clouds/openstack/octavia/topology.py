"""The networks of the project, as builds and writes need them: where nodes are, and where floating IPs come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any, Protocol

from cloud_controller import patterns
from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.openstack.octavia.options import Networks
from cloud_controller.load_balancers.annotation import shown

_MISSED_SECONDS = 15.0
"""The age from which the networks are read again when a node is in no known subnet: its subnet may be new."""
_MEMBER_SUBNET = "annotation loadbalancer.openstack.org/member-subnet-id, or [LoadBalancer] member-subnet-id"


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet of Neutron that the project sees."""

    id: str
    name: str
    network_id: str
    cidr: str
    tags: frozenset[str] = frozenset()

    @classmethod
    def of(cls, view: Mapping[str, Any]) -> Subnet:
        """From the API's object."""
        tags = frozenset(view.get("tags") or ())
        return cls(view["id"], view.get("name") or "", view["network_id"], view["cidr"], tags)

    def has(self, address: str) -> bool:
        """Whether the address is one of its range."""
        return ip_address(address) in ip_network(self.cidr)


@dataclass(frozen=True, slots=True)
class Topology:
    """All subnets that the project sees, and the external networks by ID with their names."""

    subnets: tuple[Subnet, ...] = ()
    external: Mapping[str, str] | None = None

    def subnet_of(self, address: str) -> Subnet:
        """The subnet of a node. Raises InvalidConfiguration if none has its address, or several have."""
        external = self.external or {}
        found = [each for each in self.subnets if each.network_id not in external and each.has(address)]
        if len(found) != 1:
            which = ", ".join(each.id for each in found) or "no subnet of the project"
            raise InvalidConfiguration(
                _MEMBER_SUBNET, f"missing: {which} has the node's address {address}", "a subnet ID"
            )
        return found[0]

    def range_of(self, subnet_id: str, address: str) -> str:
        """The CIDR of the subnet from which the node is reached; "": its own. Raises InvalidConfiguration."""
        if not subnet_id:
            return self.subnet_of(address).cidr
        found = next((each for each in self.subnets if each.id == subnet_id), None)
        if found is None:
            raise InvalidConfiguration(_MEMBER_SUBNET, f"the project sees no subnet {subnet_id}", "a subnet ID")
        return found.cidr

    def only_external(self, field: str) -> str:
        """The only external network. Raises InvalidConfiguration for the field that could name one of several."""
        external = self.external or {}
        if len(external) == 1:
            return next(iter(external))
        names = ", ".join(f"{each} ({name})" for each, name in sorted(external.items()))
        why = "missing, and there are several external networks" if external else "there is no external network"
        raise InvalidConfiguration(field, why, names or "an internal load balancer")

    def candidates(self, network_id: str, wanted: str, field: str) -> list[Subnet]:
        """The subnets of the external network that a choice (see `choice_of`) allows. Raises InvalidConfiguration."""
        here = [each for each in self.subnets if each.network_id == network_id]
        kind, _, value = wanted.partition(":")
        if kind == "id":
            found = [each for each in here if each.id == value]
        elif kind == "tags":
            tags = {word.strip() for word in value.split(",") if word.strip()}
            found = [each for each in here if tags <= each.tags]
        else:
            is_meant = name_pattern(value, field)
            found = [each for each in here if is_meant(each.name)]
        if not found:
            names = ", ".join(f"{each.id} ({each.name})" for each in here)
            raise InvalidConfiguration(field, f"no subnet of network {network_id} has {wanted}", names or "none")
        return sorted(found, key=lambda each: (each.name, each.id))


class ReadTopology(Protocol):
    """Returns the topology as it was read at most `max_age` seconds ago; None: within the usual time."""

    def __call__(self, max_age: float | None = None) -> Topology: ...


def subnets_of(addresses: Iterable[str], read: ReadTopology) -> tuple[dict[str, str], dict[str, InvalidConfiguration]]:
    """The IDs of the nodes' subnets, and what is wrong with the other nodes; each by the node's address."""
    found, missing = _subnets_of(addresses, read)
    if missing:
        newer, missing = _subnets_of(missing, lambda: read(_MISSED_SECONDS))
        found |= newer
    return found, missing


def _subnets_of(
    addresses: Iterable[str], read: Callable[[], Topology]
) -> tuple[dict[str, str], dict[str, InvalidConfiguration]]:
    found, missing = {}, {}
    for each in addresses:
        try:
            found[each] = read().subnet_of(each).id
        except InvalidConfiguration as error:
            missing[each] = error
    return found, missing


def choice_of(networks: Networks) -> str:
    """What is asked of the floating IP's subnet: `id:…`, `name:…` or `tags:…`; "" for any."""
    if networks.floating_subnet_id:
        return f"id:{networks.floating_subnet_id}"
    if networks.floating_subnet:
        return f"name:{networks.floating_subnet}"
    return f"tags:{networks.floating_subnet_tags}" if networks.floating_subnet_tags else ""


def name_pattern(pattern: str, field: str) -> Callable[[str], bool]:
    """Whether a name is as the pattern says (`public-*`, `~REGEX`, either after `!`). Raises InvalidConfiguration."""
    plain = pattern.removeprefix("!")
    try:
        is_like = patterns.of_author(plain.removeprefix("~"), is_glob=not plain.startswith("~"))
    except patterns.InvalidPattern as error:
        allowed = f"a name, a pattern with * and ?, or ~ and an RE2 expression of at most {patterns.LONGEST} characters"
        raise InvalidConfiguration(field, f"{shown(pattern)} is not a valid pattern: {error}", allowed) from None
    return lambda name: is_like(name) != pattern.startswith("!")
