"""Security groups for nodes on the real Neutron: what ports have, whoever else writes them and whatever goes wrong."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pytest

from cloud_controller.fence import WriteRefused
from local.openstack.api import Object
from local.openstack.proxy import Fault
from tests.cloud_controller.clouds.openstack.octavia.account import OctaviaAccount
from tests.cloud_controller.clouds.openstack.octavia.services import named
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, changed, left_out, port, service

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

FOREIGN = "Service default/web of cluster c-2, UID uid-web"
"""What another cluster's group says of itself."""
CREATION, TURNING_ON, DELETION = 6, 6, 3
"""Writes of an internal Service with one node: load balancer, group, rules, two rules of Neutron's own away, port; the
same with the load balancer's tag; and port, group, load balancer."""
DENIED = {"type": "PolicyNotAuthorized", "message": "rule:get_security_group is disallowed by policy", "detail": ""}


class Nodes:
    """Servers with ports, on which somebody else has put a security group, and a cluster of them."""

    def __init__(self, account: OctaviaAccount, *names: str) -> None:
        self._account = account
        self.cluster = Cluster()
        self.ports: dict[str, str] = {}
        for name in names:
            self.join(name)
        self.before = self.groups()

    @cached_property
    def theirs(self) -> str:
        """The ID of a group of another cluster."""
        body = {"security_group": {"name": "c-1-default-web", "description": FOREIGN}}
        made: Object = self._account.api.post("network", "security-groups", body)["security_group"]
        return str(made["id"])

    def join(self, name: str) -> None:
        """A new server becomes a node."""
        server, (made,) = self._account.site.project.server(
            name, (self._account.networks.nodes, [self._account.networks.subnet])
        )
        self.ports[name] = made["id"]
        self.put_on(name, [*made["security_groups"], self.theirs])
        self.cluster.put_node(name, f"openstack:///{server}", made["fixed_ips"][0]["ip_address"])

    def put_on(self, name: str, groups: list[str]) -> None:
        """Set the groups of a node's port, as a person does."""
        self._account.api.put("network", f"ports/{self.ports[name]}", {"port": {"security_groups": groups}})

    def groups(self) -> Mapping[str, set[str]]:
        """The groups of each node's port."""
        found = {each["id"]: each for each in self._account.api.get("network", "ports")["ports"]}
        return {name: {*found[each]["security_groups"]} for name, each in self.ports.items()}

    def ours(self) -> list[Object]:
        """The groups that the controller made."""
        listed = self._account.api.get("network", "security-groups")["security_groups"]
        return [each for each in listed if each["description"].endswith("of cluster c-1, UID uid-web")]


def serve(account: OctaviaAccount, nodes: Nodes, **more: Any) -> Running:
    """An internal Service is served."""
    nodes.cluster.put(service(named(internal=True), port(80)))
    running = Running(account, nodes.cluster, manage_security_groups=True, **more)
    running.calls.clear()
    return running.settle()


def test_a_service_opens_its_nodes_and_closes_those_that_leave(account: OctaviaAccount) -> None:
    nodes = Nodes(account, "node1", "node2")

    running = serve(account, nodes)

    (group,) = nodes.ours()
    shown = [
        (r["direction"], r["protocol"], r["port_range_min"], r["remote_ip_prefix"])
        for r in group["security_group_rules"]
    ]
    assert shown == [("ingress", "tcp", 30080, "10.1.0.0/16")]
    assert nodes.groups() == {name: {*before, group["id"]} for name, before in nodes.before.items()}
    assert not running.plan().changes

    nodes.join("node3")
    del nodes.cluster.objects["nodes"]["node1"]
    running.take_nodes()
    running.settle(rounds=8)

    assert {name for name, groups in nodes.groups().items() if group["id"] in groups} == {"node2", "node3"}
    assert not running.plan().changes

    nodes.cluster.delete_service()
    running.settle()

    assert nodes.ours() == []
    assert nodes.groups() == {**nodes.before, "node3": nodes.before["node1"]}


def test_what_somebody_writes_to_a_port_meanwhile_is_not_lost(account: OctaviaAccount) -> None:
    nodes = Nodes(account, "node1")
    (only,) = (list(groups) for groups in nodes.before.values())

    def meanwhile(operation: str) -> Fault | None:
        if operation == "PUT network /v2.0/ports/ID" and nodes.theirs in nodes.groups()["node1"]:
            # Between the controller's read and its write.
            nodes.put_on("node1", [each for each in only if each != nodes.theirs])
        return None

    account.site.proxy.fault = meanwhile

    serve(account, nodes)

    (group,) = nodes.ours()
    assert nodes.groups()["node1"] == {*only, group["id"]} - {nodes.theirs}


def test_a_load_balancer_that_replaces_another_one_keeps_its_group(account: OctaviaAccount) -> None:
    nodes = Nodes(account, "node1")
    running = serve(account, nodes)
    (before,), (group,) = account.load_balancers(), nodes.ours()
    _, (subnet,) = account.site.project.network("other", "10.9.0.0/24")

    changed(nodes.cluster, named(subnet_id=subnet["id"]))
    running.settle(rounds=8)

    (after,) = account.load_balancers()
    assert after["id"] != before["id"]
    assert [each["id"] for each in nodes.ours()] == [group["id"]]
    assert group["id"] in nodes.groups()["node1"]
    assert not running.plan().changes


