"""Ways to break the CCM: its workload, its rights in Kubernetes, its Lease, its credential."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime

from cloud_controller.kube import (
    CLUSTER_ROLES,
    DAEMON_SETS,
    LEASES,
    PODS,
    ROLE_BINDINGS,
    SECRETS,
    NotFoundError,
    Object,
    PatchType,
)
from tests.e2e.breaking.changes import Break, BreakAnywhere, changed
from tests.e2e.local_stack import LocalStack

NAME = "cloud-controller-manager"
SYSTEM = "kube-system"


def of_daemon(change: Callable[[Object], None]) -> Break:
    """A change of the daemon's pod template; the pods follow, before and afterwards."""

    @contextmanager
    def apply(stack: LocalStack) -> Iterator[None]:
        kube = stack.kube
        with changed(stack, DAEMON_SETS, NAME, SYSTEM, lambda each: change(each["spec"]["template"]["spec"])):
            yield
        # A pod that never started is not replaced by itself while the old one "runs".
        wanted = kube.get(DAEMON_SETS, NAME, SYSTEM)["spec"]["template"]["spec"]["containers"][0]
        for pod in kube.list(PODS, SYSTEM).items:
            of_workload = pod["metadata"].get("labels", {}).get("k8s-app") == NAME
            if of_workload and pod["spec"]["containers"][0]["args"] != wanted["args"]:
                # The DaemonSet may have deleted it meanwhile.
                with suppress(NotFoundError):
                    kube.delete(PODS, pod["metadata"]["name"], SYSTEM, grace_seconds=0)

    return apply


def arguments(*more: str) -> Callable[[Object], None]:
    def change(spec: Object) -> None:
        spec["containers"][0]["args"] += more

    return change


def image(name: str) -> Callable[[Object], None]:
    def change(spec: Object) -> None:
        spec["containers"][0]["image"] = name

    return change


def secret(name: str) -> Callable[[Object], None]:
    def change(spec: Object) -> None:
        spec["volumes"][0]["secret"]["secretName"] = name

    return change


def without_right(resource: str, verb: str) -> BreakAnywhere:
    """The CCM's ClusterRole without one verb."""

    def change(role: Object) -> None:
        for rule in role["rules"]:
            if resource in rule["resources"]:
                rule["verbs"] = [each for each in rule["verbs"] if each != verb]
        role["rules"] = [rule for rule in role["rules"] if rule["verbs"]]

    return lambda stack: changed(stack, CLUSTER_ROLES, f"system:{NAME}", None, change)


def no_lease(stack: LocalStack) -> AbstractContextManager[None]:
    """The CCM may no longer read or renew its Lease."""

    def change(binding: Object) -> None:
        binding["subjects"] = []

    return changed(stack, ROLE_BINDINGS, NAME, SYSTEM, change)


@contextmanager
def another_leader(stack: LocalStack) -> Iterator[None]:
    """Something else takes the Lease, for an hour."""

    def write(**spec: object) -> None:
        stack.kube.patch(LEASES, NAME, {"spec": spec}, SYSTEM, type=PatchType.MERGE)

    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    write(holderIdentity="elsewhere_1", leaseDurationSeconds=3600, renewTime=now)
    try:
        yield
    finally:
        write(holderIdentity="", leaseDurationSeconds=1)


def expired_credential(stack: LocalStack) -> AbstractContextManager[None]:
    """The Secret says that its token has expired."""

    def change(found: Object) -> None:
        found["metadata"].setdefault("annotations", {})["cloud-controller/credential-expires"] = "2026-01-01"

    return changed(stack, SECRETS, f"{NAME}-config", SYSTEM, change)
