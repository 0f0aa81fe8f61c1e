"""Claims on stack `local`: a volume follows its pod from node to node, grows, is kept or deleted, and never leaked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cloud_controller.kube import (
    DEPLOYMENTS,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    NotFoundError,
    Object,
    PatchType,
    name,
)
from tests.e2e.local_stack import LocalStack, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ZONE = "topology.kubernetes.io/zone"
VISIT = 'echo "$POD_NAME on $NODE_NAME" >> /data/visits; exec sleep 100000'


@pytest.fixture(scope="module")
def stack(empty_stack: LocalStack) -> Iterator[LocalStack]:
    """The stack with two workers in zone-a, and one in each of the other zones."""
    empty_stack.scale_workers(4)
    empty_stack.configure("workloads", False)
    empty_stack.run("up")
    yield empty_stack


def claim(claim_name: str, **spec: Any) -> Object:
    requests = {"resources": {"requests": {"storage": "1Gi"}}}
    return {
        "metadata": {"name": claim_name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], **requests, **spec},
    }


def visitor() -> Object:
    """One pod that writes its place to the claim."""
    fields = {"POD_NAME": "metadata.name", "NODE_NAME": "spec.nodeName"}
    env = [{"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items()]
    container = {
        "name": "visitor",
        "image": "registry.local/web:1",
        "command": ["sh", "-c", VISIT],
        "env": env,
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    pod = {
        "containers": [container],
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    labels = {"app": "visitor"}
    return {
        "metadata": {"name": "visitor", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def volume(stack: LocalStack) -> dict[str, Any]:
    (found,) = [v for v in stack.cloud.list("volumes") if v["tags"].get("kubernetes.io/claim") == "default/data"]
    return found


def visits(stack: LocalStack) -> list[str]:
    """What pods have written to the volume, read from the cloud's copy."""
    file = stack.state / "mycloud" / "volumes" / str(volume(stack)["id"]) / "visits"
    return file.read_text().splitlines() if file.exists() else []


def pods(stack: LocalStack) -> list[Object]:
    return stack.kube.list(PODS, "default", label_selector="app=visitor").items


def cordon(stack: LocalStack, *closed: str) -> None:
    """Let pods be scheduled to every node except these."""
    for node in stack.kube.list(NODES).items:
        patch = {"spec": {"unschedulable": name(node) in closed or None}}
        stack.kube.patch(NODES, name(node), patch, type=PatchType.MERGE)


def bound(stack: LocalStack, claim_name: str) -> Object | None:
    found = stack.kube.get(PERSISTENT_VOLUME_CLAIMS, claim_name, "default")
    is_bound = found["status"].get("phase") == "Bound"
    return stack.kube.get(PERSISTENT_VOLUMES, found["spec"]["volumeName"]) if is_bound else None


def test_a_claim_of_the_default_class_waits_for_its_first_consumer(stack: LocalStack) -> None:
    stack.kube.create(PERSISTENT_VOLUME_CLAIMS, claim("data"))

    def waits() -> bool:
        events = stack.kube.list(EVENTS, "default").items
        return any(e["reason"] == "WaitForFirstConsumer" for e in events if e["involvedObject"]["name"] == "data")

    eventually(waits, "the claim waits for a pod")
    assert stack.kube.get(PERSISTENT_VOLUME_CLAIMS, "data", "default")["spec"]["storageClassName"] == "mycloud"
    assert stack.cloud.list("volumes") == []


def test_the_volume_is_made_in_the_zone_of_its_consumer_which_writes_to_it(stack: LocalStack) -> None:
    cordon(stack, "local-workers-1", "local-workers-2", "local-workers-3")

    stack.kube.create(DEPLOYMENTS, visitor())

    eventually(lambda: bound(stack, "data"), "the claim is bound")
    eventually(lambda: volume(stack)["attachment"], "the volume is attached")
    eventually(lambda: visits(stack), "the pod writes")
    assert volume(stack)["zone"] == "zone-a"
    (visit,) = visits(stack)
    assert visit.endswith(" on local-workers-0")


