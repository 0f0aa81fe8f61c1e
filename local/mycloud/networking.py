"""Networks, subnets and routes: creation, changes and deletion, inside one transaction of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from itertools import chain

from local.addresses import NETWORKS_PER_SITE, AddressBlock
from local.mycloud import quotas
from local.mycloud.errors import ApiError, Conflict, InvalidParameter, NotFound, QuotaExceeded
from local.mycloud.filters import Filter
from local.mycloud.models.balancing import LoadBalancerRecord
from local.mycloud.models.common import State, now
from local.mycloud.models.compute import Cluster, MachineRecord
from local.mycloud.models.networking import (
    CreateNetwork,
    CreateSubnet,
    NetworkRecord,
    NewRoute,
    RouteResult,
    RouteTable,
    SubnetRecord,
)
from local.mycloud.schema import new_id
from local.mycloud.store import Session

LIVING = tuple(state.value for state in State if state is not State.TERMINATED)
"""The states of a machine that still holds its name, its address and its place."""


def create_network(session: Session, block: AddressBlock, request: CreateNetwork) -> NetworkRecord:
    """A network with the lowest free ranges of the site's block, and its route table."""
    if made := session.made_with(NetworkRecord, request):
        return made
    taken = {network.index for network in session.query(NetworkRecord)}
    free = [index for index in range(NETWORKS_PER_SITE) if index not in taken]
    if not free:
        raise QuotaExceeded(f"the site already has {NETWORKS_PER_SITE} networks, and no address ranges for more")
    ranges = block.network(free[0])
    network = NetworkRecord(
        id=new_id(NetworkRecord),
        name=request.name,
        tags=request.tags,
        state=State.CREATING,
        created_at=now(),
        cidr=str(ranges.machines),
        pod_cidr=str(ranges.pods),
        service_cidr=str(ranges.services),
        load_balancer_cidr=str(ranges.load_balancers),
        ipv6_cidr=str(ranges.machines_ipv6),
        pod_cidr_ipv6=str(ranges.pods_ipv6),
        route_table_id=new_id(RouteTable),
        index=free[0],
    )
    session.add(network)
    session.add(
        RouteTable(
            id=network.route_table_id,
            name=network.name,
            state=State.AVAILABLE,
            created_at=network.created_at,
            network_id=network.id,
        )
    )
    session.store_token(network, request)
    return network


def delete_network(session: Session, id: str) -> NetworkRecord:
    """Begin the deletion; raises `Conflict` while it contains anything."""
    network = session.get(NetworkRecord, id)
    inside = Filter(network_id=id)
    holders = {
        "subnets": [s.id for s in session.query(SubnetRecord, inside)],
        "clusters": [c.id for c in session.query(Cluster, inside)],
        "machines": [m.id for m in session.query(MachineRecord, Filter(network_id=id, states=LIVING))],
        "load balancers": [b.id for b in session.query(LoadBalancerRecord, inside)],
    }
    _refuse_if_held(f"network {id}", holders)
    network.state = State.DELETING
    session.save(network)
    return network


def create_subnet(session: Session, request: CreateSubnet) -> SubnetRecord:
    """A subnet with the lowest free /20 of its network."""
    if made := session.made_with(SubnetRecord, request):
        return made
    network = session.referenced(NetworkRecord, request.network_id, "network_id")
    taken = {subnet.cidr for subnet in session.query(SubnetRecord, Filter(network_id=network.id))}
    free = [str(cidr) for cidr in IPv4Network(network.cidr).subnets(new_prefix=20) if str(cidr) not in taken]
    if not free:
        raise QuotaExceeded(f"network {network.id} has no free /20 for another subnet", field="network_id")
    subnet = SubnetRecord(
        id=new_id(SubnetRecord),
        name=request.name,
        tags=request.tags,
        state=State.CREATING,
        created_at=now(),
        network_id=network.id,
        zone=request.zone,
        cidr=free[0],
    )
    session.add(subnet)
    session.store_token(subnet, request)
    return subnet


def delete_subnet(session: Session, id: str) -> SubnetRecord:
    """Begin the deletion; raises `Conflict` while it contains machines."""
    subnet = session.get(SubnetRecord, id)
    machines = session.query(MachineRecord, Filter(subnet_id=id, states=LIVING))
    _refuse_if_held(f"subnet {id}", {"machines": [machine.id for machine in machines]})
    subnet.state = State.DELETING
    session.save(subnet)
    return subnet


def create_routes(session: Session, table_id: str, routes: Iterable[NewRoute]) -> list[RouteResult]:
    """Write each route, or return why not. An existing one with the same next hop is a success."""
    table = session.get(RouteTable, table_id)
    return [_result(route.destination_cidr, partial(_create_route, session, table, route)) for route in routes]


def delete_routes(session: Session, table_id: str, destinations: Iterable[str]) -> list[RouteResult]:
    """Delete each route, or return why not."""
    table = session.get(RouteTable, table_id)

    def delete(destination: str) -> None:
        if not session.remove_route(table.id, destination):
            raise NotFound(f"route table {table.id} has no route to {destination}")

    return [_result(destination, partial(delete, destination)) for destination in destinations]


def free_host(cidr: str, start: int, is_taken: Callable[[str], bool]) -> tuple[str, int]:
    """The next free address of a range from host number `start` on (then from the beginning), and where to continue.

    As in other clouds, host numbers whose last octet is 0 or 255 and the first ten are skipped. Raises `QuotaExceeded`.
    """
    network = IPv4Network(cidr)
    end = network.num_addresses - 1
    for number in chain(range(start, end), range(10, min(start, end))):
        if number % 256 in (0, 255):
            continue
        address = str(network[number])
        if not is_taken(address):
            return address, number + 1
    raise QuotaExceeded(f"no address is free in {cidr}")


def ipv6_address(network: NetworkRecord, address: str) -> str | None:
    """The IPv6 address beside an IPv4 one of the network: the same host number in the network's IPv6 range, if any."""
    if network.ipv6_cidr is None:
        return None
    host = int(IPv4Address(address)) - int(IPv4Network(network.cidr).network_address)
    return str(IPv6Network(network.ipv6_cidr)[host])


def _create_route(session: Session, table: RouteTable, route: NewRoute) -> None:
    machine = session.find(MachineRecord, route.next_hop_machine_id)
    if machine is None or machine.network_id != table.network_id:
        raise InvalidParameter(
            f"machine {route.next_hop_machine_id!r} is not in network {table.network_id}", field="next_hop_machine_id"
        )
    if machine.state == State.TERMINATED:
        raise Conflict(f"machine {machine.id} is terminated", field="next_hop_machine_id")
    target = session.route_target(table.id, route.destination_cidr)
    if target is None:
        quotas.require(session, "routes_per_table", session.count_routes(table.id), of=f"route table {table.id}")
        session.add_route(table.id, route.destination_cidr, machine.id)
    elif target != machine.id:
        raise Conflict(f"a route to {route.destination_cidr} already leads to {target}", field="destination_cidr")


def _result(destination: str, action: Callable[[], None]) -> RouteResult:
    try:
        action()
    except ApiError as error:
        return RouteResult(destination_cidr=destination, error=error.detail)
    return RouteResult(destination_cidr=destination)


def _refuse_if_held(what: str, holders: dict[str, list[str]]) -> None:
    held = [f"{kind} {', '.join(ids[:3])}{' …' if len(ids) > 3 else ''}" for kind, ids in holders.items() if ids]
    if held:
        raise Conflict(f"{what} still has {'; '.join(held)}")
