"""Endpoints of clusters and machines."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter

from local.mycloud import compute
from local.mycloud.context import Context, Ctx, Listing
from local.mycloud.errors import Unavailable
from local.mycloud.models.common import Page, State, Update
from local.mycloud.models.compute import (
    Cluster,
    CreateCluster,
    CreateMachine,
    CredentialsRequest,
    Kubeconfig,
    Machine,
    MachineRecord,
)
from local.mycloud.store import update_object

router = APIRouter(tags=["compute"])

KUBECONFIG_TTL = timedelta(days=365)


@router.get("/clusters")
def list_clusters(context: Ctx, query: Listing) -> Page[Cluster]:
    with context.store.read() as session:
        items, cursor = session.page(Cluster, query.wanted, query.limit, query.cursor)
    return Page(items=items, next_cursor=cursor)


@router.post("/clusters", status_code=201)
def create_cluster(context: Ctx, request: CreateCluster) -> Cluster:
    with context.store.write() as session:
        return compute.create_cluster(session, request)


@router.get("/clusters/{id}")
def get_cluster(context: Ctx, id: str) -> Cluster:
    with context.store.read() as session:
        return session.get(Cluster, id)


@router.patch("/clusters/{id}")
def update_cluster(context: Ctx, id: str, request: Update) -> Cluster:
    with context.store.write() as session:
        return update_object(session, session.get(Cluster, id), request)


@router.delete("/clusters/{id}", status_code=202)
def delete_cluster(context: Ctx, id: str) -> Cluster:
    with context.store.write() as session:
        return compute.delete_cluster(session, id)


@router.get("/clusters/{id}/kubeconfig")
def get_kubeconfig(context: Ctx, id: str) -> Kubeconfig:
    return _kubeconfig(context, id, KUBECONFIG_TTL)


@router.post("/clusters/{id}/credentials")
def issue_credentials(context: Ctx, id: str, request: CredentialsRequest | None = None) -> Kubeconfig:
    return _kubeconfig(context, id, timedelta(seconds=(request or CredentialsRequest()).ttl_seconds))


@router.get("/machines", response_model=Page[Machine])
def list_machines(context: Ctx, query: Listing) -> Page[MachineRecord]:
    with context.store.read() as session:
        items, cursor = session.page(MachineRecord, query.wanted, query.limit, query.cursor)
    return Page(items=items, next_cursor=cursor)


@router.post("/machines", status_code=201, response_model=Machine)
def create_machine(context: Ctx, request: CreateMachine) -> MachineRecord:
    with context.store.write() as session:
        return compute.create_machine(session, request)


@router.get("/machines/{id}", response_model=Machine)
def get_machine(context: Ctx, id: str) -> MachineRecord:
    with context.store.read() as session:
        return session.get(MachineRecord, id)


@router.patch("/machines/{id}", response_model=Machine)
def update_machine(context: Ctx, id: str, request: Update) -> MachineRecord:
    with context.store.write() as session:
        return compute.update_machine(session, id, request)


@router.delete("/machines/{id}", status_code=202, response_model=Machine)
def terminate_machine(context: Ctx, id: str) -> MachineRecord:
    with context.store.write() as session:
        return compute.terminate_machine(session, id)


@router.post("/machines/{id}/start", response_model=Machine)
def start_machine(context: Ctx, id: str) -> MachineRecord:
    with context.store.write() as session:
        return compute.start_machine(session, id)


@router.post("/machines/{id}/stop", response_model=Machine)
def stop_machine(context: Ctx, id: str) -> MachineRecord:
    with context.store.write() as session:
        return compute.stop_machine(session, id)


@router.post("/machines/{id}/reboot", response_model=Machine)
def reboot_machine(context: Ctx, id: str) -> MachineRecord:
    with context.store.write() as session:
        return compute.reboot_machine(session, id)


def _kubeconfig(context: Context, id: str, ttl: timedelta) -> Kubeconfig:
    with context.store.read() as session:
        cluster = session.get(Cluster, id)
    if cluster.state != State.AVAILABLE:
        raise Unavailable(f"cluster {id} is {cluster.state.value}; credentials are issued once it is available")
    return Kubeconfig(kubeconfig=context.kubeconfigs.kubeconfig(cluster, ttl))
