"""Ways to break Nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from cloud_controller.controllers.node import ZONE_LABELS
from cloud_controller.kube import NODES, NotFoundError, Object, PatchType
from local.machine.node_object import KUBELET_VERSION
from tests.e2e.breaking.changes import Break
from tests.e2e.local_stack import LocalStack, eventually

UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"


def node(name: str, *, provider_id: str = "", tainted: bool = False) -> Break:
    """A Node that registers without a machine of its own."""
    spec: Object = {"providerID": provider_id} if provider_id else {}
    if tainted:
        spec["taints"] = [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]
    return lambda stack: _registered(stack, name, spec)


def on_machine(*, kubelet: str = KUBELET_VERSION, ready: bool = True) -> Break:
    """A Node on a machine of its own that never gets a process: what its kubelet has said stays as it is."""

    @contextmanager
    def apply(stack: LocalStack) -> Iterator[None]:
        cloud = stack.cloud
        worker = next(each for each in cloud.list("machines", state="running") if each["role"] == "worker")
        wanted = {"cluster_id": worker["cluster_id"], "subnet_ids": [worker["subnet_id"]], "tags": worker["tags"]}
        cloud.post("admin/machines", {"count": 1, "name_prefix": "still-", **wanted})
        try:
            (machine,) = cloud.list("machines", name="still-00000", state="running")
            neighbour = stack.kube.get(NODES, worker["name"])["spec"]["providerID"]
            spec = {"providerID": neighbour.replace(worker["id"], machine["id"])}
            with _registered(stack, machine["name"], spec, kubelet=kubelet, ready=ready):
                yield
        finally:
            cloud.delete_path("admin/machines")

    return apply


def another_zone(stack: LocalStack) -> AbstractContextManager[None]:
    """A worker's labels name a zone that is not its machine's."""
    labels = stack.kube.get(NODES, _worker(stack))["metadata"]["labels"]
    right = {label: labels[label] for label in ZONE_LABELS}
    return _patched(stack, {"metadata": {"labels": dict.fromkeys(right, "zone-x")}}, {"metadata": {"labels": right}})


def another_address(stack: LocalStack) -> AbstractContextManager[None]:
    """A worker's status has an internal address that is not its machine's."""
    right = stack.kube.get(NODES, _worker(stack))["status"]["addresses"]
    wrong = [{**each, "address": "10.255.255.1"} if each["type"] == "InternalIP" else each for each in right]
    return _patched(stack, {"status": {"addresses": wrong}}, {"status": {"addresses": right}}, "status")


@contextmanager
def every_node_excluded(stack: LocalStack) -> Iterator[None]:
    """All nodes carry the label that keeps load balancers away."""
    kube = stack.kube

    def set_label(value: str | None) -> None:
        for each in kube.list(NODES).items:
            patch = {"metadata": {"labels": {EXCLUDED: value}}}
            kube.patch(NODES, each["metadata"]["name"], patch, type=PatchType.MERGE)

    set_label("true")
    try:
        yield
    finally:
        set_label(None)


@contextmanager
def _patched(stack: LocalStack, wrong: Object, right: Object, subresource: str | None = None) -> Iterator[None]:
    def patch(change: Object) -> None:
        stack.kube.patch(NODES, _worker(stack), change, type=PatchType.MERGE, subresource=subresource)

    patch(wrong)
    try:
        yield
    finally:
        patch(right)


def _worker(stack: LocalStack) -> str:
    return f"{stack.name}-workers-0"


@contextmanager
def _registered(
    stack: LocalStack, name: str, spec: Object, *, kubelet: str = KUBELET_VERSION, ready: bool = True
) -> Iterator[None]:
    kube = stack.kube
    # A load balancer would find nothing there.
    kube.create(NODES, {"metadata": {"name": name, "labels": {EXCLUDED: "true"}}, "spec": spec})
    status = {
        "nodeInfo": {**_NODE_INFO, "kubeletVersion": kubelet},
        # What is not ready and has no machine, the CCM deletes.
        "conditions": [{"type": "Ready", "status": str(ready), "reason": "Test", "message": ""}],
    }
    kube.patch(NODES, name, {"status": status}, type=PatchType.MERGE, subresource="status")
    try:
        yield
    finally:
        try:
            kube.delete(NODES, name)
        except NotFoundError:
            return
        eventually(lambda: name not in {n["metadata"]["name"] for n in kube.list(NODES).items}, f"{name} is gone")


_NODE_INFO = dict.fromkeys(
    (
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ),
    "",
)
