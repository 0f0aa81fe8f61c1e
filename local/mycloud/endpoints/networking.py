"""Endpoints of zones, networks, subnets and route tables."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from local.mycloud import networking
from local.mycloud.context import Ctx, Listing
from local.mycloud.errors import NotFound
from local.mycloud.models.common import MAX_PAGE, REGION, ZONES, Page, Update
from local.mycloud.models.networking import (
    CreateNetwork,
    CreateRoutes,
    CreateSubnet,
    DeleteRoutes,
    Network,
    NetworkRecord,
    Route,
    RouteResults,
    RouteTable,
    Subnet,
    SubnetRecord,
    ZoneObject,
)
from local.mycloud.store import update_object

router = APIRouter(tags=["networking"])


@router.get("/zones")
def list_zones(query: Listing) -> Page[ZoneObject]:
    wanted = query.wanted
    zones = [ZoneObject(id=zone, name=zone, region=REGION) for zone in ZONES]
    asked = [z for z in zones if (wanted.ids is None or z.id in wanted.ids) and wanted.name in (None, z.name)]
    return Page(items=asked)


@router.get("/zones/{id}")
def get_zone(id: str) -> ZoneObject:
    if id not in ZONES:
        raise NotFound(f"zone {id} does not exist")
    return ZoneObject(id=id, name=id, region=REGION)


@router.get("/networks", response_model=Page[Network])
def list_networks(context: Ctx, query: Listing) -> Page[NetworkRecord]:
    with context.store.read() as session:
        items, cursor = session.page(NetworkRecord, query.wanted, query.limit, query.cursor)
    return Page(items=items, next_cursor=cursor)


@router.post("/networks", status_code=201, response_model=Network)
def create_network(context: Ctx, request: CreateNetwork) -> NetworkRecord:
    with context.store.write() as session:
        return networking.create_network(session, context.block, request)


@router.get("/networks/{id}", response_model=Network)
def get_network(context: Ctx, id: str) -> NetworkRecord:
    with context.store.read() as session:
        return session.get(NetworkRecord, id)


@router.patch("/networks/{id}", response_model=Network)
def update_network(context: Ctx, id: str, request: Update) -> NetworkRecord:
    with context.store.write() as session:
        return update_object(session, session.get(NetworkRecord, id), request)


@router.delete("/networks/{id}", status_code=202, response_model=Network)
def delete_network(context: Ctx, id: str) -> NetworkRecord:
    with context.store.write() as session:
        return networking.delete_network(session, id)


@router.get("/subnets", response_model=Page[Subnet])
def list_subnets(context: Ctx, query: Listing) -> Page[SubnetRecord]:
    with context.store.read() as session:
        items, cursor = session.page(SubnetRecord, query.wanted, query.limit, query.cursor)
    return Page(items=items, next_cursor=cursor)


@router.post("/subnets", status_code=201, response_model=Subnet)
def create_subnet(context: Ctx, request: CreateSubnet) -> SubnetRecord:
    with context.store.write() as session:
        return networking.create_subnet(session, request)


@router.get("/subnets/{id}", response_model=Subnet)
def get_subnet(context: Ctx, id: str) -> SubnetRecord:
    with context.store.read() as session:
        return session.get(SubnetRecord, id)


@router.patch("/subnets/{id}", response_model=Subnet)
def update_subnet(context: Ctx, id: str, request: Update) -> SubnetRecord:
    with context.store.write() as session:
        return update_object(session, session.get(SubnetRecord, id), request)


@router.delete("/subnets/{id}", status_code=202, response_model=Subnet)
def delete_subnet(context: Ctx, id: str) -> SubnetRecord:
    with context.store.write() as session:
        return networking.delete_subnet(session, id)


@router.get("/route_tables")
def list_route_tables(context: Ctx, query: Listing) -> Page[RouteTable]:
    with context.store.read() as session:
        items, cursor = session.page(RouteTable, query.wanted, query.limit, query.cursor)
    return Page(items=items, next_cursor=cursor)


@router.get("/route_tables/{id}")
def get_route_table(context: Ctx, id: str) -> RouteTable:
    with context.store.read() as session:
        return session.get(RouteTable, id)


@router.patch("/route_tables/{id}")
def update_route_table(context: Ctx, id: str, request: Update) -> RouteTable:
    with context.store.write() as session:
        return update_object(session, session.get(RouteTable, id), request)


@router.get("/route_tables/{id}/routes")
def list_routes(
    context: Ctx,
    id: str,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = MAX_PAGE,
    cursor: str | None = None,
) -> Page[Route]:
    with context.store.read() as session:
        table = session.get(RouteTable, id)
        routes = session.routes(table.id, limit + 1, cursor)
    more = len(routes) > limit
    return Page(items=routes[:limit], next_cursor=routes[limit - 1].destination_cidr if more else None)


@router.post("/route_tables/{id}/routes:batch_create")
def create_routes(context: Ctx, id: str, request: CreateRoutes) -> RouteResults:
    with context.store.write() as session:
        return RouteResults(results=networking.create_routes(session, id, request.routes))


@router.post("/route_tables/{id}/routes:batch_delete")
def delete_routes(context: Ctx, id: str, request: DeleteRoutes) -> RouteResults:
    with context.store.write() as session:
        return RouteResults(results=networking.delete_routes(session, id, request.destination_cidrs))
