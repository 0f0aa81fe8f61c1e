"""The values of a stack file: their types, and the one line of error about a wrong one."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from typing import Annotated, Any

import pulumi
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, StringConstraints
from pydantic.alias_generators import to_camel

from . import inputs

NAMESPACE = "cloud-controller"
"""The namespace of the keys in a stack file: the project's name in Pulumi.yaml."""

ENDPOINT = re.compile(r"https?://[^\s/@]+/?")
MOST_MACHINES = 1000
"""In one pool, and of one control plane."""


class ConfigError(pulumi.RunError):
    """The stack's config is wrong. A RunError, so that the program ends with this text and without a traceback."""


class Controller(StrEnum):
    """The controllers whose executor a stack chooses."""

    NODE = "node"
    ROUTE = "route"
    SERVICE = "service"
    NODE_LIFECYCLE = "node-lifecycle"
    VOLUME = "volume"


class Executor(StrEnum):
    """Who runs a controller: the daemon in the cluster, `pulumi up` through CloudController, or the cloud's maker."""

    DAEMON = "daemon"
    PULUMI = "pulumi"
    VENDOR = "vendor"


class Role(StrEnum):
    """What the machines of a pool are for."""

    CONTROL_PLANE = "control-plane"
    WORKER = "worker"


def dns_label(value: str) -> str:
    if not inputs.DNS_LABEL.fullmatch(value):
        raise ValueError("allowed: a DNS label of at most 63 characters: a-z, 0-9 and - (not at either end)")
    return value


def one_of(*allowed: str) -> AfterValidator:
    def check(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"{nearest(value, allowed)}allowed: {', '.join(allowed)}")
        return value

    return AfterValidator(check)


def matching(pattern: re.Pattern[str], allowed: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(f"allowed: {allowed}")
        return value

    return AfterValidator(check)


def url(value: str) -> str:
    if not ENDPOINT.fullmatch(value):
        raise ValueError("allowed: http://HOST:PORT or https://HOST:PORT, without credentials")
    return value.rstrip("/")


def cidr(value: str) -> str:
    if not inputs.is_cidr(value):
        raise ValueError("allowed: an IPv4 range such as 10.4.0.0/16, without host bits")
    return value


def is_day(value: str) -> bool:
    """Whether it is a day, as YYYY-MM-DD."""
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def day(value: str) -> str:
    if not is_day(value):
        raise ValueError("allowed: a day, as YYYY-MM-DD")
    return value


def no_text_for_bool(value: object) -> object:
    # pydantic also accepts 1, "yes" and "on", YAML's old traps. A stack file has true and false.
    if not isinstance(value, bool):
        raise ValueError("allowed: true, false")
    return value


def pattern_of(pattern: str) -> dict[str, JsonValue]:
    """For the schema: editors mark what the validator would refuse with a better message."""
    return {"pattern": f"^({pattern})$"}


DnsLabel = Annotated[str, AfterValidator(dns_label), Field(json_schema_extra=pattern_of(inputs.DNS_LABEL.pattern))]
Cidr = Annotated[
    str, AfterValidator(cidr), Field(json_schema_extra=pattern_of(r"([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}"))
]
Day = Annotated[str, AfterValidator(day), Field(json_schema_extra={"format": "date"})]
Flag = Annotated[bool, BeforeValidator(no_text_for_bool)]
AuditDays = Annotated[int, Field(strict=True, ge=90, le=3653)]
"""How long calls of a cloud's API are kept; the clouds themselves show those of the last 90 days."""
NotEmpty = Annotated[str, StringConstraints(min_length=1)]


class Section(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True)


def choice(*allowed: str) -> tuple[AfterValidator, Any]:
    return one_of(*allowed), Field(json_schema_extra={"enum": list(allowed)})


def number_of(*allowed: int) -> tuple[AfterValidator, Any]:
    def check(value: int) -> int:
        if value not in allowed:
            raise ValueError(f"allowed: {', '.join(map(str, allowed))}")
        return value

    return AfterValidator(check), Field(strict=True, json_schema_extra={"enum": list(allowed)})


def line(path: str, value: object, why: str) -> str:
    # Without the credentials of a URL: errors end up in logs.
    shown = re.sub(r'//(?:\\.|[^"\\])*@', "//[secret]@", json.dumps(value, default=str))
    return f"{NAMESPACE}:{path} is {shown}: {why}"


def nearest(word: str, known: Sequence[str]) -> str:
    matches = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {matches[0]!r}? " if matches else ""
