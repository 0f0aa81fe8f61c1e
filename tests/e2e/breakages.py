"""Ways to break stack `local`, each with what `cloud-controller doctor` must say about it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from cloud_controller.kube import (
    CLUSTER_ROLES,
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    PODS,
    ROLE_BINDINGS,
    SECRETS,
    SERVICES,
    Kube,
    NotFoundError,
    Object,
    PatchType,
    Resource,
)
from cloud_controller.load_balancers.model import SERVICE_TAG, SERVICE_UID_TAG
from tests.e2e.local_stack import LocalStack, eventually

NAME = "cloud-controller-manager"
SYSTEM = "kube-system"
DLB = "service.beta.kubernetes.io/dlb-"
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"

Break = Callable[[LocalStack], AbstractContextManager[None]]


class OnCluster(Protocol):
    """A stack on any cloud."""

    @property
    def kube(self) -> Kube: ...


BreakAnywhere = Callable[[OnCluster], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Breakage:
    """`found_by`: the check that must find its first cause; `subject`: part of the finding's subject. `touches`: what
    it changes; two that change the same thing are no pair."""

    name: str
    apply: Break
    found_by: str
    subject: str
    touches: str


# ---------------------------------------------------------------------------------------------------- the manager


@contextmanager
def changed(stack: OnCluster, resource: Resource, name: str, namespace: str | None, change: Any) -> Iterator[None]:
    """An object changed by a function, and given back its spec, data, rules and metadata afterwards."""
    kube = stack.kube
    before = kube.get(resource, name, namespace)
    after = copy.deepcopy(before)
    change(after)
    kube.replace(resource, after)
    try:
        yield
    finally:
        now = kube.get(resource, name, namespace)
        for part in ("spec", "data", "rules", "subjects"):
            if part in before:
                now[part] = before[part]
        for part in ("annotations", "labels"):
            now["metadata"][part] = before["metadata"].get(part) or {}
        kube.replace(resource, now)


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

    return lambda stack: changed(stack, CLUSTER_ROLES, f"system:{NAME}", None, change)


def no_lease(stack: LocalStack) -> AbstractContextManager[None]:
    """The CCM may no longer read or renew its Lease."""

    def change(binding: Object) -> None:
        binding["subjects"] = []

    return changed(stack, ROLE_BINDINGS, NAME, SYSTEM, change)


def expired_credential(stack: LocalStack) -> AbstractContextManager[None]:
    """The Secret says that its token has expired."""

    def change(found: Object) -> None:
        found["metadata"].setdefault("annotations", {})["cloud-controller/credential-expires"] = "2026-01-01"

    return changed(stack, SECRETS, f"{NAME}-config", SYSTEM, change)


# ------------------------------------------------------------------------------------------------------ the cloud


def fault(operation: str, **more: Any) -> Break:
    """A fault that mycloud shows everybody."""

    @contextmanager
    def apply(stack: LocalStack) -> Iterator[None]:
        stack.cloud.post("admin/faults", {"operation": operation, "count": None, **more})
        try:
            yield
        finally:
            stack.cloud.delete_path("admin/faults")

    return apply


def quota(**limits: int) -> Break:
    """Quotas, and what they were before."""

    @contextmanager
    def apply(stack: LocalStack) -> Iterator[None]:
        before = stack.cloud.get_path("quotas")["quotas"]
        stack.cloud.put("admin/quotas", limits)
        try:
            yield
        finally:
            stack.cloud.put("admin/quotas", {name: before[name] for name in limits})

    return apply


def together(*breaks: Break) -> Break:
    """One after the other, undone in the opposite order."""

    @contextmanager
    def apply(stack: LocalStack) -> Iterator[None]:
        if not breaks:
            yield
            return
        with breaks[0](stack), together(*breaks[1:])(stack):
            yield

    return apply


def without_route(stack: LocalStack) -> AbstractContextManager[None]:
    """A route deleted by hand; the daemon writes it again as soon as it can."""

    @contextmanager
    def apply() -> Iterator[None]:
        (network,) = stack.cloud.list("networks")
        table = f"route_tables/{network['route_table_id']}/routes"
        first = sorted(route["destination_cidr"] for route in stack.cloud.list(table))[0]
        stack.cloud.post(f"{table}:batch_delete", {"destination_cidrs": [first]})
        yield

    return apply()


# ---------------------------------------------------------------------------------------------------------- nodes


def node(name: str, *, provider_id: str = "", tainted: bool = False, kubelet: str = "v1.36.1") -> Break:
    """A Node that registers without a machine of its own; it has no kubelet."""

    @contextmanager
    def apply(stack: LocalStack) -> Iterator[None]:
        kube = stack.kube
        spec: Object = {"providerID": provider_id} if provider_id else {}
        if tainted:
            spec["taints"] = [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]
        kube.create(NODES, {"metadata": {"name": name}, "spec": spec})
        status = {
            "nodeInfo": {**_NODE_INFO, "kubeletVersion": kubelet},
            # Nodes that are not ready are deleted, because their machines do not exist.
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}],
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

    return apply


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


# ------------------------------------------------------------------------------------------------------- Services


def service(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> BreakAnywhere:
    """One more Service of type LoadBalancer in front of the web workload; its load balancer goes with it."""

    @contextmanager
    def apply(stack: OnCluster) -> Iterator[None]:
        kube = stack.kube
        made = {
            "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app.kubernetes.io/name": "web"},
                "ports": [{"port": 8090, "targetPort": 8080}],
                **spec,
            },
        }
        kube.create(SERVICES, made)
        try:
            yield
        finally:
            kube.delete(SERVICES, name, "default")

    return apply


def of_service(name: str, change: Callable[[Object], None]) -> Break:
    """A change of one of the stack's Services."""
    return lambda stack: changed(stack, SERVICES, name, "default", change)


