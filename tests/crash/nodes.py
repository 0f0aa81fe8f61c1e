"""What kubelets and kube-controller-manager do to nodes, of which none runs here."""

from __future__ import annotations

from ipaddress import IPv4Network

from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT
from cloud_controller.kube import NODES, Kube, Object, PatchType


class Nodes:
    """The nodes of one cluster. `cluster_cidr`: what their pod ranges are cut from."""

    def __init__(self, kube: Kube, cluster_cidr: str) -> None:
        self.kube = kube
        self._pod_cidrs = IPv4Network(cluster_cidr).subnets(new_prefix=24)

    def register(self, node: str, provider_id: str | None = None, *, pod_cidr: bool = True) -> None:
        """What a kubelet with an external cloud does first, and the pod range that the cluster gives the node."""
        taint = {"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}
        body: Object = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node, "labels": {"kubernetes.io/hostname": node}},
            "spec": {"taints": [taint], **({"providerID": provider_id} if provider_id else {})},
        }
        self.kube.create(NODES, body)
        self.report(node, "True")
        if pod_cidr:
            self.give_pod_cidr(node)

    def give_pod_cidr(self, node: str) -> None:
        """What kube-controller-manager does for a new node."""
        cidr = str(next(self._pod_cidrs))
        patch = {"spec": {"podCIDR": cidr, "podCIDRs": [cidr]}}
        self.kube.patch(NODES, node, patch, type=PatchType.STRATEGIC)

    def report(self, node: str, ready: str) -> None:
        """What the node's `Ready` condition says from now on."""
        patch = {"status": {"conditions": [{"type": "Ready", "status": ready, "reason": "Test", "message": "test"}]}}
        self.kube.patch(NODES, node, patch, type=PatchType.STRATEGIC, subresource="status")
