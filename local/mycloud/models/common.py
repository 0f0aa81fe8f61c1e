"""The common fields and types of all objects, requests and answers of mycloud's API."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

REGION = "local"
ZONES = ("zone-a", "zone-b", "zone-c")

MAX_PAGE = 100


def now() -> str:
    """The present time in the form of objects' fields: RFC 3339, UTC."""
    return rfc3339(datetime.now(UTC).timestamp())


def rfc3339(seconds: float) -> str:
    """Seconds since 1970 in the form of objects' fields: with milliseconds, so that texts compare as times do."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _address(value: str) -> str:
    try:
        address = IPv4Address(value)
    except ValueError:
        raise ValueError(f"{value!r} is not an IPv4 address") from None
    if address not in IPv4Network("10.0.0.0/8"):
        raise ValueError(f"{value} is not in 10.0.0.0/8")
    return value


def _cidr(value: str) -> str:
    try:
        return str(ip_network(value))
    except ValueError as error:
        raise ValueError(f"{value!r} is not a CIDR: {error}") from None


def _dns_label(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", value):
        raise ValueError(f"{value!r} is not a DNS label (lower-case letters, digits and '-', at most 63)")
    return value


ClusterAddress = Annotated[str, AfterValidator(_address)]
Cidr = Annotated[str, AfterValidator(_cidr)]
"""Of IPv4 or IPv6."""

DnsLabel = Annotated[str, AfterValidator(_dns_label)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Port = Annotated[int, Field(ge=1, le=65535)]
Protocol = Literal["TCP", "UDP"]
Zone = Literal["zone-a", "zone-b", "zone-c"]


class State(StrEnum):
    """The state of an object. Machines use the middle four instead of `available`, and never `deleting`."""

    CREATING = "creating"
    AVAILABLE = "available"
    UPDATING = "updating"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    DELETING = "deleting"
    FAILED = "failed"


class Strict(BaseModel):
    """A request's base: an unknown field is an error, not silently ignored.

    Strings have a length limit also because pydantic then rejects half of a surrogate pair, which JSON allows.
    """

    model_config = ConfigDict(extra="forbid", str_max_length=4096)


class CloudObject(BaseModel):
    """The fields of every object."""

    id: str
    name: str
    tags: dict[str, str] = {}
    state: State
    state_reason: str | None = None
    created_at: str


class Create(Strict):
    """The fields of every creation; `client_token` makes it idempotent."""

    name: Name
    tags: dict[str, str] = {}
    client_token: Annotated[str, Field(min_length=1, max_length=128)] | None = None


class Update(Strict):
    """What a PATCH may change; omitted fields stay. `tags` replaces all tags."""

    name: Name | None = None
    tags: dict[str, str] | None = None


Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    """One page of a collection; `next_cursor` None: the last."""

    items: list[Item]
    next_cursor: str | None = None


class Items(BaseModel, Generic[Item]):
    """A list that is never paged."""

    items: list[Item]


class ErrorDetail(BaseModel):
    code: str
    message: str
    field: str | None = None
    allowed: str | None = None


class ErrorAnswer(BaseModel):
    error: ErrorDetail
