"""The pod routes on a Neutron router. Routes have no tags; the plan decides which are the cluster's.

A route leads to an address, its next hop, of a server's port. Neutron lets a port send from pods' addresses only as far
as its allowed address pairs say so: they are written before a route and taken off before it is removed, so that
whoever finds the route after an interruption finds its pair too, or makes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from ipaddress import ip_address, ip_network

from cloud_controller import retries
from cloud_controller.cloud import (
    CloudError,
    Conflict,
    InvalidConfiguration,
    NotFound,
    QuotaExceeded,
    Route,
    RouteFailure,
)
from cloud_controller.clouds.openstack.client import Object, Objects, OpenStackClient
from cloud_controller.clouds.openstack.instances import NovaInstances
from cloud_controller.clouds.openstack.names import ROUTER_INTERFACES

Hop = tuple[str, str]
"""A destination and the address to which it leads."""
Failures = dict[Route, CloudError]


class RouterRoutes:
    """The routes of one router."""

    def __init__(self, client: OpenStackClient, router_id: str, instances: NovaInstances) -> None:
        self._client = client
        self._router_id = router_id
        self._instances = instances
        self._changing = threading.Lock()
        self._atomic = True
        self._servers: dict[str, str] = {}
        """The server of each next hop's port, "" if it is no server's. One whose port is unplugged keeps its routes."""

    def list(self) -> Sequence[Route]:
        """Every route of the router, including others', each destination once."""
        router = self._router()
        hops = _hops(router)
        self._learn(router)
        gone = self._instances.missing({self._servers[hop] for _, hop in hops if self._servers.get(hop)})
        found: dict[str, Route] = {}
        for destination, hop in hops:
            server = self._servers.get(hop)
            dead = server is None or server in gone
            # An address of a port that is no server's is somebody's; one of no port is nobody's.
            route = Route(destination, "" if dead else server or "", blackhole=dead, owned=None)
            if destination not in found or found[destination].blackhole:
                found[destination] = route
        return [*found.values()]

    def quota(self) -> int | None:
        """None: Neutron's `max_routes` is in no API."""
        return None

    def create(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Create them, each to an address of its server in a subnet of the router, and allow their addresses there.

        An existing route to the same server is a success.
        """
        return self._each(routes, self._create)

    def delete(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Delete them, and what allowed their addresses; a missing route is a success."""
        return self._each(routes, self._delete)

    def _each(self, routes: Sequence[Route], work: Callable[[Sequence[Route]], Failures]) -> Sequence[RouteFailure]:
        if not routes:
            return []
        with self._changing:
            try:
                failures = work(routes)
            except CloudError as error:
                failures = dict.fromkeys(routes, error)
        return [RouteFailure(route, error) for route, error in failures.items()]

    def _create(self, routes: Sequence[Route]) -> Failures:
        existing = _hops(self._router())
        ports = self._ports("device_id", {self._router_id, *(route.target_instance for route in routes)})
        subnets = self._subnets(ports)
        failures: Failures = {}
        wanted: dict[Route, tuple[Object, Hop]] = {}
        for route in routes:
            found = _port_of(route, ports, subnets)
            if found is None:
                why = f"has no address in a subnet of router {self._router_id} for {route.destination_cidr}"
                failures[route] = Conflict(f"OpenStack: server {route.target_instance} {why}")
                continue
            port, address = found
            others = {hop for destination, hop in existing if destination == route.destination_cidr} - {address}
            if others:
                leads = f"{route.destination_cidr} of router {self._router_id} leads to {', '.join(sorted(others))}"
                failures[route] = Conflict(f"OpenStack: the route {leads}")
                continue
            self._servers[address] = route.target_instance
            wanted[route] = port, (route.destination_cidr, address)
        failures |= self._pair(wanted, add=True)
        missing = {route: hop for route, (_, hop) in wanted.items() if route not in failures and hop not in existing}
        return failures | self._write("add_extraroutes", missing)

    def _delete(self, routes: Sequence[Route]) -> Failures:
        router = self._router()
        existing = _hops(router)
        destinations = {route.destination_cidr for route in routes}
        ports = self._learn(router, {hop for destination, hop in existing if destination in destinations})
        doomed = {
            route: [
                (destination, hop)
                for destination, hop in existing
                if destination == route.destination_cidr
                and (not route.target_instance or self._servers.get(hop, "") in ("", route.target_instance))
            ]
            for route in routes
        }
        paired = {
            route: (ports[hop], (destination, hop))
            for route, hops in doomed.items()
            for destination, hop in hops
            if hop in ports
        }
        failures = self._pair(paired, add=False)
        ready = {route: hop for route, hops in doomed.items() if route not in failures for hop in hops}
        return failures | self._write("remove_extraroutes", ready)

    # -------------------------------------------------------------------------------------------------------- router

    def _router(self) -> Object:
        try:
            found: Object = self._client.get("network", f"routers/{self._router_id}")["router"]
        except NotFound as error:
            field = "cloud config: [Route] router-id"
            raise InvalidConfiguration(field, f"router {self._router_id} does not exist") from error
        return found

    def _write(self, verb: str, hops: dict[Route, Hop]) -> Failures:
        """Add or remove routes in one call; where one is refused for itself, the others are tried without it."""
        if not hops:
            return {}
        try:
            self._extra(verb, [*hops.values()])
        except (QuotaExceeded, InvalidConfiguration) as error:
            if len(hops) == 1:
                return dict.fromkeys(hops, error)
            half = len(hops) // 2
            parts = dict([*hops.items()][:half]), dict([*hops.items()][half:])
            return self._write(verb, parts[0]) | self._write(verb, parts[1])
        except CloudError as error:
            return dict.fromkeys(hops, error)
        return {}

    def _extra(self, verb: str, hops: Sequence[Hop]) -> None:
        entries = [{"destination": destination, "nexthop": hop} for destination, hop in hops]
        path = f"routers/{self._router_id}"
        if self._atomic:
            try:
                self._client.put("network", f"{path}/{verb}", {"router": {"routes": entries}})
                return
            except NotFound:
                # The extension extraroute-atomic is missing, or the router is: the read below tells.
                self._atomic = False

        def replaced(_: int) -> None:
            router = self._router()
            kept = [each for each in router["routes"] if each not in entries]
            wanted = [*kept, *(entries if verb == "add_extraroutes" else ())]
            body = {"router": {"routes": wanted}}
            self._client.put("network", path, body, if_revision=router.get("revision_number"))

        retries.change(replaced)

    # --------------------------------------------------------------------------------------------------------- ports

    def _ports(self, field: str, values: Collection[str]) -> Objects:
        return self._client.list_by("network", "ports", "ports", field, values)

    def _learn(self, router: Object, more: Collection[str] = ()) -> Mapping[str, Object]:
        """Find the servers of next hops where Nova does not show them: an address may be another's by now.

        Return their ports, and those of `more` next hops.
        """
        hops = {hop for _, hop in _hops(router)}
        doubtful = {each for each in hops if not self._instances.shows(self._servers.get(each), each)} | {*more}
        ports = self._at(router, doubtful)
        for address in doubtful:
            port = ports.get(address)
            if port is None:
                self._servers.pop(address, None)
            elif port["device_id"]:
                is_servers = str(port["device_owner"]).startswith("compute:")
                self._servers[address] = port["device_id"] if is_servers else ""
            else:
                self._servers.setdefault(address, "")
        return ports

    def _at(self, router: Object, addresses: Collection[str]) -> Mapping[str, Object]:
        """The port that has each address in a subnet of the router: in other networks, others may have it."""
        if not addresses:
            return {}
        # Only the router shows a project where its gateway is.
        gateway = (router.get("external_gateway_info") or {}).get("external_fixed_ips") or ()
        subnets = self._subnets(self._ports("device_id", {self._router_id})) | {ip["subnet_id"] for ip in gateway}
        ports = self._ports("fixed_ips", {f"ip_address={each}" for each in addresses})
        return {ip["ip_address"]: port for port in ports for ip in port["fixed_ips"] if ip["subnet_id"] in subnets}

    def _subnets(self, ports: Iterable[Object]) -> set[str]:
        """The subnets in which the router, whose ports are among these, has an interface."""
        interfaces = (
            each for each in ports if each["device_id"] == self._router_id and each["device_owner"] in ROUTER_INTERFACES
        )
        return {ip["subnet_id"] for port in interfaces for ip in port["fixed_ips"]}

    def _pair(self, wanted: dict[Route, tuple[Object, Hop]], *, add: bool) -> Failures:
        """Allow or forbid these destinations on their ports: a call for each port that has to change."""
        failures: Failures = {}
        by_port: dict[str, dict[Route, str]] = {}
        ports = {port["id"]: port for port, _ in wanted.values()}
        for route, (port, (destination, _)) in wanted.items():
            by_port.setdefault(port["id"], {})[route] = destination
        for port_id, destinations in by_port.items():
            try:
                self._set_pairs(ports[port_id], {*destinations.values()}, add=add)
            except NotFound:
                if add:
                    failures |= dict.fromkeys(destinations, Conflict(f"OpenStack: port {port_id} is gone"))
            except CloudError as error:
                failures |= dict.fromkeys(destinations, error)
        return failures

    def _set_pairs(self, port: Object, destinations: set[str], *, add: bool) -> None:
        """Only these pairs change: what others write meanwhile is read again, not overwritten."""

        def written(attempt: int) -> None:
            now = self._client.get("network", f"ports/{port['id']}")["port"] if attempt else port
            if not now.get("port_security_enabled", True):
                return  # It may send from any address.
            pairs = now["allowed_address_pairs"]
            present = {_canonical(each["ip_address"]) for each in pairs} & destinations
            if present == (destinations if add else set()):
                return
            kept = [each for each in pairs if _canonical(each["ip_address"]) not in destinations]
            new = [{"ip_address": each} for each in sorted(destinations)] if add else []
            body = {"port": {"allowed_address_pairs": [*kept, *new]}}
            self._client.put("network", f"ports/{port['id']}", body, if_revision=now.get("revision_number"))

        retries.change(written)


def _hops(router: Object) -> list[Hop]:
    return [(_canonical(each["destination"]), each["nexthop"]) for each in router["routes"]]


def _port_of(route: Route, ports: Iterable[Object], subnets: Collection[str]) -> tuple[Object, str] | None:
    """The server's port, and its address, that the router reaches; always the same of several."""
    version = ip_network(route.destination_cidr).version
    found = [
        (port["id"], ip["ip_address"], port)
        for port in ports
        if port["device_id"] == route.target_instance
        for ip in port["fixed_ips"]
        if ip["subnet_id"] in subnets and ip_address(ip["ip_address"]).version == version
    ]
    if not found:
        return None
    _, address, port = min(found, key=lambda each: each[:2])
    return port, address


def _canonical(destination: str) -> str:
    """As the controllers write it: IPv6 has several spellings."""
    try:
        return str(ip_network(destination, strict=False))
    except ValueError:
        return destination
