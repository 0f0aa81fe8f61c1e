"""Endpoints of load balancers, their listeners and their backend sets."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from local.mycloud import balancing
from local.mycloud.context import Ctx, Listing
from local.mycloud.models.balancing import (
    BackendHealth,
    BackendResults,
    CreateLoadBalancer,
    DeregisterBackends,
    ListenerCounters,
    LoadBalancer,
    LoadBalancerRecord,
    PutBackendSet,
    PutListener,
    RegisterBackends,
    UpdateLoadBalancer,
)
from local.mycloud.models.common import Items, Page, Protocol

router = APIRouter(prefix="/load_balancers", tags=["load balancing"])

PortInPath = Annotated[int, Path(ge=1, le=65535)]
SetName = Annotated[str, Path(min_length=1, max_length=255)]


@router.get("")
def list_load_balancers(context: Ctx, query: Listing) -> Page[LoadBalancer]:
    with context.store.read() as session:
        items, cursor = session.page(LoadBalancerRecord, query.wanted, query.limit, query.cursor)
    return Page(items=[balancing.public(item) for item in items], next_cursor=cursor)


@router.post("", status_code=201)
def create_load_balancer(context: Ctx, request: CreateLoadBalancer) -> LoadBalancer:
    with context.store.write() as session:
        return balancing.public(balancing.create_load_balancer(session, request, context.first_port))


@router.get("/{id}")
def get_load_balancer(context: Ctx, id: str) -> LoadBalancer:
    with context.store.read() as session:
        return balancing.public(session.get(LoadBalancerRecord, id))


@router.patch("/{id}")
def update_load_balancer(context: Ctx, id: str, request: UpdateLoadBalancer) -> LoadBalancer:
    with context.store.write() as session:
        return balancing.public(balancing.update_load_balancer(session, id, request, context.first_port))


@router.delete("/{id}", status_code=202)
def delete_load_balancer(context: Ctx, id: str) -> LoadBalancer:
    with context.store.write() as session:
        return balancing.public(balancing.delete_load_balancer(session, id))


@router.put("/{id}/listeners/{protocol}/{port}")
def put_listener(context: Ctx, id: str, protocol: Protocol, port: PortInPath, request: PutListener) -> LoadBalancer:
    with context.store.write() as session:
        changed = balancing.put_listener(session, id, protocol, port, request, context.first_port)
    return balancing.public(changed)


@router.delete("/{id}/listeners/{protocol}/{port}")
def delete_listener(context: Ctx, id: str, protocol: Protocol, port: PortInPath) -> LoadBalancer:
    with context.store.write() as session:
        return balancing.public(balancing.delete_listener(session, id, protocol, port, context.first_port))


@router.put("/{id}/backend_sets/{name}")
def put_backend_set(context: Ctx, id: str, name: SetName, request: PutBackendSet) -> LoadBalancer:
    with context.store.write() as session:
        return balancing.public(balancing.put_backend_set(session, id, name, request, context.first_port))


@router.delete("/{id}/backend_sets/{name}")
def delete_backend_set(context: Ctx, id: str, name: SetName) -> LoadBalancer:
    with context.store.write() as session:
        return balancing.public(balancing.delete_backend_set(session, id, name, context.first_port))


@router.post("/{id}/backend_sets/{name}/backends:batch_register")
def register_backends(context: Ctx, id: str, name: SetName, request: RegisterBackends) -> BackendResults:
    with context.store.write() as session:
        results = balancing.register_backends(session, id, name, request.backends, context.first_port)
    return BackendResults(results=results)


@router.post("/{id}/backend_sets/{name}/backends:batch_deregister")
def deregister_backends(context: Ctx, id: str, name: SetName, request: DeregisterBackends) -> BackendResults:
    with context.store.write() as session:
        results = balancing.deregister_backends(session, id, name, request.backends, context.first_port)
    return BackendResults(results=results)


@router.get("/{id}/health")
def get_health(context: Ctx, id: str) -> Items[BackendHealth]:
    with context.store.read() as session:
        balancer = balancing.public(session.get(LoadBalancerRecord, id))
    report = context.board.report(id)
    seen = {(each.backend_set, each.address, each.port): each.healthy for each in report.health} if report else {}
    items = []
    for backend_set in balancer.backend_sets:
        checked = backend_set.health_check is not None and backend_set.health_check.protocol != "NONE"
        for backend in backend_set.backends:
            # Where the data plane runs no check, it sends traffic, so the backend counts as healthy.
            key = (backend_set.name, backend.address, backend.port)
            healthy = seen.get(key) if checked else None
            items.append(
                BackendHealth(backend_set=key[0], address=key[1], port=key[2], healthy=healthy, checked=checked)
            )
    return Items(items=items)


@router.get("/{id}/counters")
def get_counters(context: Ctx, id: str) -> Items[ListenerCounters]:
    with context.store.read() as session:
        balancer = session.get(LoadBalancerRecord, id)
    report = context.board.report(id)
    seen = {(each.protocol, each.port): each for each in report.counters} if report else {}
    return Items(
        items=[
            seen.get((each.protocol, each.port)) or ListenerCounters(protocol=each.protocol, port=each.port)
            for each in balancer.listeners
        ]
    )