def annotated(key: str, value: str) -> Callable[[Object], None]:
    def change(found: Object) -> None:
        found["metadata"].setdefault("annotations", {})[key] = value

    return change


def no_pods(stack: LocalStack) -> AbstractContextManager[None]:
    """The web workload scaled to nothing."""

    def change(found: Object) -> None:
        found["spec"]["replicas"] = 0

    return changed(stack, DEPLOYMENTS, "web", "default", change)


@contextmanager
def every_node_excluded(stack: LocalStack) -> Iterator[None]:
    """All nodes carry the label that keeps load balancers away."""
    kube = stack.kube
    label = "node.kubernetes.io/exclude-from-external-load-balancers"

    def set_label(value: str | None) -> None:
        for each in kube.list(NODES).items:
            patch = {"metadata": {"labels": {label: value}}}
            kube.patch(NODES, each["metadata"]["name"], patch, type=PatchType.MERGE)

    set_label("true")
    try:
        yield
    finally:
        set_label(None)


@contextmanager
def load_balancer_of_nobody(stack: LocalStack) -> Iterator[None]:
    """A load balancer of this cluster whose Service nobody knows, as after a restored etcd."""
    cloud = stack.cloud
    template = cloud.list("load_balancers")[0]
    tags = {**template["tags"], SERVICE_UID_TAG: "00000000-0000-0000-0000-000000000000", SERVICE_TAG: "default/nobody"}
    made = cloud.create(
        "load_balancers",
        {"name": "nobody", "network_id": template["network_id"], "scheme": "internet-facing", "tags": tags},
    )
    try:
        yield
    finally:
        cloud.delete("load_balancers", made["id"])


