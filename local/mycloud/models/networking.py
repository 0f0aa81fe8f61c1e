"""Networks, subnets, route tables and routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from local.mycloud.models.common import Cidr, CloudObject, Create, ErrorDetail, State, Strict, Zone

MAX_ROUTE_BATCH = 50


class ZoneObject(BaseModel):
    """A zone; zones are fixed."""

    id: str
    name: str
    region: str
    state: State = State.AVAILABLE


class Network(CloudObject):
    """A network with its ranges: machines (`cidr`), pods, cluster IPs and load balancers.

    The IPv6 ranges, of machines and pods, exist only as data; networks from before them have none.
    """

    cidr: str
    pod_cidr: str
    service_cidr: str
    load_balancer_cidr: str
    ipv6_cidr: str | None = None
    pod_cidr_ipv6: str | None = None
    route_table_id: str


class Subnet(CloudObject):
    """A part of a network's machine range in one zone."""

    network_id: str
    zone: str
    cidr: str


class RouteTable(CloudObject):
    """The pod routes of one network."""

    network_id: str


class Route(BaseModel):
    """Packets for `destination_cidr` go to a machine; `blackhole` once that machine is gone."""

    destination_cidr: str
    next_hop_machine_id: str
    state: Literal["active", "blackhole"] = "active"


class NetworkRecord(Network):
    """`index`: which of the site's ranges it has. `next_lb_host`: where the search for a free address continues."""

    index: int
    next_lb_host: int = 10


class SubnetRecord(Subnet):
    """`next_host`: where the search for a free address continues, so that a freed one is not reused at once."""

    next_host: int = 10


class CreateNetwork(Create):
    pass


class CreateSubnet(Create):
    network_id: str
    zone: Zone


class NewRoute(Strict):
    destination_cidr: Cidr
    next_hop_machine_id: str


class CreateRoutes(Strict):
    routes: Annotated[list[NewRoute], Field(max_length=MAX_ROUTE_BATCH)]


class DeleteRoutes(Strict):
    destination_cidrs: Annotated[list[Cidr], Field(max_length=MAX_ROUTE_BATCH)]


class RouteResult(BaseModel):
    destination_cidr: str
    error: ErrorDetail | None = None


class RouteResults(BaseModel):
    results: list[RouteResult]
