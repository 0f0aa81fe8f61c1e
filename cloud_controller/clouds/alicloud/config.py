"""What Alibaba Cloud's cloud config holds: the JSON file that Alibaba's own controller reads too.

{
  "Global": {
    "clusterID": "c-…",               required: what tags carry
    "region": "cn-hangzhou",          required
    "vpcid": "vpc-…",                 required: the cluster's network
    "vswitchid": "vsw-…",             the vSwitch of internal load balancers that name none
    "zoneID": "cn-hangzhou-h",        its zone
    "routeTableIDs": "vtb-…,vtb-…",   default: the only route table of the network
    "serviceAccountName": "…",        the name of the session of an assumed role
    "accessKeyID": "…", "accessKeySecret": "…",   plain, or both in base64 as in the file of Alibaba's controller
    "network": "vpc",                 ours: call the APIs' addresses inside VPCs; default: public
    "serveNlbClass": "false"          ours: leave class alibabacloud.com/nlb to Alibaba's own controller; default: true
    "providerIDFormat": "uri"         ours: write alicloud:///ZONE/ID; default: REGION.ID
  },
  "CloudControllerManager": {
    "cloudConfigPath": "…", "clusterCIDR": "10.244.0.0/16"     accepted; the daemon's flags decide
  },
  "Endpoints": {"ecs": "http://127.16.0.1:8080"}               ours: other URLs of APIs, and of `metadata`
}

Names of keys are case-insensitive, as Go reads them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Literal, get_args

import orjson

from cloud_controller.clouds.alicloud.names import VERSIONS, ProviderIdFormat
from cloud_controller.clouds.common.gcfg import Section, did_you_mean, is_url, wrong
from cloud_controller.clouds.common.sendable import sendable

Network = Literal["public", "vpc"]

METADATA = "metadata"
"""The key in `Endpoints` of an instance's metadata service."""
_KEYS: Mapping[str, tuple[str, ...]] = {
    "Global": (
        "accessKeyID",
        "accessKeySecret",
        "clusterID",
        "network",
        "providerIDFormat",
        "region",
        "routeTableIDs",
        "serveNlbClass",
        "serviceAccountName",
        "vpcid",
        "vswitchid",
        "zoneID",
    ),
    "CloudControllerManager": ("cloudConfigPath", "clusterCIDR"),
    "Endpoints": (*VERSIONS, METADATA),
}
_KEY_ID = "LTAI"
"""What all IDs of access keys begin with."""
_SESSION = "cloud-controller"


@dataclass(frozen=True, slots=True)
class AccessKey:
    """An access key; `session_token` is set for one of a role."""

    id: str
    secret: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Config:
    """A valid cloud config."""

    cluster_id: str
    region: str
    vpc_id: str
    vswitch_id: str | None = None
    zone_id: str | None = None
    route_table_ids: tuple[str, ...] = ()
    """Empty: the only table of the network."""
    session_name: str = _SESSION
    access_key: AccessKey | None = None
    network: Network = "public"
    provider_id_format: ProviderIdFormat = "region"
    endpoints: Mapping[str, str] = field(default_factory=dict)
    """URLs, by product or `METADATA`, that replace Alibaba Cloud's own."""
    serve_nlb_class: bool = True
    """Whether Services of class alibabacloud.com/nlb are ours: not where Alibaba's own controller runs too."""