def test_a_volume_follows_its_pod_to_another_node_of_the_zone_with_its_data(stack: LocalStack) -> None:
    (first,) = visits(stack)
    cordon(stack, "local-workers-0")

    (pod,) = pods(stack)
    stack.kube.delete(PODS, name(pod), "default")

    eventually(lambda: len(visits(stack)) == 2, "another pod writes to the same volume")
    assert visits(stack)[0] == first
    # Workers of other zones are open too; only the volume excludes them.
    assert visits(stack)[1].endswith(" on local-workers-3")
    (machine,) = [m for m in stack.cloud.list("machines") if m["name"] == "local-workers-3"]
    assert volume(stack)["attachment"] == {"machine_id": machine["id"], "state": "attached"}


def test_a_volume_grows_while_it_is_in_use(stack: LocalStack) -> None:
    more = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
    stack.kube.patch(PERSISTENT_VOLUME_CLAIMS, "data", more, "default", type=PatchType.MERGE)

    def capacity() -> str:
        found = stack.kube.get(PERSISTENT_VOLUME_CLAIMS, "data", "default")
        return str(found["status"]["capacity"]["storage"])

    eventually(lambda: capacity() == "3Gi", "the claim tells its new size")
    assert volume(stack)["size_gib"] == 3
    assert len(visits(stack)) == 2


def test_a_volume_outlives_the_machine_that_it_is_attached_to(stack: LocalStack) -> None:
    cordon(stack)
    (machine,) = [m for m in stack.cloud.list("machines") if m["name"] == "local-workers-3"]

    stack.cloud.delete("machines", machine["id"])

    # kube-controller-manager waits 40 s before it gives up the pods of a missing node.
    eventually(lambda: len(visits(stack)) == 3, "the pod comes back on the other machine of the zone", 300)
    assert visits(stack)[2].endswith(" on local-workers-0")


def test_a_retained_volume_outlives_its_claim(stack: LocalStack) -> None:
    kept = {
        "metadata": {"name": "kept"},
        "provisioner": "mycloud.io/volume",
        "reclaimPolicy": "Retain",
        "volumeBindingMode": "Immediate",
    }
    stack.kube.create(STORAGE_CLASSES, kept)
    stack.kube.create(PERSISTENT_VOLUME_CLAIMS, claim("kept", storageClassName="kept"))
    pv = eventually(lambda: bound(stack, "kept"), "the claim is bound")

    stack.kube.delete(PERSISTENT_VOLUME_CLAIMS, "kept", "default")

    eventually(lambda: stack.kube.get(PERSISTENT_VOLUMES, name(pv))["status"]["phase"] == "Released", "it is released")
    stack.kube.delete(PERSISTENT_VOLUMES, name(pv))
    eventually(lambda: not exists(stack, name(pv)), "the PersistentVolume goes")
    handle = pv["spec"]["csi"]["volumeHandle"]
    assert stack.cloud.get("volumes", handle)["state"] == "available"
    stack.cloud.delete("volumes", handle)


def exists(stack: LocalStack, pv_name: str) -> bool:
    try:
        stack.kube.get(PERSISTENT_VOLUMES, pv_name)
    except NotFoundError:
        return False
    return True


def test_destroy_stops_before_a_claim_that_still_holds_a_volume(stack: LocalStack) -> None:
    reported = stack.on_copy("destroy", expect=1)

    assert "default/data" in reported
    assert len(visits(stack)) == 3


def test_destroy_waits_for_the_volumes_of_deleted_claims_and_leaves_the_cloud_empty(stack: LocalStack) -> None:
    stack.kube.delete(DEPLOYMENTS, "visitor", "default")
    stack.kube.delete(PERSISTENT_VOLUME_CLAIMS, "data", "default")

    stack.on_copy("destroy")

    collections = ("networks", "subnets", "clusters", "load_balancers", "route_tables", "volumes")
    left = {c: stack.cloud.list(c) for c in collections}
    assert left == {c: [] for c in left}
