"""Puts networks and machines into the account, as a person, a cluster or a site would, and takes them away.

Every function changes the account at once; call them in `AliCloud.changing()`.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from local.alicloud.account import Account
from local.standin.refusals import Refusal
from local.standin.store import Object

VPC, VSWITCH, ROUTE_TABLE, ROUTE = "vpc", "vswitch", "route table", "route"
INSTANCE, ENI, EIP, SECURITY_GROUP, BANDWIDTH = "instance", "eni", "eip", "security group", "bandwidth package"

_PUBLIC: Final = ipaddress.ip_network("203.0.113.0/24")
_PUBLIC_MORE: Final = ipaddress.ip_network("198.18.0.0/15")


def add_vpc(account: Account, id: str = "", cidr: str = "192.168.0.0/16", ipv6_cidr: str = "") -> str:
    """A VPC with a router and its system route table."""
    new = id or account.new_id("vpc")
    body = {"id": new, "cidr": cidr, "ipv6_cidr": ipv6_cidr, "router": account.new_id("vrt"), "made": account.now()}
    account.store.put(VPC, new, body)
    add_route_table(account, new, kind="System")
    return new


def add_vswitch(
    account: Account, vpc: str, zone: str, cidr: str, id: str = "", ipv6_cidr: str = "", addresses: int | None = None
) -> str:
    """A subnet of the VPC. `addresses`: how many are free; all of the CIDR's unless given."""
    new = id or account.new_id("vsw")
    require(account, VPC, vpc)
    body = {"id": new, "vpc": vpc, "zone": zone, "cidr": cidr, "ipv6_cidr": ipv6_cidr, "made": account.now()}
    account.store.put(VSWITCH, new, body | {"addresses": addresses, "used": []})
    return new


def add_route_table(account: Account, vpc: str, id: str = "", kind: str = "Custom") -> str:
    """A route table of the VPC."""
    new = id or account.new_id("vtb")
    account.store.put(ROUTE_TABLE, new, {"id": new, "vpc": vpc, "kind": kind, "made": account.now()})
    return new


def add_security_group(account: Account, vpc: str, id: str = "") -> str:
    """A security group of the VPC."""
    new = id or account.new_id("sg")
    account.store.put(SECURITY_GROUP, new, {"id": new, "vpc": vpc, "made": account.now()})
    return new


def add_bandwidth_package(account: Account, id: str = "", bandwidth: int = 1000) -> str:
    """A shared bandwidth package."""
    new = id or account.new_id("cbwp")
    account.store.put(BANDWIDTH, new, {"id": new, "bandwidth": bandwidth, "made": account.now()})
    return new


def add_eip(account: Account, id: str = "", address: str = "", instance: str = "", kind: str = "", **tags: str) -> str:
    """An elastic IP address, bound to an instance (EcsInstance), a CLB (SlbInstance) or nothing."""
    new = id or account.new_id("eip")
    body = {"id": new, "address": address or public_address(account), "instance": instance, "kind": kind, "tags": tags}
    account.store.put(EIP, new, body | {"made": account.now()})
    return new


def add_instance(
    account: Account,
    vswitch: str,
    id: str = "",
    *,
    name: str = "",
    host_name: str = "",
    address: str = "",
    ipv6: Sequence[str] = (),
    type: str = "ecs.g7.xlarge",
    status: str = "Running",
    charge_type: str = "PostPaid",
    spot_strategy: str = "NoSpot",
    public_address: str = "",
    eip: str = "",
    security_groups: Sequence[str] = (),
    tags: Mapping[str, str] | None = None,
    role: str = "",
) -> str:
    """A machine with its primary network interface. `role` is a RAM role that its metadata service gives keys for.

    Its host name is its name if there is no other; without a name too, it is ECS's default.
    """
    new = id or account.new_id("i")
    subnet = require(account, VSWITCH, vswitch)
    eni = add_eni(account, vswitch, address=address, ipv6=ipv6, instance=new, kind="Primary", groups=security_groups)
    if eip:
        account.fill(EIP, eip, instance=new, kind="EcsInstance")
    body = {
        "id": new,
        "name": name or new,
        "host_name": host_name or name or f"iZ{new.removeprefix('i-')}Z",
        "vpc": subnet["vpc"],
        "vswitch": vswitch,
        "zone": subnet["zone"],
        "type": type,
        "status": status,
        "charge_type": charge_type,
        "spot_strategy": spot_strategy,
        "public_address": public_address,
        "security_groups": list(security_groups),
        "enis": [eni],
        "tags": dict(tags or {}),
        "role": role,
        "made": account.now(),
    }
    account.store.put(INSTANCE, new, body)
    return new