def parse(text: str) -> Config:
    """Read a cloud config. Raises InvalidConfiguration that names section and key, and no value."""
    sections = _sections(text)
    one, manager, endpoints = (sections[name] for name in _KEYS)
    for key in _KEYS["Endpoints"]:
        if (url := endpoints.text(key)) and not is_url(url):
            raise endpoints.wrong(key, "not a URL", "https://HOST or http://HOST:PORT")
    _check_ranges(manager)
    return Config(
        cluster_id=one.matching("clusterID", r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", "not a valid ID", "c-…")
        or one.required("clusterID"),
        region=one.matching("region", r"[a-z]+(-[a-z0-9]+)+", "not a region", "such as cn-hangzhou")
        or one.required("region"),
        vpc_id=_id(one, "vpcid", "vpc-") or one.required("vpcid"),
        vswitch_id=_id(one, "vswitchid", "vsw-"),
        zone_id=one.matching("zoneID", r"[a-z]+(-[a-z0-9]+)+", "not a zone", "such as cn-hangzhou-h"),
        route_table_ids=_route_tables(one),
        session_name=one.matching(
            "serviceAccountName", r"[A-Za-z0-9.@_-]{2,64}", "not a valid name", "2 to 64 letters, digits and .@_-"
        )
        or _SESSION,
        access_key=_access_key(one),
        network=one.one_of("network", get_args(Network), "public"),
        provider_id_format=one.one_of("providerIDFormat", get_args(ProviderIdFormat), "region"),
        serve_nlb_class=one.one_of("serveNlbClass", ("true", "false"), "true") == "true",
        endpoints={key: url.rstrip("/") for key in _KEYS["Endpoints"] if (url := endpoints.text(key))},
    )


def render(config: Config) -> str:
    """The text that `parse` reads back as `config`."""
    key = config.access_key
    values = {
        "clusterID": config.cluster_id,
        "region": config.region,
        "vpcid": config.vpc_id,
        "vswitchid": config.vswitch_id,
        "zoneID": config.zone_id,
        "routeTableIDs": ",".join(config.route_table_ids),
        "serviceAccountName": config.session_name if config.session_name != _SESSION else None,
        "accessKeyID": key.id if key else None,
        "accessKeySecret": key.secret if key else None,
        "network": config.network if config.network != "public" else None,
        "serveNlbClass": None if config.serve_nlb_class else "false",
        "providerIDFormat": config.provider_id_format if config.provider_id_format != "region" else None,
    }
    content: dict[str, Any] = {"Global": {name: value for name, value in values.items() if value}}
    if config.endpoints:
        content["Endpoints"] = dict(config.endpoints)
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n"


# ------------------------------------------------------------------------------------------------------------ values


def _sections(text: str) -> dict[str, Section]:
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise wrong(f"line {error.lineno}", "not valid JSON") from None
    if not isinstance(content, dict):
        raise wrong("the file", "not a JSON object", 'such as {"Global": {…}}')
    found = {name: Section(f"{name}:") for name in _KEYS}
    for name, values in content.items():
        section = found[_known(name, "section", "section", _KEYS)]
        if not isinstance(values, dict):
            raise wrong(section.shown.rstrip(":"), "not a JSON object")
        kind = section.shown.rstrip(":")
        for key, value in values.items():
            known = _known(key, f"key in {kind}", kind, _KEYS[kind])
            if known in section.values:
                raise section.wrong(known, "appears twice")
            if not isinstance(value, str):
                raise section.wrong(known, "not a text", "a value in quotes")
            section.values[known] = [value]
    return found


def _known(name: str, what: str, where: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    by_lower = {each.lower(): each for each in known}
    if name.lower() not in by_lower:
        raise wrong(where, f"unknown {what}{did_you_mean(name, known)}", ", ".join(known))
    return by_lower[name.lower()]


def _id(one: Section, key: str, prefix: str) -> str | None:
    return one.matching(key, f"{prefix}[A-Za-z0-9-]+", "not a valid ID", f"{prefix}…")


def _route_tables(one: Section) -> tuple[str, ...]:
    tables = tuple(part.strip() for part in (one.text("routeTableIDs") or "").split(",") if part.strip())
    if not all(re.fullmatch("vtb-[A-Za-z0-9-]+", table) for table in tables) or len({*tables}) < len(tables):
        raise one.wrong("routeTableIDs", "not a list of different IDs", "vtb-…,vtb-…")
    return tables


def _access_key(one: Section) -> AccessKey | None:
    key, secret = one.text("accessKeyID"), one.text("accessKeySecret")
    if key is None and secret is None:
        return None
    key, secret = key or one.required("accessKeyID"), secret or one.required("accessKeySecret")
    decoded = _decoded(key)
    if decoded is not None and decoded.startswith(_KEY_ID):
        key, secret = decoded, _decoded(secret) or ""
        if not secret:
            raise one.wrong("accessKeySecret", "not base64, but accessKeyID is")
    return AccessKey(
        sendable("cloud config: Global: accessKeyID", key), sendable("cloud config: Global: accessKeySecret", secret)
    )


def _decoded(value: str) -> str | None:
    try:
        return base64.b64decode(value, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return None


def _check_ranges(manager: Section) -> None:
    for part in filter(None, (manager.text("clusterCIDR") or "").split(",")):
        try:
            ip_network(part.strip())
        except ValueError:
            raise manager.wrong("clusterCIDR", "not a CIDR", "such as 10.244.0.0/16") from None
