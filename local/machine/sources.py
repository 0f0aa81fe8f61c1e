"""The external data of a pod: the Secrets, ConfigMaps and tokens that it names, and its own fields. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from local.addresses import socket_address

Object = dict[str, Any]

DEFAULT_TOKEN_SECONDS = 3600
_SUBSCRIPT = re.compile(r"^metadata\.(labels|annotations)\['([^']+)'\]$")


class MissingSourceError(Exception):
    """The pod needs something that does not exist, or that a machine cannot provide; the message names it."""


class NotYetError(MissingSourceError):
    """What the pod needs is on its way: wait silently, for a while."""


@dataclass(frozen=True, slots=True)
class TokenWish:
    """A service-account token that a projected volume requests; `audience` None means the API server."""

    audience: str | None
    seconds: int


@dataclass(frozen=True, slots=True)
class References:
    """The names of what a pod needs before its containers can start, in the pod's namespace."""

    secrets: frozenset[str]
    config_maps: frozenset[str]
    tokens: frozenset[TokenWish]


@dataclass(frozen=True, slots=True)
class Sources:
    """The objects fetched for `References`; missing ones are absent. Secret values: never log one."""

    secrets: dict[str, Object] = field(default_factory=dict, repr=False)
    config_maps: dict[str, Object] = field(default_factory=dict, repr=False)
    tokens: dict[TokenWish, str] = field(default_factory=dict, repr=False)

    def secret_data(self, name: str, *, optional: bool) -> dict[str, bytes] | None:
        """A Secret's decoded data; None if it is optional and missing. Raises MissingSourceError."""
        found = self.secrets.get(name)
        if found is None:
            _require(optional, f'secret "{name}" not found')
            return None
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}

    def config_map_data(self, name: str, *, optional: bool) -> dict[str, bytes] | None:
        """A ConfigMap's data, `binaryData` too; None if it is optional and missing. Raises MissingSourceError."""
        found = self.config_maps.get(name)
        if found is None:
            _require(optional, f'configmap "{name}" not found')
            return None
        data = {key: value.encode() for key, value in (found.get("data") or {}).items()}
        return data | {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}


def references(pod: Object) -> References:
    """What `pod` names in its environment and its volumes."""
    secrets: set[str] = set()
    config_maps: set[str] = set()
    tokens: set[TokenWish] = set()
    for container in pod["spec"]["containers"]:
        for entry in container.get("env") or []:
            origin = entry.get("valueFrom") or {}
            secrets |= _names(origin.get("secretKeyRef"), "name")
            config_maps |= _names(origin.get("configMapKeyRef"), "name")
        for entry in container.get("envFrom") or []:
            secrets |= _names(entry.get("secretRef"), "name")
            config_maps |= _names(entry.get("configMapRef"), "name")
    for source in volume_sources(pod):
        secrets |= _names(source.get("secret"), "secretName", "name")
        config_maps |= _names(source.get("configMap"), "name")
        if token := source.get("serviceAccountToken"):
            tokens.add(token_wish(token))
    return References(frozenset(secrets), frozenset(config_maps), frozenset(tokens))


def volume_sources(pod: Object) -> Iterator[Object]:
    """Each volume of the pod, a projected one as its parts."""
    for volume in pod["spec"].get("volumes") or []:
        if projected := volume.get("projected"):
            yield from projected.get("sources") or []
        else:
            yield volume


def token_wish(projection: Object) -> TokenWish:
    """The token that a `serviceAccountToken` projection requests."""
    return TokenWish(projection.get("audience"), int(projection.get("expirationSeconds") or DEFAULT_TOKEN_SECONDS))


def field_value(pod: Object, path: str, *, pod_ip: str, host_ip: str) -> str:
    """A fieldRef's value. Addresses are socket addresses (127.x), because a process binds and dials those.

    `pod_ip` and `host_ip` are cluster addresses (10.x). Raises MissingSourceError for an unknown path.
    """
    metadata, spec = pod["metadata"], pod["spec"]
    plain = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.podIP": socket_address(pod_ip),
        "status.podIPs": socket_address(pod_ip),
        "status.hostIP": socket_address(host_ip),
        "status.hostIPs": socket_address(host_ip),
    }
    if path in plain:
        return str(plain[path])
    if path in ("metadata.labels", "metadata.annotations"):
        entries = metadata.get(path.removeprefix("metadata.")) or {}
        return "\n".join(f"{key}={_quoted(value)}" for key, value in sorted(entries.items()))
    if match := _SUBSCRIPT.match(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    raise MissingSourceError(f"fieldRef {path} is not supported")


def _names(reference: Object | None, *keys: str) -> set[str]:
    return {reference[key] for key in keys if reference.get(key)} if reference else set()


def _require(optional: bool, message: str) -> None:
    if not optional:
        raise MissingSourceError(message)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