def test_a_port_without_port_security_needs_no_group(account: OctaviaAccount) -> None:
    nodes = Nodes(account, "node1")
    body = {"port": {"security_groups": [], "port_security_enabled": False}}
    account.site.peer.admin.put("network", f"ports/{nodes.ports['node1']}", body)

    running = serve(account, nodes)

    assert nodes.groups() == {"node1": set()}
    assert not running.plan().changes
    assert not Running(account, nodes.cluster, manage_security_groups=True).plan().changes, "nor in the next process"


def test_a_node_without_a_port_is_told_and_keeps_nothing_else_of_its_service_as_it_was(account: OctaviaAccount) -> None:
    nodes = Nodes(account, "node1")
    nodes.cluster.put_node("elsewhere", f"openstack:///{uuid.uuid4()}", "10.1.255.1")

    running = serve(account, nodes).settle()

    (group,) = nodes.ours()
    (told,) = left_out(nodes.cluster)
    assert "no port of the project has the node's address 10.1.255.1" in told

    nodes.join("node2")
    changed(nodes.cluster, ports=[port(80), port(443)])
    running.take_nodes()
    running.settle(rounds=12)

    assert all(group["id"] in groups for groups in nodes.groups().values())
    assert {each["protocol_port"] for each in account.parts("listeners")} == {80, 443}
    running.calls.clear()
    running.settle()
    assert not running.calls.made
    assert left_out(nodes.cluster) == [told]


def test_the_group_of_a_load_balancer_deleted_by_hand_goes_with_its_successors_service(account: OctaviaAccount) -> None:
    nodes = Nodes(account, "node1")
    serve(account, nodes)
    running = Running(account, nodes.cluster, manage_security_groups=True).settle()
    (by_hand,) = account.load_balancers()
    account.api.delete("load-balancer", f"lbaas/loadbalancers/{by_hand['id']}?cascade=true")
    account.settle()
    running.resync()
    running.settle()
    assert [each["id"] for each in account.load_balancers()] != [by_hand["id"]]

    nodes.cluster.delete_service()
    running.settle()

    assert (nodes.ours(), nodes.groups(), account.load_balancers()) == ([], nodes.before, [])


def test_without_the_right_to_see_groups_the_others_services_are_read(account: OctaviaAccount) -> None:
    nodes = Nodes(account, "node1")
    serve(account, nodes)
    account.site.fails("GET network /v2.0/security-groups", Fault(403, {"NeutronError": DENIED}), times=9)

    plan = Running(account, nodes.cluster).plan()

    assert plan.changes, "the group is to be removed, which needs the right"


def test_turned_off_the_groups_go_and_everything_else_stays(account: OctaviaAccount) -> None:
    nodes = Nodes(account, "node1")
    serve(account, nodes)

    Running(account, nodes.cluster).settle()

    assert (nodes.ours(), nodes.groups()) == ([], nodes.before)
    assert len(account.load_balancers()) == 1


@pytest.mark.parametrize("writes", range(1, CREATION))
def test_a_process_that_ends_during_the_creation_leaves_nothing_for_good(account: OctaviaAccount, writes: int) -> None:
    nodes = Nodes(account, "node1")
    with pytest.raises(WriteRefused):
        serve(account, nodes, wrap=ends_after(writes))

    running = Running(account, nodes.cluster, manage_security_groups=True).settle()
    (group,) = nodes.ours()
    assert nodes.groups()["node1"] == {*nodes.before["node1"], group["id"]}

    nodes.cluster.delete_service()
    running.settle()
    assert (nodes.ours(), nodes.groups(), account.load_balancers()) == ([], nodes.before, [])


@pytest.mark.parametrize("writes", range(1, TURNING_ON))
def test_a_process_that_ends_while_groups_are_turned_on_leaves_nothing_for_good(
    account: OctaviaAccount, writes: int
) -> None:
    nodes = Nodes(account, "node1")
    nodes.cluster.put(service(named(internal=True), port(80)))
    Running(account, nodes.cluster).settle()
    with pytest.raises(WriteRefused):
        Running(account, nodes.cluster, manage_security_groups=True, wrap=ends_after(writes)).settle()

    Running(account, nodes.cluster).settle()

    assert (nodes.ours(), nodes.groups()) == ([], nodes.before)


@pytest.mark.parametrize("writes", range(1, DELETION))
def test_a_process_that_ends_during_the_deletion_leaves_nothing_for_good(account: OctaviaAccount, writes: int) -> None:
    nodes = Nodes(account, "node1")
    serve(account, nodes)
    nodes.cluster.delete_service()
    with pytest.raises(WriteRefused):
        Running(account, nodes.cluster, manage_security_groups=True, wrap=ends_after(writes)).settle()

    Running(account, nodes.cluster, manage_security_groups=True).settle()

    assert (nodes.ours(), nodes.groups(), account.load_balancers()) == ([], nodes.before, [])


def ends_after(writes: int) -> Any:
    """A process that may make this many writes."""
    left = [None] * writes

    def fence() -> None:
        if not left:
            raise WriteRefused("the process ends here")
        left.pop()

    return lambda cloud: cloud.fence_writes(fence)
