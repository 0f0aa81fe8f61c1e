"""Changes of CLB's vServer groups and their backends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import CloudError, NotFound, Postponed
from cloud_controller.clouds.alicloud.clb.build import ENI
from cloud_controller.clouds.alicloud.clb.memory import Memory
from cloud_controller.clouds.alicloud.clb.tagging import set_tags
from cloud_controller.clouds.alicloud.clb.wire import Group, Server, backend_servers, group_of, is_gone
from cloud_controller.clouds.alicloud.errors import error_code
from cloud_controller.clouds.alicloud.interfaces import interfaces
from cloud_controller.clouds.alicloud.patience import PatientClient
from cloud_controller.clouds.alicloud.tags import tag_list
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.clouds.common.refused_members import require_none, send_fit, told_when_postponed
from cloud_controller.listed import listed
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import Pool
from cloud_controller.load_balancers.operations import AddMembers, DeletePool, PutPool, RemoveMembers

_A_CALL = 20
"""The most backends in one call."""
_OF_SERVERS = re.compile(r"InvalidServerId(\..+)?|ObtainIpFail|InvalidBackendServers\..+")

Refused = dict[Server, CloudError]
"""The backends that the cloud does not take, and why."""


class Groups:
    """Changes of vServer groups. Safe to share between threads."""

    def __init__(self, client: PatientClient, vpc_id: str, memory: Memory) -> None:
        self._client = client
        self._vpc_id = vpc_id
        self._memory = memory

    def put(self, operation: PutPool, before: Mapping[str, str]) -> None:
        """Create the group, or change the tags of an existing one from what they are."""
        if operation.new:
            made, refused = self.make(operation.id, operation.pool)
            with told_when_postponed(_by_member(refused)):
                self._require_all(operation.pool.members, [*made.servers, *refused])
            require_none(_by_member(refused))
            return
        group_id = self.id_of(operation.id, operation.pool.name)
        with self._memory.changing(group_id):
            set_tags(self._client, "vservergroup", group_id, operation.pool.tags, before)
            self._remember(group_id, tags=operation.pool.tags)

    def make(self, lb_id: str, pool: Pool) -> tuple[Group, Refused]:
        """Create the group with its members, without pods that have no network interface and those that the cloud
        refuses."""
        known = self._memory.group_id(lb_id, pool.name)
        if known is not None:
            # The creation is repeated.
            _, refused = self._put(known, pool.members)
            return self._group(known), refused
        servers = self._servers(pool.members)
        try:
            group = self._made(lb_id, pool, servers[:_A_CALL])
        except CloudError as error:
            if not _is_of_servers(error):
                raise
            group = self._made(lb_id, pool, ())
        refused = self._add(group.id, servers[len(group.servers) :])
        return self._group(group.id), refused

    def _made(self, lb_id: str, pool: Pool, servers: Sequence[Server]) -> Group:
        answer = self._call(
            "CreateVServerGroup",
            LoadBalancerId=lb_id,
            VServerGroupName=pool.name,
            BackendServers=backend_servers(servers) if servers else None,
            Tag=tag_list(pool.tags),
        )
        group = Group(answer["VServerGroupId"], lb_id, pool.name, pool.tags, tuple(servers))
        self._memory.add_group(group)
        return group

    def add(self, operation: AddMembers) -> None:
        """Add members, or change their weights. Raises Postponed if some pods could not be added, and LeftOut if the
        cloud refuses some members."""
        servers, refused = self._put(self.id_of(operation.id, operation.pool), operation.members)
        with told_when_postponed(_by_member(refused)):
            self._require_all(operation.members, servers)
        require_none(_by_member(refused))

    def _put(self, group_id: str, members: Sequence[Member]) -> tuple[Sequence[Server], Refused]:
        """Add them, or change their weights; the backends that they are, and those that are refused."""
        known = {each.member.key: each for each in self._group(group_id).servers}
        new = self._servers([each for each in members if each.key not in known])
        present = [Server(each, known[each.key].id) for each in members if each.key in known]

        def send(servers: Sequence[Server]) -> None:
            texts = backend_servers(servers)
            self._call("SetVServerGroupAttribute", VServerGroupId=group_id, BackendServers=texts)
            self._remember(group_id, added=servers)

        refused = self._add(group_id, new)
        changed = [each for each in present if each != known[each.member.key]]
        if not changed:
            return [*new, *present], refused
        with self._memory.changing(group_id), told_when_postponed(_by_member(refused)):
            refused |= send_fit(batches(changed, _A_CALL), send, _is_of_servers, _names, _member)
        return [*new, *present], refused

    def remove(self, operation: RemoveMembers) -> None:
        """Remove members; missing ones are ignored."""
        try:
            group_id = self.id_of(operation.id, operation.pool)
        except NotFound:
            return
        known = {each.member.key: each for each in self._group(group_id).servers}
        gone = [known[each.key] for each in operation.members if each.key in known]

        def send(servers: Sequence[Server]) -> None:
            texts = backend_servers(servers)
            self._call("RemoveVServerGroupBackendServers", VServerGroupId=group_id, BackendServers=texts)
            self._remember(group_id, removed=servers)

        if not gone:
            return
        with self._memory.changing(group_id):
            refused = send_fit(batches(gone, _A_CALL), send, _is_of_servers, _names, _member)
            # With its machine, a backend is gone; if it is not, the next read shows it.
            self._remember(group_id, removed=[*refused])

    def delete(self, operation: DeletePool) -> None:
        """Delete the group; a missing one is ignored."""
        try:
            group_id = self.id_of(operation.id, operation.name)
            self._call("DeleteVServerGroup", VServerGroupId=group_id)
        except CloudError as error:
            if not is_gone(error):
                raise
        self._memory.forget_group(operation.id, operation.name)

    def _add(self, group_id: str, servers: Sequence[Server]) -> Refused:
        def send(servers: Sequence[Server]) -> None:
            texts = backend_servers(servers)
            self._call("AddVServerGroupBackendServers", VServerGroupId=group_id, BackendServers=texts)
            self._remember(group_id, added=servers)

        if not servers:
            return {}
        with self._memory.changing(group_id):
            return send_fit(batches(servers, _A_CALL), send, _is_of_servers, _names, _member)

    def _servers(self, members: Sequence[Member]) -> list[Server]:
        """The members as backends; pods by their network interfaces, without those that have none."""
        pods = sorted({each.address for each in members if each.instance_id == ENI})
        of_pods = interfaces(self._client, self._vpc_id, pods) if pods else {}
        found = ((each, of_pods.get(each.address) if each.instance_id == ENI else each.instance_id) for each in members)
        return [Server(each, server) for each, server in found if server is not None]

    def _require_all(self, members: Sequence[Member], servers: Sequence[Server]) -> None:
        """Raise Postponed if some pods could not be added."""
        missing = sorted({each.address for each in members} - {each.member.address for each in servers})
        if missing:
            raise Postponed(f"no network interface of {self._vpc_id} has the pod address {listed(missing)} (yet)")

    def id_of(self, lb_id: str, name: str) -> str:
        """The ID of the group. Raises NotFound."""
        found = self._memory.group_id(lb_id, name)
        if found is None:
            answer = self._call("DescribeVServerGroups", LoadBalancerId=lb_id)
            shown = (answer.get("VServerGroups") or {}).get("VServerGroup") or []
            found = next((each["VServerGroupId"] for each in shown if each.get("VServerGroupName") == name), None)
        if found is None:
            raise NotFound(f"Alibaba Cloud: load balancer {lb_id} has no server group {name}")
        return found

    def _group(self, group_id: str) -> Group:
        found = self._memory.groups.get(group_id)
        if found is None:
            found = group_of(self._call("DescribeVServerGroupAttribute", VServerGroupId=group_id))
            self._memory.groups.put(group_id, found)
        return found

    def _remember(
        self,
        group_id: str,
        *,
        added: Sequence[Server] = (),
        removed: Sequence[Server] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        group = self._memory.groups.get(group_id)
        if group is not None:
            servers = {each.member.key: each for each in group.servers} | {each.member.key: each for each in added}
            for each in removed:
                servers.pop(each.member.key, None)
            new = replace(group, servers=tuple(sorted(servers.values())), tags=group.tags if tags is None else tags)
            self._memory.groups.put(group_id, new)

    def _call(self, action: str, **parameters: Any) -> dict[str, Any]:
        return self._client.call("slb", action, parameters)


def _is_of_servers(error: CloudError) -> bool:
    """Whether the API refused the call because of single servers, such as one that is released or stopped."""
    return bool(_OF_SERVERS.fullmatch(error_code(error)))


def _names(server: Server) -> tuple[str, ...]:
    return (server.id,)


def _member(server: Server) -> Member:
    return server.member


def _by_member(refused: Refused) -> dict[Member, CloudError]:
    return {each.member: error for each, error in refused.items()}
