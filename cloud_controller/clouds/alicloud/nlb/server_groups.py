"""Creates, changes and fills the server groups of NLBs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import CloudError, Conflict, Postponed
from cloud_controller.clouds.alicloud.errors import error_code
from cloud_controller.clouds.alicloud.interfaces import interfaces
from cloud_controller.clouds.alicloud.nlb.api import Api
from cloud_controller.clouds.alicloud.nlb.memory import KnownGroup, Memory
from cloud_controller.clouds.alicloud.nlb.names import LOAD_BALANCER_TAG, POOL_TAG
from cloud_controller.clouds.alicloud.nlb.wire import (
    Params,
    Server,
    group_params,
    new_group_params,
    server_of,
    token_of,
)
from cloud_controller.clouds.alicloud.nlb.writes import Writes
from cloud_controller.clouds.alicloud.tags import tag_list
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.clouds.common.refused_members import send_fit, told_when_postponed
from cloud_controller.listed import listed
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import Owner, Pool

_MOST = 200
"""Servers in one call."""
_OF_SERVERS = re.compile(r"ResourceNotFound\.BackendServer|Mismatch\.VpcId|IllegalParam\.IP")

Refused = dict[Member, CloudError]
"""The members that the cloud does not take, and why."""


class ServerGroups:
    """The server groups of one cluster. Safe to share between threads."""

    def __init__(self, client: Api, writes: Writes, memory: Memory, cluster_id: str, vpc_id: str) -> None:
        self._client = client
        self._writes = writes
        self._memory = memory
        self._cluster_id = cluster_id
        self._vpc_id = vpc_id

    def create(
        self, lb_id: str, pool: Pool, tags: Mapping[str, str], resource_group: object = None, token: str | None = None
    ) -> tuple[KnownGroup, dict[str, str]]:
        """A new, empty server group for the pool, and its job. The same `token` makes no second one."""
        tags = {**tags, **pool.tags, LOAD_BALANCER_TAG: lb_id, POOL_TAG: pool.name}
        params = {**new_group_params(pool, self._vpc_id, tags), "ResourceGroupId": resource_group}
        if token:
            params["ClientToken"] = token
        answer, jobs = self._writes.send("CreateServerGroup", params)
        group_id = str(answer["ServerGroupId"])
        view: dict[str, Any] = {**params, "ServerGroupId": group_id, "ServerCount": 0, "Tags": tag_list(tags)}
        view |= {"HealthCheck": params["HealthCheckConfig"], "JobId": [*jobs]}
        self._memory.made_groups.put(group_id, view, anew=True)
        return KnownGroup(group_id, replace(pool, members=(), tags=tags)), jobs

    def change(self, group: KnownGroup, pool: Pool) -> tuple[KnownGroup, dict[str, str]]:
        """Set the pool's settings, and its tags if it names any."""
        tags = {**pool.tags, **_marks(group)} if pool.tags else group.pool.tags
        changed = replace(group.pool, health_check=pool.health_check, tags=tags)
        changed = replace(changed, attributes={**group.pool.attributes, **pool.attributes})
        jobs: dict[str, str] = {}
        before, after = (group_params(replace(each, members=())) for each in (group.pool, changed))
        # If nothing differs, what was read is old: then all is set.
        if before != after or changed == group.pool:
            params = {"ServerGroupId": group.id, **after}
            _, jobs = self._writes.send("UpdateServerGroupAttribute", params)
        self._memory.shown(group.id)
        self._writes.retag("servergroup", group.id, group.pool.tags, tags)
        return replace(group, pool=changed), jobs

    def add(
        self, group: KnownGroup, members: Collection[Member], token: str | None = None
    ) -> tuple[KnownGroup, dict[str, str], Refused]:
        """Add these members, or set the weight of those that are there; the same `token` adds none twice. Raises
        Postponed for pods without a network interface, once all others are added."""
        by_address = group.pool.attributes.get("server_group_type") == "Ip"
        pods = [] if by_address else [each.address for each in members if _is_pod(each)]
        interfaces = self._interfaces(pods) if pods else {}
        lost = sorted({address for address in pods if not interfaces.get(address)})
        servers = {
            each.key: server_of(each, interfaces.get(each.address), by_address=by_address)
            for each in members
            if each.address not in lost
        }
        # The pod that had the address before may be on another network interface.
        moved = [
            group.servers[k] for k, each in servers.items() if k in group.servers and group.servers[k].id != each.id
        ]
        group, jobs, _ = self._exchange("RemoveServersFromServerGroup", group, moved)
        self._writes.jobs.require(jobs)
        present = [server for key, server in servers.items() if key in group.servers]
        new = [server for key, server in servers.items() if key not in group.servers]
        try:
            group, jobs, lacking = self._exchange("UpdateServerGroupServersAttribute", group, present)
            group, more, refused = self._exchange("AddServersToServerGroup", group, [*new, *lacking], token)
        except CloudError:
            self._memory.interfaces.forget(*pods)
            raise
        of_members = {each.member: error for each, error in refused.items()}
        if lost:
            self._memory.interfaces.forget(*lost)
            with told_when_postponed(of_members):
                self._writes.jobs.require(jobs | more)
                raise Postponed(f"no network interface has the address of {listed(lost)} yet")
        return group, jobs | more, of_members

    def remove(self, group: KnownGroup, members: Collection[Member]) -> tuple[KnownGroup, dict[str, str]]:
        """Remove these members, as far as they are there."""
        gone = {each.key: group.servers[each.key] for each in members if each.key in group.servers}
        self._memory.interfaces.forget(*(each.address for each in members))
        group, jobs, _ = self._exchange("RemoveServersFromServerGroup", group, [*gone.values()])
        return group, jobs

    def delete(self, group_id: str, tags: Mapping[str, str]) -> dict[str, str]:
        """Delete the group. Raises Conflict if it is not this cluster's, or while a listener uses it."""
        owner = Owner.of_tags(tags)
        if owner is None or owner.cluster_id != self._cluster_id or LOAD_BALANCER_TAG not in tags:
            raise Conflict(f"server group {group_id} does not belong to this cluster")
        with self._memory.cache.changing(group_id):
            jobs = self._writes.delete("DeleteServerGroup", {"ServerGroupId": group_id})
            self._memory.servers.forget(group_id)
            self._memory.shown(group_id)
        return jobs

    def _exchange(
        self, action: str, group: KnownGroup, servers: Sequence[Server], token: str | None = None
    ) -> tuple[KnownGroup, dict[str, str], dict[Server, CloudError]]:
        """Send the servers in as few calls as possible, and return those that are refused; a group takes one change at
        a time. What is refused because it is not in the group is not in it."""
        jobs: dict[str, str] = {}
        removes = action == "RemoveServersFromServerGroup"

        def put(changed: Sequence[Server], *, present: bool) -> None:
            nonlocal group
            of = {each.member.key: each for each in changed}
            rest = {key: each for key, each in group.servers.items() if key not in of}
            group = group.with_servers({**rest, **of} if present else rest)
            self._memory.servers.put(group.id, (*group.servers.values(),))

        def send(batch: Sequence[Server]) -> None:
            nonlocal jobs
            self._writes.jobs.require(jobs)
            params: Params = {
                "ServerGroupId": group.id,
                "Servers": [each.name if removes else {**each.name, "Weight": each.weight} for each in batch],
            }
            if token:
                params["ClientToken"] = token_of(token, *(f"{each.id} {each.address} {each.port}" for each in batch))
            _, jobs = self._writes.send(action, params)
            put(batch, present=not removes)

        if not servers:
            return group, jobs, {}
        with self._memory.cache.changing(group.id):
            refused = send_fit(batches(servers, _MOST), send, _is_of_servers, _names, lambda each: each.member)
            if action != "AddServersToServerGroup" and refused:
                put([*refused], present=False)
        return group, jobs, refused

    def _interfaces(self, addresses: Collection[str]) -> dict[str, str]:
        """The network interface of each address; "" if there is none."""

        def read(due: list[str]) -> dict[str, str]:
            return interfaces(self._client, self._vpc_id, due)

        return self._memory.interfaces.fetch_many(addresses, read, missing="")


def _marks(group: KnownGroup) -> dict[str, str]:
    return {key: group.pool.tags[key] for key in (LOAD_BALANCER_TAG, POOL_TAG) if key in group.pool.tags}


def _is_of_servers(error: CloudError) -> bool:
    """Whether the API refused the call because of single servers, such as one that is released."""
    return bool(_OF_SERVERS.fullmatch(error_code(error)))


def _names(server: Server) -> tuple[str, ...]:
    return (server.id, f"{server.id}:{server.port}")


def _is_pod(member: Member) -> bool:
    return not member.instance_id.startswith("i-")