BREAKAGES: Sequence[Breakage] = (
    # The manager itself.
    Breakage(
        "no node is selected",
        of_daemon(lambda spec: spec.update(nodeSelector={"nowhere": "here"})),
        "ccm-pods",
        NAME,
        "daemon",
    ),
    Breakage("the image does not exist", of_daemon(image("registry.local/nothing:1")), "ccm-pods", NAME, "daemon"),
    Breakage("the Secret does not exist", of_daemon(secret("nothing")), "ccm-pods", NAME, "daemon"),
    Breakage("an argument is wrong", of_daemon(arguments("--controlers=node")), "ccm-pods", NAME, "daemon"),
    Breakage("metrics are not served", of_daemon(arguments("--secure-port=0")), "ccm-pods", NAME, "daemon"),
    Breakage("the CCM may not patch nodes", without_right("nodes", "patch"), "kubernetes-rights", "", "rights"),
    Breakage("the CCM may not list Services", without_right("services", "list"), "kubernetes-rights", "", "rights"),
    Breakage("the CCM may not renew its Lease", no_lease, "kubernetes-rights", "", "rights"),
    Breakage("the credential has expired", expired_credential, "credential-expiry", "", "secret"),
    # The cloud.
    Breakage("the cloud fails", fault("*", kind="error"), "cloud-api", "", "faults"),
    Breakage("the cloud throttles", fault("*", kind="throttle"), "cloud-api", "", "faults"),
    Breakage(
        "the credentials are refused",
        fault("*", kind="error", status=401, code="Unauthorized"),
        "cloud-api",
        "",
        "faults",
    ),
    Breakage(
        "a load balancer may not be created",
        together(
            fault("POST */load_balancers", kind="error", status=403, code="PermissionDenied"), service("forbidden")
        ),
        "load-balancers",
        "default/forbidden",
        "faults",
    ),
    Breakage(
        "the quota of load balancers is used up",
        together(quota(load_balancers=2), service("over-quota")),
        "quotas",
        "",
        "quotas",
    ),
    Breakage("the quota of routes is used up", quota(routes_per_table=3), "quotas", "", "quotas"),
    Breakage(
        "a route cannot be written again",
        together(fault("POST *routes:batch_create", kind="error", status=403, code="PermissionDenied"), without_route),
        "routes",
        "route/",
        "faults",
    ),
    Breakage("a load balancer belongs to nobody", load_balancer_of_nobody, "held-actions", "nobody", "held"),
    # Nodes.
    Breakage("a node has no machine", node("ghost", tainted=True), "nodes-initialised", "node/ghost", "ghost"),
    Breakage(
        "a node is of another cloud",
        node("guest", provider_id="aws:///zone/i-1"),
        "provider-ids",
        "node/guest",
        "guest",
    ),
    Breakage("a node's kubelet is too old", node("old", tainted=True, kubelet="v1.28.0"), "ccm-version", "old", "old"),
    Breakage("a node has no provider ID", node("blank"), "provider-ids", "node/blank", "blank"),
    # Services.
    Breakage(
        "an annotation is misspelt",
        service("misspelt", {f"{DLB}shceme": "internal"}),
        "load-balancers",
        "default/misspelt",
        "misspelt",
    ),
    Breakage(
        "a value is not allowed",
        service("wrong", {f"{DLB}scheduler": "random"}),
        "load-balancers",
        "default/wrong",
        "wrong",
    ),
    Breakage(
        "no controller serves the class",
        service("unserved", loadBalancerClass="example.com/other"),
        "load-balancers",
        "default/unserved",
        "unserved",
    ),
    Breakage(
        "the health check asks for the wrong port",
        of_service("web", annotated(f"{DLB}health-check-port", "1")),
        "backend-health",
        "default/web",
        "web",
    ),
    Breakage("no pod is behind a Service", no_pods, "backends", "default/web", "web"),
    Breakage("every node is excluded", every_node_excluded, "backends", "default/", "node labels"),
    Breakage(
        "a Service selects nothing",
        service("empty", selector={"app.kubernetes.io/name": "nothing"}),
        "backends",
        "default/empty",
        "empty",
    ),
)