def host_name(instance: Object) -> str:
    """The machine's host name. Accounts from before there was one have the name."""
    return str(instance.get("host_name", instance["name"]))


def node_name(instance: Object) -> str:
    """The name under which the machine's kubelet registers: as every kubelet, it lower-cases the host name."""
    return host_name(instance).lower()


def add_eni(
    account: Account,
    vswitch: str,
    id: str = "",
    *,
    address: str = "",
    more_addresses: Sequence[str] = (),
    ipv6: Sequence[str] = (),
    instance: str = "",
    kind: str = "Secondary",
    groups: Sequence[str] = (),
) -> str:
    """A network interface; a Secondary one with an instance is attached to it."""
    new = id or account.new_id("eni")
    subnet = require(account, VSWITCH, vswitch)
    address = take_address(account, vswitch, address)
    body: dict[str, Any] = {
        "id": new,
        "vpc": subnet["vpc"],
        "vswitch": vswitch,
        "zone": subnet["zone"],
        "addresses": [address, *(take_address(account, vswitch, each) for each in more_addresses)],
        "ipv6": list(ipv6),
        "instance": instance,
        "kind": kind,
        "groups": list(groups),
        "source_check": True,
        "made": account.now(),
    }
    account.store.put(ENI, new, body)
    owner = account.store.get(INSTANCE, instance)
    if owner is not None:
        account.fill(INSTANCE, instance, enis=[*owner["enis"], new])
    return new


def set_instance(account: Account, id: str, **changes: Any) -> None:
    """Change a machine, such as `status="Stopped"`."""
    require(account, INSTANCE, id)
    account.fill(INSTANCE, id, **changes)


def remove_instance(account: Account, id: str) -> None:
    """Release a machine with its interfaces. Routes to it stay, as in the cloud."""
    instance = require(account, INSTANCE, id)
    for eni in instance["enis"]:
        remove_eni(account, eni)
    for eip in account.store.all(EIP):
        if eip["instance"] == id:
            account.fill(EIP, eip["id"], instance="", kind="")
    account.store.remove(INSTANCE, id)


def remove_eni(account: Account, id: str) -> None:
    """Delete a network interface and free its addresses."""
    eni = require(account, ENI, id)
    for address in eni["addresses"]:
        free_address(account, eni["vswitch"], address)
    account.store.remove(ENI, id)


def take_address(account: Account, vswitch: str, address: str = "") -> str:
    """Reserve this private address of the subnet, or the next free one. Raises Refusal."""
    subnet = require(account, VSWITCH, vswitch)
    network, used = ipaddress.ip_network(subnet["cidr"]), set(subnet["used"])
    if subnet["addresses"] is not None and len(used) >= subnet["addresses"]:
        raise Refusal(400, "VSwitchAvailableIpNotExist", "The specified VSwitch has no available ip.")
    if not address:
        # The cloud keeps the first and the last three of a subnet.
        first, last = 10, network.num_addresses - 3
        likely = itertools.chain(range(first + len(used), last), range(first, min(first + len(used), last)))
        candidates = (str(network[number]) for number in likely)
        free = next((each for each in candidates if each not in used), None)
        if free is None:
            raise Refusal(400, "VSwitchAvailableIpNotExist", "The specified VSwitch has no available ip.")
        address = free
    elif ipaddress.ip_address(address) not in network:
        raise Refusal(400, "InvalidParameter", f"Illegal parameter. The IP address is not in subnet: {address}.")
    elif address in used:
        raise Refusal(400, "InvalidParameter", f"The vpc Ip is exist: {address}.")
    account.fill(VSWITCH, vswitch, used=[*subnet["used"], address])
    return address


def free_address(account: Account, vswitch: str, address: str) -> None:
    """Give a private address back."""
    subnet = account.store.get(VSWITCH, vswitch)
    if subnet is not None:
        account.fill(VSWITCH, vswitch, used=[each for each in subnet["used"] if each != address])


def public_address(account: Account) -> str:
    """A public address that was never given."""
    number = account.store.next_number("public address")
    few = _PUBLIC.num_addresses - 2
    return str(_PUBLIC[number] if number <= few else _PUBLIC_MORE[number - few])


def require(account: Account, kind: str, id: str) -> Object:
    """The object; raises LookupError, for here nobody reads error codes."""
    found = account.store.get(kind, id)
    if found is None:
        raise LookupError(f"the account has no {kind} {id!r}")
    return found
