"""A healthy cloud controller manager in memory, for the checks of `cloud-controller doctor` to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from cloud_controller import rbac
from cloud_controller.cloud import Cloud
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.doctor.findings import Check, Finding, Result, examine
from cloud_controller.doctor.seen import Daemon, Seen, Target, Unreadable
from cloud_controller.kube import DAEMON_SETS, EVENTS, LEASES, NODES, PODS, Kube, Object
from cloud_controller.planning import PlanSettings
from tests.fake_kubernetes import FakeKubernetes

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
NAME, NAMESPACE = "cloud-controller-manager", "kube-system"
POD = f"{NAMESPACE}/{NAME}-a"
LABELS = {"k8s-app": NAME}
ARGUMENTS = ("run", "--cloud=mycloud", "--controllers=node,service", "--cluster-cidr=10.20.0.0/16")
PROXIED = f"/api/v1/namespaces/{NAMESPACE}/pods/https:{NAME}-a:10258/proxy"


def ago(**span: float) -> str:
    """The time so long ago, as Kubernetes writes it."""
    return (NOW - timedelta(**span)).isoformat()


def cluster(*others: Object) -> FakeKubernetes:
    """A DaemonSet with a ready pod that leads, on the only node; `others` are beside these, or in their place."""
    api = FakeKubernetes()
    api.git_version = "v1.36.1"
    for obj in (daemon_set(), pod(), lease(), node(), *others):
        api.put(_OF_KIND[obj["kind"]], obj)
    return api


_OF_KIND = {"DaemonSet": DAEMON_SETS, "Lease": LEASES, "Node": NODES, "Pod": PODS}


def daemon_set(*arguments: str, wanted: int = 1) -> Object:
    container = {"name": NAME, "image": "registry.example/ccm:0.1.0", "args": [*(arguments or ARGUMENTS)]}
    spec = {
        "serviceAccountName": NAME,
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "containers": [container],
        "volumes": [{"name": "cloud-config", "secret": {"secretName": f"{NAME}-config"}}],
    }
    return {
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": LABELS}, "template": {"spec": spec}},
        "status": {"desiredNumberScheduled": wanted},
    }


def pod(**status: Any) -> Object:
    ready = {"type": "Ready", "status": "True"}
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"{NAME}-a",
            "namespace": NAMESPACE,
            "labels": LABELS,
            "creationTimestamp": ago(days=1),
        },
        "spec": {"nodeName": "control-plane-0"},
        "status": {"phase": "Running", "podIP": "127.0.0.1", "conditions": [ready], **status},
    }


def waiting(reason: str, message: str = "", **further: Any) -> Object:
    """A pod that is not ready because its container waits for this reason."""
    state = {"waiting": {"reason": reason, "message": message}}
    container = {"name": NAME, "image": "registry.example/ccm:0.1.0", "state": state, **further}
    return pod(phase="Pending", conditions=[{"type": "Ready", "status": "False"}], containerStatuses=[container])


def lease(holder: str = "control-plane-0_1", renewed: str = "", **spec: Any) -> Object:
    return {
        "kind": "Lease",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "creationTimestamp": ago(days=2)},
        "spec": {
            "holderIdentity": holder,
            "renewTime": renewed or ago(seconds=2),
            "leaseDurationSeconds": 15,
            "leaseTransitions": 1,
            **spec,
        },
    }


def node(name: str = "control-plane-0", **spec: Any) -> Object:
    labels = {"kubernetes.io/hostname": name, "node-role.kubernetes.io/control-plane": ""}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "creationTimestamp": ago(days=1)},
        "spec": {"providerID": f"mycloud:///{name}", "podCIDR": "10.20.0.0/24", "podCIDRs": ["10.20.0.0/24"], **spec},
        "status": {"nodeInfo": {"kubeletVersion": "v1.36.1"}},
    }


def warn(api: FakeKubernetes, about: Object, reason: str, message: str) -> None:
    """A Warning event about a stored object."""
    metadata = about["metadata"]
    stored = api.get(PODS if about["kind"] == "Pod" else DAEMON_SETS, metadata["name"], metadata["namespace"])
    involved = {"name": metadata["name"], "uid": stored["metadata"]["uid"]}
    event = {"reason": reason, "message": message, "type": "Warning", "involvedObject": involved}
    api.put(EVENTS, {"metadata": {"name": f"{metadata['name']}.1", "namespace": NAMESPACE}, **event})


def no_cloud() -> Cloud:
    raise Unreadable("no cloud config was given")


def look(
    api: FakeKubernetes,
    *,
    controllers: Sequence[str] = ("node", "service"),
    cloud: str = "mycloud",
    **further: Any,
) -> Seen:
    """What the checks see of it."""

    def daemon(*_: object) -> Daemon:
        return Daemon(cloud, tuple(controllers), PlanSettings(None, ServiceOptions(), safeguard=cast("Any", None)))

    open_kube: Callable[[], Kube] = lambda: cast("Kube", api)  # noqa: E731
    target = Target(NAMESPACE, NAME, rbac.LEASE_NAME)
    return Seen(open_kube, no_cloud, daemon, target, **{"now": lambda: NOW, "pause": lambda _: None, **further})


def run(check: Check, api: FakeKubernetes, **further: Any) -> Result:
    """What the check says of this cluster."""
    return examine([check], look(api, **further))[0]


def found(check: Check, api: FakeKubernetes, **further: Any) -> Finding:
    """The check's only finding."""
    result = run(check, api, **further)
    assert result.not_done is None, result.not_done
    [finding] = result.findings
    return finding


def passes(check: Check, api: FakeKubernetes, **further: Any) -> bool:
    """Whether the check looked, and found nothing."""
    result = run(check, api, **further)
    assert result.not_done is None, result.not_done
    assert result.findings == ()
    return True
