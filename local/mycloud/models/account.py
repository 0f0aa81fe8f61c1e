"""The rights and limits of an account."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from local.mycloud.models.common import Strict

Limit = Annotated[int, Field(ge=0, le=1_000_000)]


class Limits(Strict):
    """The limits of an account."""

    routes_per_table: Limit = 48
    load_balancers: Limit = 1000
    listeners_per_load_balancer: Limit = 50
    volumes: Limit = 200


class UpdateLimits(Strict):
    """The limits to change; None: unchanged."""

    routes_per_table: Limit | None = None
    load_balancers: Limit | None = None
    listeners_per_load_balancer: Limit | None = None
    volumes: Limit | None = None


class CreateToken(Strict):
    """A further token. `operations`: the allowed globs over "METHOD PATH", None: everything that users call."""

    ttl_seconds: Annotated[int, Field(ge=1, le=31536000)]
    operations: list[str] | None = None


class CheckAccess(Strict):
    """The operations ("METHOD PATH") to check; the answer has those that are not allowed."""

    operations: Annotated[list[Annotated[str, Field(pattern="^[A-Z]+ /")]], Field(max_length=1000)]


class IssuedToken(BaseModel):
    """A secret, which is shown only once."""

    token: str
    expires_at: str


class Quotas(BaseModel):
    quotas: Limits


class AccessAnswer(BaseModel):
    denied: list[str]
