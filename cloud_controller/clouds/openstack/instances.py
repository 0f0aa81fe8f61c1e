"""Nova's servers as the machines behind nodes: every server of the project is one of the cluster."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from cloud_controller.cloud import (
    Instance,
    InstanceRef,
    InstanceState,
    NotFound,
)
from cloud_controller.clouds.common.cache import Cache, Entries
from cloud_controller.clouds.common.node_names import by_node_name
from cloud_controller.clouds.openstack.addresses import node_addresses
from cloud_controller.clouds.openstack.client import OpenStackClient
from cloud_controller.clouds.openstack.config import Networking
from cloud_controller.clouds.openstack.host_names import host_names
from cloud_controller.clouds.openstack.provider_ids import provider_id, server_id

Server = Mapping[str, Any]

_LISTED: Final = 5.0
"""Seconds for which a listing serves all batches of nodes: they come one after the other."""
_GONE = "DELETED"


class NovaInstances:
    """The servers of the project. Safe to share between threads."""

    of_any_cluster = True
    """See `Untagged`."""

    def __init__(
        self, client: OpenStackClient, networking: Networking, *, regional: bool, cache: Cache | None = None
    ) -> None:
        """`regional`: whether provider IDs that are written have the region."""
        self._client = client
        self._networking = networking
        self._regional = regional
        self._cache = cache or Cache()
        self._listing: Entries[Mapping[str, Server]] = Entries(self._cache, _LISTED)
        self._gone: set[str] = set()
        """Servers that Nova has said not to exist, for routes alone: nodes ask again."""

    def list(self) -> Sequence[Instance]:
        """Every server of the project. Nova does not list deleted ones."""
        return [self._instance(each) for each in self._listed(0.0).values()]

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        """Each server, by ID or, for a node without one, by name.

        None: Nova says that it does not exist. Raises InvalidConfiguration for the provider ID of another cloud or
        region (None would delete the node), and Conflict if two servers have a node's name.
        """
        if not refs:
            return {}
        wanted = {ref: server_id(ref, self._client.region if ref.provider_id else "") for ref in refs}
        names = {ref.node_name for ref, each in wanted.items() if each is None}
        # One server alone is read by itself: a project may have thousands.
        listed = self._listed() if names or len(refs) > 1 else {}
        by_name = _named(listed, names)
        if names - by_name.keys():
            listed = self._listed(0.0)
            by_name = _named(listed, names)
        by_id = {each: listed.get(each) or self._by_id(each) for each in wanted.values() if each is not None}
        servers = {ref: by_name.get(ref.node_name) if each is None else by_id[each] for ref, each in wanted.items()}
        return {ref: None if each is None else self._instance(each) for ref, each in servers.items()}

    def missing(self, ids: Collection[str]) -> frozenset[str]:
        """Which of these servers certainly do not exist. Raises CloudError."""
        if not ids:
            return frozenset()
        known = self._listing.get("") or self._listed()
        return frozenset(
            each for each in ids if each not in known and (each in self._gone or self._by_id(each) is None)
        )

    def shows(self, server: str | None, address: str) -> bool:
        """Whether the last listing shows the server, and this address as one of its own."""
        found = (self._listing.get("") or {}).get(server or "")
        return found is not None and any(ip["addr"] == address for ips in found["addresses"].values() for ip in ips)

    def _listed(self, max_age: float | None = None) -> Mapping[str, Server]:
        """The servers by ID; read again if the last listing is older than `max_age` seconds, or `_LISTED`."""

        def read() -> Mapping[str, Server]:
            found = self._client.list("compute", "servers/detail", "servers")
            return {str(each["id"]): each for each in found if each["status"] != _GONE}

        return self._listing.fetch("", read, max_age)

    def _by_id(self, server: str) -> Server | None:
        """The server, or None if it does not exist. Only this proves it: lists may lag."""
        try:
            found: Server = self._client.get("compute", f"servers/{server}")["server"]
        except NotFound:
            found = {"status": _GONE}
        if found["status"] == _GONE:
            self._gone.add(server)
            return None
        self._gone.discard(server)
        return found

    def _instance(self, server: Server) -> Instance:
        region = self._client.region
        flavor = server["flavor"]
        return Instance(
            id=server["id"],
            provider_id=provider_id(region, server["id"], regional=self._regional),
            name=server["name"],
            type=_label(flavor.get("original_name") or flavor.get("id") or ""),
            zone=_label(server.get("OS-EXT-AZ:availability_zone") or ""),
            region=region,
            state=_state(server["status"]),
            addresses=node_addresses(server, self._networking),
            tags=server.get("metadata") or {},
            created_at=datetime.fromisoformat(made) if (made := server.get("created")) else None,
            host_names=tuple(host_names(server))[1:],
        )


def _named(servers: Mapping[str, Server], names: Collection[str]) -> dict[str, Server]:
    """The server of each node. Raises Conflict if two are one's."""
    return by_node_name(names, servers.values(), host_names, lambda each: str(each["id"]))


def _state(status: str) -> InstanceState:
    """As upstream: only SHUTOFF counts as shut down; here also SOFT_DELETED, from which a server can be restored."""
    off = dict.fromkeys(("SHUTOFF", "SOFT_DELETED"), InstanceState.STOPPED)
    states = {"BUILD": InstanceState.PENDING, **off}
    return states.get(status, InstanceState.RUNNING)


def _label(value: str) -> str:
    """The value as a label can have it: zones and flavors may have blanks."""
    return re.sub(r"^[^A-Za-z0-9]+|[^A-Za-z0-9]+$", "", re.sub(r"[^A-Za-z0-9_.-]", "-", value)[:63])
