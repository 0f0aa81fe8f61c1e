"""What happens in a phase of a recorded scenario besides the change of Services: in the project and to nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tests.cloud_controller.cluster import Cluster
from tests.compatibility.openstack_account import PeersProject
from tests.compatibility.openstack_left import NODES

ByHand = Callable[[PeersProject, Cluster], None]


def put_node(project: PeersProject, cluster: Cluster, name: str, **labels: str) -> None:
    """Add a node, or change its labels."""
    number = int(name.removeprefix("node"))
    machine = f"00000000-0000-4000-8000-{number:012d}" if number else project.machine
    cluster.put_node(name, f"openstack:///{machine}", NODES[name], labels=labels)


def _nothing(project: PeersProject, cluster: Cluster) -> None:
    """Only that the controller reads everything again, as it does every few minutes."""


def _node(project: PeersProject, cluster: Cluster, *, name: str, **labels: str) -> None:
    put_node(project, cluster, name, **labels)


def _node_gone(_: PeersProject, cluster: Cluster) -> None:
    del cluster.objects["nodes"]["node3"]


def _node_without_address(project: PeersProject, cluster: Cluster) -> None:
    put_node(project, cluster, "node3", env="dev")
    cluster.objects["nodes"]["node3"]["status"]["addresses"] = []


def _node_not_ready(_: PeersProject, cluster: Cluster) -> None:
    cluster.objects["nodes"]["node2"]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]


def _listener_changed(project: PeersProject, _: Cluster) -> None:
    fields: Mapping[str, Any] = {"connection_limit": 5, "allowed_cidrs": ["10.0.0.0/8"], "admin_state_up": False}
    path = f"lbaas/listeners/{project.first('listeners')['id']}"
    project.api.put("load-balancer", path, {"listener": {"name": "changed", **fields}})
    project.settle()


def _part_gone(project: PeersProject, _: Cluster, *, kind: str) -> None:
    project.api.delete("load-balancer", f"lbaas/{kind}/{project.first(kind)['id']}")
    project.settle()


def _member_gone(project: PeersProject, _: Cluster) -> None:
    project.api.delete("load-balancer", project.first_member())
    project.settle()


def _member_off(project: PeersProject, _: Cluster) -> None:
    project.api.put("load-balancer", project.first_member(), {"member": {"admin_state_up": False, "weight": 0}})
    project.settle()


def _floating_ips_gone(project: PeersProject, _: Cluster) -> None:
    for each in project.api.get("network", "floatingips")["floatingips"]:
        project.api.delete("network", f"floatingips/{each['id']}")


def _all_gone(project: PeersProject, cluster: Cluster) -> None:
    _floating_ips_gone(project, cluster)
    project.delete_balancers()


def _foreign_listener(project: PeersProject, _: Cluster) -> None:
    balancer = project.first("loadbalancers")["id"]
    listener = {"name": "foreign", "protocol": "TCP", "protocol_port": 9999, "loadbalancer_id": balancer}
    project.api.post("load-balancer", "lbaas/listeners", {"listener": listener})
    project.settle()


def _error(project: PeersProject, _: Cluster) -> None:
    project.to_error(project.first("loadbalancers")["id"])


def _floating_ip(project: PeersProject, _: Cluster) -> None:
    project.make_floating_ip(port_id=project.first("loadbalancers")["vip_port_id"])


def _quota_raised(project: PeersProject, _: Cluster) -> None:
    project.lift_quotas()


BY_HAND: Mapping[str, ByHand] = {
    **dict.fromkeys(
        ("touched", "touched after that", "load-balancer-id taken away", "12 s more", "15 s more"), _nothing
    ),
    "node3 added": partial(_node, name="node3", env="dev"),
    "node3 removed": _node_gone,
    "node3 added without an address": _node_without_address,
    "node2 not ready": _node_not_ready,
    "node1 gets env=prod": partial(_node, name="node1", env="prod"),
    "a listener was changed (limit, CIDRs, name, off); touched": _listener_changed,
    "a member was deleted; touched": _member_gone,
    "a member was switched off (weight 0); touched": _member_off,
    "a pool was deleted; touched": partial(_part_gone, kind="pools"),
    "a listener was deleted; touched": partial(_part_gone, kind="listeners"),
    "the floating IP was deleted; touched": _floating_ips_gone,
    "a foreign listener without tags was added; touched": _foreign_listener,
    "the load balancer and the floating IP were deleted; touched": _all_gone,
    "the load balancer went to ERROR; touched": _error,
    "a floating IP was put on its VIP by hand, Service touched": _floating_ip,
    "quota raised: until it is there": _quota_raised,
}
"""By the phase's title."""
