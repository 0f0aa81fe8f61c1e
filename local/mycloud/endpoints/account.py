"""Endpoints with which users check their rights and limits."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from local.mycloud import quotas
from local.mycloud.access import Access
from local.mycloud.context import Ctx
from local.mycloud.models.account import AccessAnswer, CheckAccess, Quotas

router = APIRouter(tags=["account"])


def _caller(request: Request) -> Access:
    access = request.scope["access"]
    assert isinstance(access, Access)
    return access


@router.get("/quotas")
def get_quotas(context: Ctx) -> Quotas:
    with context.store.read() as session:
        return Quotas(quotas=quotas.limits(session))


@router.post("/access:check")
def check_access(caller: Annotated[Access, Depends(_caller)], request: CheckAccess) -> AccessAnswer:
    return AccessAnswer(denied=[each for each in request.operations if not caller.allows(each)])
