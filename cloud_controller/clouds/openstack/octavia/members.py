"""Changes of the members of pools: one call each, whatever the number of members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cloud_controller.cloud_errors import Conflict, InvalidConfiguration, LeftOut, NotFound
from cloud_controller.clouds.openstack.client import OpenStackClient
from cloud_controller.clouds.openstack.octavia import bodies, wire
from cloud_controller.clouds.openstack.octavia.failed_parts import FailedParts, reason
from cloud_controller.clouds.openstack.octavia.faults import is_failed
from cloud_controller.clouds.openstack.octavia.reads import Reads
from cloud_controller.clouds.openstack.octavia.sent import Sent
from cloud_controller.clouds.openstack.octavia.topology import ReadTopology, subnets_of
from cloud_controller.clouds.openstack.octavia.wire import OCTAVIA, Known, View
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import LoadBalancerModel, Pool
from cloud_controller.load_balancers.operations import AddMembers, Operation, RemoveMembers


class MemberChanges:
    """The changes of members of one cluster's load balancers."""

    def __init__(self, client: OpenStackClient, reads: Reads, failed: FailedParts, topology: ReadTopology) -> None:
        self._client = client
        self._reads = reads
        self._failed = failed
        self._topology = topology

    def add(self, operation: AddMembers, operations: Sequence[Operation]) -> Sent:
        """One call, also for the members of the same pool that are removed without being waited for."""
        with_them = next(
            (
                each
                for each in operations
                if isinstance(each, RemoveMembers) and each.pool == operation.pool and not each.hand_over
            ),
            None,
        )
        removed = with_them.members if with_them else ()
        sent = self._set(operation.id, operation.pool, operation.members, removed)
        return replace(sent, covered=(with_them,) if with_them else ())

    def remove(self, operation: RemoveMembers) -> Sent:
        """Remove them. Raises Conflict if none of their successors is a member: they may still serve."""
        return self._set(operation.id, operation.pool, (), operation.members, some_stay=bool(operation.successors))

    def _set(
        self, id: str, name: str, added: Iterable[Member], removed: Iterable[Member], *, some_stay: bool = False
    ) -> Sent:
        known = self._reads.known(id)
        present = known.pool(name)
        if present is None:
            raise NotFound(f"load balancer {id} has no pool {name}")
        pool = next(each for each in wire.observed(known).model.pools if each.name == name)
        members = {each.key: each for each in of_pool(known, present)}
        gone = {each.key for each in removed}
        wanted = {key: each for key, each in members.items() if key not in gone}
        wanted |= {each.key: each for each in added}
        subnets, missing = self._subnets(known, present, pool, wanted.values())
        wanted = {key: each for key, each in wanted.items() if each.address not in missing}
        if missing and members and not wanted:
            # The old ones may still serve.
            raise next(iter(missing.values()))
        if some_stay and members and not wanted:
            raise Conflict(f"pool {name} of load balancer {id} keeps its members: no new one could be added")
        left_out = _left_out(added, missing)
        odd = [
            each
            for each in known.members.get(present["id"], [])
            if wire.member_of(each).key in wanted and wire.faults_of(each, present, known)
        ]
        if wanted == members and not odd:
            return Sent(busy=False, left_out=left_out)
        if is_failed(present):
            # Octavia accepts no change of its members until the pool itself is changed.
            raise Conflict(reason(f"pool {name}"))
        again = ""
        if failed := ", ".join(each["name"] for each in odd if is_failed(each)):
            what = f"member {failed} of pool {name}"
            again = self._failed.attempt(f"members of {present['id']}", what, at_once=wanted != members)
        self._send(known, present, pool, [*wanted.values()], subnets)
        if again:
            self._reads.forget(id)
        return Sent(unfinished=again, left_out=left_out)

    def put_ports(self, known: Known, present: View, pool: Pool) -> None:
        """Let each member be checked on the port that the pool's check has."""
        members = of_pool(known, present)
        subnets, _ = self._subnets(known, present, pool, members)
        self._send(known, present, pool, members, subnets)

    def without_odd(self, model: LoadBalancerModel) -> tuple[LoadBalancerModel, dict[str, str]]:
        """The model without nodes in no known subnet, and the subnets of the others by address.

        The next plan adds the nodes left out, and that fails with the reason.
        """
        found: dict[str, str] = {}
        pools = []
        for pool in model.pools:
            if not pool.attributes.get("member_subnet"):
                subnets, missing = subnets_of([each.address for each in pool.members], self._topology)
                found |= subnets
                pool = replace(pool, members=tuple(each for each in pool.members if each.address not in missing))
            pools.append(pool)
        return replace(model, pools=tuple(pools)), found

    def _subnets(
        self, known: Known, present: View, pool: Pool, members: Iterable[Member]
    ) -> tuple[dict[str, str], dict[str, InvalidConfiguration]]:
        """The subnet of each member by its address, where the pool names none; and why others have none."""
        if pool.attributes.get("member_subnet"):
            return {}, {}
        found = {each["address"]: each["subnet_id"] for each in known.members.get(present["id"], [])}
        new = dict.fromkeys(each.address for each in members if each.address not in found)
        others, missing = subnets_of(new, self._topology)
        return found | others, missing

    def _send(
        self, known: Known, present: View, pool: Pool, members: Sequence[Member], subnets: dict[str, str]
    ) -> None:
        """Replace the pool's members by these."""
        views = [bodies.member_body(each, pool, subnets) for each in members]
        self._client.put(OCTAVIA, f"lbaas/pools/{present['id']}/members", {"members": views})
        known.members[present["id"]] = [{"monitor_port": None, **each} for each in views]
        self._reads.working(known.view["id"])


def of_pool(known: Known, present: View) -> list[Member]:
    """The members of a pool."""
    return [wire.member_of(each) for each in known.members.get(present["id"], [])]


def _left_out(added: Iterable[Member], missing: Mapping[str, InvalidConfiguration]) -> LeftOut | None:
    if not missing:
        return None
    first = next(iter(missing.values()))
    more = f", and {len(missing) - 1} more nodes are no members for such reasons" if len(missing) > 1 else ""
    members = {each.key: missing[each.address].why for each in added if each.address in missing}
    return LeftOut(first.field, f"{first.why}{more}", first.allowed, members)
