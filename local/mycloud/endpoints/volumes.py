"""Endpoints of volumes."""

from __future__ import annotations

from fastapi import APIRouter

from local.mycloud import volumes
from local.mycloud.context import Ctx, Listing
from local.mycloud.models.common import Page, Update
from local.mycloud.models.volumes import AttachVolume, CreateVolume, ResizeVolume, Volume
from local.mycloud.store import update_object

router = APIRouter(tags=["volumes"])


@router.get("/volumes")
def list_volumes(context: Ctx, query: Listing) -> Page[Volume]:
    with context.store.read() as session:
        items, cursor = session.page(Volume, query.wanted, query.limit, query.cursor)
    return Page(items=items, next_cursor=cursor)


@router.post("/volumes", status_code=201)
def create_volume(context: Ctx, request: CreateVolume) -> Volume:
    with context.store.write() as session:
        return volumes.create_volume(session, request)


@router.get("/volumes/{id}")
def get_volume(context: Ctx, id: str) -> Volume:
    with context.store.read() as session:
        return session.get(Volume, id)


@router.patch("/volumes/{id}")
def update_volume(context: Ctx, id: str, request: Update) -> Volume:
    with context.store.write() as session:
        return update_object(session, session.get(Volume, id), request)


@router.delete("/volumes/{id}", status_code=202)
def delete_volume(context: Ctx, id: str) -> Volume:
    with context.store.write() as session:
        return volumes.delete_volume(session, id)


@router.post("/volumes/{id}:attach")
def attach_volume(context: Ctx, id: str, request: AttachVolume) -> Volume:
    with context.store.write() as session:
        return volumes.attach_volume(session, id, request.machine_id)


@router.post("/volumes/{id}:detach")
def detach_volume(context: Ctx, id: str, request: AttachVolume) -> Volume:
    with context.store.write() as session:
        return volumes.detach_volume(session, id, request.machine_id)


@router.post("/volumes/{id}:resize")
def resize_volume(context: Ctx, id: str, request: ResizeVolume) -> Volume:
    with context.store.write() as session:
        return volumes.resize_volume(session, id, request)
