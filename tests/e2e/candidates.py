"""The cloud controller manager's pods of a stack: candidates for leader, of which one leads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cloud_controller.kube import LEASES, PODS, Informer, Object
from tests.e2e.local_stack import LocalStack, eventually

CCM = "cloud-controller-manager"
_LABELS = f"k8s-app={CCM}"


def ready_candidates(stack: LocalStack) -> list[Object]:
    """Their pods, of those that are ready now."""
    pods = stack.kube.list(PODS, "kube-system", label_selector=_LABELS).items
    return [pod for pod in pods if is_ready(pod)]


def all_ready(stack: LocalStack) -> list[Object]:
    """The three candidates, once they are ready at the same time."""

    def three() -> list[Object] | None:
        ready = ready_candidates(stack)
        return ready if len(ready) == 3 else None

    found: list[Object] = eventually(three, "three candidates are ready")
    return found


def budget(stack: LocalStack) -> Any:
    """The disruption controller's result: it follows the pods, and decides about evictions."""
    return stack.kube.get(stack.kube.resource("policy/v1", "PodDisruptionBudget"), CCM, "kube-system")["status"]


def evict(stack: LocalStack, pod: Object) -> None:
    """Ask for its eviction. Raises TooManyRequestsError if the disruption budget refuses it."""
    metadata = {"name": pod["metadata"]["name"], "namespace": "kube-system"}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    stack.kube.create(PODS, eviction, "kube-system", name=metadata["name"], subresource="eviction")


def held_lease(stack: LocalStack, *, other_than: str = "") -> Object | None:
    """The Lease if a candidate holds it, on another machine than this one."""
    lease = stack.kube.get(LEASES, CCM, "kube-system")
    return lease if lease["spec"].get("holderIdentity") and leaders_machine(lease) != other_than else None


def leaders_machine(lease: Object) -> str:
    """The name of the holder's machine."""
    return str(lease["spec"]["holderIdentity"]).rpartition("_")[0]


@contextmanager
def candidates_counted(stack: LocalStack) -> Iterator[list[int]]:
    """How many candidates were ready after each change of one."""
    counts: list[int] = []
    ready: dict[str, bool] = {}
    lock = threading.Lock()

    def note(_type: Any, old: Object | None, new: Object | None) -> None:
        pod = new or old
        assert pod is not None
        with lock:
            ready[pod["metadata"]["uid"]] = new is not None and is_ready(new)
            if informer.synced:
                counts.append(sum(ready.values()))

    informer = Informer(stack.kube, PODS, "kube-system", label_selector=_LABELS)
    informer.add_handler(note)
    informer.start()
    informer.wait_synced(30)
    try:
        yield counts
    finally:
        informer.stop()


def is_ready(pod: Object) -> bool:
    """Whether its condition says so, and nobody has deleted it."""
    conditions = {c["type"]: c["status"] for c in pod.get("status", {}).get("conditions", [])}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
