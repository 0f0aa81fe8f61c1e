"""Endpoints by which users learn what they may do."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from local.mycloud.access import Access
from local.mycloud.models import AccessAnswer, CheckAccess

router = APIRouter(tags=["account"])


def _caller(request: Request) -> Access:
    access = request.scope["access"]
    assert isinstance(access, Access)
    return access


@router.post("/access:check")
def check_access(caller: Annotated[Access, Depends(_caller)], request: CheckAccess) -> AccessAnswer:
    return AccessAnswer(denied=[each for each in request.operations if not caller.allows(each)])
