"""The Kubernetes provider against a real API server. Nothing runs pods here: tests act as the kubelet and the cloud."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct

from cloud_controller.kube import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    EventType,
    Kube,
    NotFoundError,
    Object,
    PatchType,
    Resource,
)
from local.control_plane.control_plane import ControlPlane
from local.plugins.kubernetes import KubernetesProvider
from local.plugins.kubernetes.settings import PATCH_FORCE_VARIABLE
from local.plugins.provider import (
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    PartialFailure,
    ProviderError,
    UpdateRequest,
)
from local.plugins.values import UNKNOWN, PropertyMap, Secret
from local.plugins.wire import from_struct
from tests.waiting import eventually

pytestmark = pytest.mark.control_plane

PATIENCE = 120.0
"""Seconds for what the control plane does."""
CONFIG_MAP = "core/v1:ConfigMap"
SERVICE = "core/v1:Service"
DEPLOYMENT = "apps/v1:Deployment"


@dataclass
class Managed:
    """A resource as the engine keeps it."""

    urn: str
    id: str
    inputs: PropertyMap
    outputs: PropertyMap


class Lines:
    """What the provider reports; a test may wait for a line."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._news = threading.Condition()

    def append(self, line: str) -> None:
        with self._news:
            self._said.append(line)
            self._news.notify_all()

    def await_line(self, part: str) -> None:
        with self._news:
            there = self._news.wait_for(lambda: any(part in line for line in self._said), PATIENCE)
            assert there, f"nobody said {part!r}: {self._said}"


@dataclass
class Cluster:
    """An API server, a provider for it, and the provider's calls in the engine's order."""

    kubeconfig: str
    provider: KubernetesProvider
    kube: Kube
    lines: Lines = field(default_factory=Lines)

    def create(self, type: str, name: str, news: PropertyMap, timeout: float = PATIENCE) -> Managed:
        urn = f"urn:pulumi:dev::sample::kubernetes:{type}::{name}"
        checked = self.provider.check(urn, {}, news)
        assert checked.failures == ()
        made = self.make(urn, checked.inputs, timeout=timeout)
        return Managed(urn, made.id, checked.inputs, made.outputs)

    def preview(self, type: str, name: str, news: PropertyMap) -> PropertyMap:
        urn = f"urn:pulumi:dev::sample::kubernetes:{type}::{name}"
        return self.make(urn, self.provider.check(urn, {}, news).inputs, preview=True).outputs

    def make(self, urn: str, inputs: PropertyMap, *, preview: bool = False, timeout: float = PATIENCE) -> CreateResult:
        """The bare creation, of checked inputs."""
        return self.provider.create(
            CreateRequest(urn=urn, inputs=inputs, preview=preview, timeout=timeout, report=self.lines.append)
        )

    def diff(self, managed: Managed, news: PropertyMap) -> DiffResult:
        checked = self.provider.check(managed.urn, managed.inputs, news)
        return self.provider.diff(
            DiffRequest(
                urn=managed.urn,
                id=managed.id,
                old_inputs=managed.inputs,
                old_outputs=managed.outputs,
                news=checked.inputs,
                ignore_changes=[],
            )
        )

    def update(self, managed: Managed, news: PropertyMap, preview: bool = False, ignore: tuple[str, ...] = ()) -> Any:
        checked = self.provider.check(managed.urn, managed.inputs, news)
        outputs = self.provider.update(
            UpdateRequest(
                urn=managed.urn,
                id=managed.id,
                old_inputs=managed.inputs,
                old_outputs=managed.outputs,
                news=checked.inputs,
                ignore_changes=ignore,
                preview=preview,
                timeout=PATIENCE,
                report=self.lines.append,
            )
        )
        return Managed(managed.urn, managed.id, checked.inputs, outputs)

    def refresh(self, managed: Managed) -> Managed | None:
        found = self.provider.read(managed.urn, managed.id, managed.inputs, managed.outputs)
        if found.id is None:
            return None
        assert found.inputs is not None
        return Managed(managed.urn, found.id, found.inputs, found.outputs)

    def delete(self, managed: Managed, timeout: float = PATIENCE) -> None:
        self.provider.delete(
            DeleteRequest(
                urn=managed.urn,
                id=managed.id,
                inputs=managed.inputs,
                outputs=managed.outputs,
                timeout=timeout,
                report=self.lines.append,
            )
        )


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    kubeconfig = control_plane.kubeconfig("admin", ["system:masters"], timedelta(hours=1))
    provider = KubernetesProvider({"kubeconfig": Secret(kubeconfig)})
    kube = Kube.from_kubeconfig(kubeconfig)
    yield Cluster(kubeconfig, provider, kube)
    provider.close()
    kube.close()


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    """A namespace of the test's own; it ends with the control plane."""
    name = f"test-{uuid4().hex[:12]}"
    cluster.kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    accounts = cluster.kube.resource("v1", "ServiceAccount")
    # Without one the API server accepts no pod; a controller makes it, some time after the namespace.
    eventually(lambda: cluster.kube.list(accounts, name).items, "the namespace has a ServiceAccount", PATIENCE)
    return name


@pytest.fixture
def kubelet(cluster: Cluster, namespace: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """Makes every new pod of the namespace ready; with a phase as parameter, it ends in that phase."""
    with running_kubelet(cluster, namespace, getattr(request, "param", "Running")):
        yield


@contextmanager
def running_kubelet(cluster: Cluster, namespace: str, phase: str = "Running") -> Iterator[None]:
    """Makes every present and future pod of the namespace ready."""
    listed = cluster.kube.list(PODS, namespace)
    watch = cluster.kube.watch(PODS, namespace, resource_version=listed.resource_version)

    def make_ready(pod: Object) -> None:
        status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}
        name = pod["metadata"]["name"]
        # It may be deleted again.
        with suppress(NotFoundError):
            cluster.kube.patch(PODS, name, {"status": status}, namespace, type=PatchType.MERGE, subresource="status")

    def make_all_ready() -> None:
        for pod in listed.items:
            make_ready(pod)
        for event in watch:
            if event.type is EventType.ADDED:
                make_ready(event.object)

    thread = threading.Thread(target=make_all_ready, daemon=True)
    thread.start()
    yield
    watch.close()
    thread.join()


@dataclass
class Clock:
    """The monotonic clock of the waits for an object; a test may advance it."""

    passed: float = 0

    def monotonic(self) -> float:
        return time.monotonic() + self.passed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock for the waits, which then poll often."""
    made = Clock()
    monkeypatch.setattr("local.plugins.kubernetes.wait.time", made)
    monkeypatch.setattr("local.plugins.kubernetes.wait.LOOK_SECONDS", 0.5)
    return made


def config_map(namespace: str, data: PropertyMap, **metadata: Any) -> PropertyMap:
    return {"metadata": {"namespace": namespace, **metadata}, "data": data}


def deployment(namespace: str, image: str = "registry.local/web:1", **spec: Any) -> PropertyMap:
    labels = {"app": "web"}
    container = {"name": "web", "image": image, "resources": {"limits": {"cpu": "1000m"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def service(namespace: str, **spec: Any) -> PropertyMap:
    return {"metadata": {"name": "web", "namespace": namespace}, "spec": {"ports": [{"port": 80}], **spec}}


def job(namespace: str) -> PropertyMap:
    pod = {"restartPolicy": "Never", "containers": [{"name": "once", "image": "registry.local/once:1"}]}
    return {
        "metadata": {"name": "once", "namespace": namespace},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


def start(action: Callable[[], Any]) -> Any:
    """The action in another thread; its Future."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(action)
    pool.shutdown(wait=False)
    return future


# Create, read, update, delete


def test_an_object_is_made_read_changed_and_deleted(cluster: Cluster, namespace: str) -> None:
    role_inputs = {"metadata": {"name": "a", "namespace": namespace}, "rules": []}
    made = cluster.create("rbac.authorization.k8s.io/v1:Role", "role", role_inputs)
    news = role_inputs | {"rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]}

    difference = cluster.diff(made, news)
    changed = cluster.update(made, news)

    assert made.id == f"{namespace}/a"
    assert made.outputs["__fieldManager"].startswith("pulumi-kubernetes-")
    assert (difference.changed, difference.replaces) == (True, ())
    assert changed.outputs["rules"] == news["rules"]
    assert cluster.refresh(changed) == changed
    assert cluster.diff(changed, news).changed is False
    cluster.delete(changed)
    assert cluster.refresh(changed) is None
    cluster.delete(changed)


def settled(outputs: PropertyMap) -> PropertyMap:
    """Outputs without what differs from run to run."""
    volatile = {"creationTimestamp", "managedFields", "resourceVersion", "uid"}
    result = {key: value for key, value in outputs.items() if key != "__fieldManager"}
    result["metadata"] = {key: value for key, value in outputs["metadata"].items() if key not in volatile}
    if "spec" in outputs:
        addresses = {"clusterIP", "clusterIPs"}
        result["spec"] = {key: value for key, value in outputs["spec"].items() if key not in addresses}
        result["spec"]["ports"] = [port | {"nodePort": "any"} for port in outputs["spec"]["ports"]]
    return result


def test_outputs_are_those_of_the_clis_provider(cluster: Cluster) -> None:
    recording = Path(__file__).parent / "recordings" / "sample.jsonl"
    creations = [
        call
        for call in map(json.loads, recording.read_text().splitlines())
        if call["run"] == "03-up"
        and call["method"] == "ResourceProvider/Create"
        and ":kubernetes:" in call["request"]["urn"]
    ]
    assert len(creations) == 3

    for call in creations:
        request, response = call["request"], call["response"]
        inputs = from_struct(ParseDict(request["properties"], Struct()))
        made = cluster.make(request["urn"], inputs)
        expected = from_struct(ParseDict(response["properties"], Struct()))
        assert made.id == response["id"]
        assert made.outputs.keys() == expected.keys()
        assert settled(made.outputs) == settled(expected)


def test_a_field_that_is_no_longer_declared_is_removed(cluster: Cluster, namespace: str) -> None:
    both, one = (config_map(namespace, {}, name="a", labels=labels) for labels in ({"a": "1", "b": "2"}, {"a": "1"}))
    made = cluster.create(CONFIG_MAP, "a", both)

    changed = cluster.update(made, one)

    assert changed.outputs["metadata"]["labels"] == {"a": "1"}


def test_a_preview_creates_nothing_and_shows_the_servers_dry_run(cluster: Cluster, namespace: str) -> None:
    outputs = cluster.preview(SERVICE, "web", service(namespace, type="LoadBalancer"))

    assert outputs["spec"]["sessionAffinity"] == "None"
    assert "status" not in outputs
    with pytest.raises(NotFoundError):
        cluster.kube.get(SERVICES, "web", namespace)


def test_a_preview_of_a_change_changes_nothing(cluster: Cluster, namespace: str) -> None:
    made = cluster.create(SERVICE, "web", service(namespace))

    shown = cluster.update(made, service(namespace, ports=[{"port": 81}]), preview=True)

    assert shown.outputs["spec"]["ports"][0]["port"] == 81
    assert cluster.kube.get(SERVICES, "web", namespace)["spec"]["ports"][0]["port"] == 80


@pytest.mark.parametrize(
    ("type", "news"),
    [
        (CONFIG_MAP, {"metadata": {"namespace": "not-there-yet"}}),
        ("example.com/v1:Widget", {"metadata": {"name": "a"}, "spec": {}}),
    ],
)
def test_a_preview_works_without_a_namespace_or_definition_that_the_run_will_create(
    cluster: Cluster, type: str, news: PropertyMap
) -> None:
    outputs = cluster.preview(type, "a", news)

    assert outputs["metadata"].items() >= news["metadata"].items()


def test_a_preview_with_unknown_values_shows_the_inputs(cluster: Cluster, namespace: str) -> None:
    outputs = cluster.preview(CONFIG_MAP, "a", config_map(namespace, {"a": UNKNOWN}))

    assert outputs["data"] == {"a": UNKNOWN}


def test_a_misspelt_field_is_named_in_the_preview_already(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(ProviderError, match=r"Deployment .*/web: .*spec\.replica: field not declared"):
        cluster.preview(DEPLOYMENT, "web", deployment(namespace, replica=1))


def test_an_invalid_value_is_named_with_its_field(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(ProviderError, match=r"Service .*/web: spec\.ports\[0\]\.port: "):
        cluster.create(SERVICE, "web", service(namespace, ports=[{"port": 70000}]))


def test_a_foreign_object_of_the_same_name_is_not_touched(cluster: Cluster, namespace: str) -> None:
    cluster.kube.create(
        CONFIG_MAPS,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"whose": "theirs"}},
        namespace,
    )

    for attempt in (cluster.preview, cluster.create):
        with pytest.raises(ProviderError, match="already exists"):
            attempt(CONFIG_MAP, "a", config_map(namespace, {"whose": "ours"}, name="a"))

    assert cluster.kube.get(CONFIG_MAPS, "a", namespace)["data"] == {"whose": "theirs"}


def test_an_object_of_an_interrupted_run_is_adopted(cluster: Cluster, namespace: str) -> None:
    lost = cluster.create(CONFIG_MAP, "a", config_map(namespace, {"run": "1"}, name="a"))

    found = cluster.create(CONFIG_MAP, "a", config_map(namespace, {"run": "2"}, name="a"))

    assert found.outputs["metadata"]["uid"] == lost.outputs["metadata"]["uid"]
    assert found.outputs["data"] == {"run": "2"}


def test_the_data_of_a_secret_is_stored_and_kept_secret(cluster: Cluster, namespace: str) -> None:
    made = cluster.create(
        "core/v1:Secret", "a", {"metadata": {"namespace": namespace, "name": "a"}, "stringData": Secret({"k": "hush"})}
    )

    assert made.outputs["data"] == Secret({"k": "aHVzaA=="})
    assert cluster.kube.get(SECRETS, "a", namespace)["data"] == {"k": "aHVzaA=="}
    assert cluster.refresh(made) == made


# Drift, and foreign fields


def test_drift_shows_in_inputs_after_a_refresh_and_is_corrected(cluster: Cluster, namespace: str) -> None:
    news = service(namespace, sessionAffinity="None")
    made = cluster.create(SERVICE, "web", news)
    cluster.kube.patch(SERVICES, "web", {"spec": {"sessionAffinity": "ClientIP"}}, namespace, type=PatchType.MERGE)

    drifted = cluster.refresh(made)
    assert drifted is not None
    assert list(cluster.diff(drifted, news).detailed) == ["spec.sessionAffinity"]

    with pytest.raises(ProviderError, match=r'spec.sessionAffinity is managed by ".+"') as refused:
        cluster.update(drifted, news)
    for way_out in ('ignore_changes=["spec.sessionAffinity"]', 'pulumi.com/patchForce: "true"', PATCH_FORCE_VARIABLE):
        assert way_out in str(refused.value)
    forced = news | {"metadata": news["metadata"] | {"annotations": {"pulumi.com/patchForce": "true"}}}
    assert cluster.update(drifted, forced).outputs["spec"]["sessionAffinity"] == "None"


@pytest.mark.usefixtures("kubelet")
def test_a_value_normalised_by_the_server_is_not_drift(cluster: Cluster, namespace: str) -> None:
    made = cluster.create(DEPLOYMENT, "web", deployment(namespace))

    found = cluster.refresh(made)

    assert found is not None
    assert found.inputs == made.inputs


@pytest.mark.usefixtures("kubelet")
def test_an_ignored_field_keeps_the_value_of_its_other_manager(cluster: Cluster, namespace: str) -> None:
    made = cluster.create(DEPLOYMENT, "web", deployment(namespace, replicas=1))
    cluster.kube.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 2}}, namespace, type=PatchType.MERGE)

    changed = cluster.update(
        made, deployment(namespace, replicas=1, minReadySeconds=0, revisionHistoryLimit=3), ignore=("spec.replicas",)
    )

    assert changed.outputs["spec"]["replicas"] == 2
    assert changed.outputs["spec"]["revisionHistoryLimit"] == 3


# Awaits


def test_a_deployment_is_awaited(cluster: Cluster, namespace: str) -> None:
    creation = start(lambda: cluster.create(DEPLOYMENT, "web", deployment(namespace, replicas=2)))
    cluster.lines.await_line("of 2 replicas")
    with running_kubelet(cluster, namespace):
        made = creation.result(PATIENCE)

    assert made.outputs["status"]["availableReplicas"] == 2


@pytest.mark.usefixtures("kubelet")
def test_a_change_of_a_deployment_is_awaited(cluster: Cluster, namespace: str) -> None:
    made = cluster.create(DEPLOYMENT, "web", deployment(namespace))

    changed = cluster.update(made, deployment(namespace, image="registry.local/web:2"))

    status = changed.outputs["status"]
    assert status["observedGeneration"] == changed.outputs["metadata"]["generation"] == 2
    assert status["updatedReplicas"] == status["replicas"] == status["availableReplicas"] == 1


@pytest.mark.usefixtures("kubelet")
def test_a_daemon_set_is_awaited(cluster: Cluster, namespace: str) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-of-the-daemon-set"}}
    cluster.kube.create(NODES, node)
    news = deployment(namespace)
    news["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    try:
        made = cluster.create("apps/v1:DaemonSet", "web", news)
    finally:
        cluster.kube.delete(NODES, "node-of-the-daemon-set")

    assert made.outputs["status"]["numberAvailable"] == 1


@pytest.mark.parametrize("kubelet", ["Succeeded"], indirect=True)
@pytest.mark.usefixtures("kubelet")
def test_a_job_is_awaited_until_it_completes(cluster: Cluster, namespace: str) -> None:
    made = cluster.create("batch/v1:Job", "once", job(namespace))

    assert made.outputs["status"]["succeeded"] == 1


@pytest.mark.parametrize("kubelet", ["Failed"], indirect=True)
@pytest.mark.usefixtures("kubelet")
def test_a_failing_job_fails_at_once_with_its_own_message(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(PartialFailure, match="backoff limit"):
        cluster.create("batch/v1:Job", "once", job(namespace), timeout=600)


@pytest.mark.parametrize("kubelet", ["Succeeded"], indirect=True)
@pytest.mark.usefixtures("kubelet")
def test_a_job_that_completed_since_the_state_was_written_is_not_run_again(cluster: Cluster, namespace: str) -> None:
    asking = job(namespace)
    asking["metadata"]["annotations"] = {"pulumi.com/replaceUnready": "true"}
    made = cluster.create("batch/v1:Job", "once", asking)

    assert not cluster.diff(Managed(made.urn, made.id, made.inputs, outputs={}), asking).changed


def test_an_incomplete_job_is_replaced_on_request(cluster: Cluster, namespace: str) -> None:
    asking = job(namespace)
    asking["metadata"]["annotations"] = {"pulumi.com/replaceUnready": "true", "pulumi.com/skipAwait": "true"}
    made = cluster.create("batch/v1:Job", "once", asking)

    found = cluster.diff(made, asking)

    assert found.replaces == ("status",) and found.delete_before_replace


@pytest.mark.usefixtures("kubelet")
def test_a_pod_is_awaited(cluster: Cluster, namespace: str) -> None:
    spec = {"containers": [{"name": "web", "image": "registry.local/web:1"}]}

    made = cluster.create("core/v1:Pod", "web", {"metadata": {"name": "web", "namespace": namespace}, "spec": spec})

    assert made.outputs["status"]["phase"] == "Running"


def test_an_object_is_awaited_until_what_its_annotation_names_holds(cluster: Cluster, namespace: str) -> None:
    annotations = {"pulumi.com/waitFor": "jsonpath={.data.token}"}
    news = config_map(namespace, {"a": "1"}, name="token", annotations=annotations)
    making = start(lambda: cluster.create(CONFIG_MAP, "token", news))
    cluster.lines.await_line("waiting for {.data.token}")
    cluster.kube.patch(CONFIG_MAPS, "token", {"data": {"token": "t"}}, namespace, type=PatchType.MERGE)

    assert making.result(PATIENCE).outputs["data"]["token"] == "t"


@pytest.mark.usefixtures("kubelet")
def test_the_wait_for_annotation_replaces_the_rule_of_the_kind(cluster: Cluster, namespace: str) -> None:
    news = service(namespace, type="LoadBalancer", selector={"app": "web"})
    news["metadata"]["annotations"] = {"pulumi.com/waitFor": "jsonpath={.spec.clusterIP}"}

    made = cluster.create(SERVICE, "web", news)

    assert "ingress" not in made.outputs["status"]["loadBalancer"]


def test_a_deployment_that_does_not_become_ready_is_kept_with_the_reason(
    cluster: Cluster, namespace: str, clock: Clock
) -> None:
    creation = start(lambda: cluster.create(DEPLOYMENT, "web", deployment(namespace), timeout=600))
    cluster.lines.await_line("not scheduled")
    clock.passed = 600
    with pytest.raises(PartialFailure) as caught:
        creation.result(PATIENCE)

    failure = caught.value
    assert re.search(r"Deployment .*/web is not ready: .*pod web-.*not scheduled: Unschedulable", str(failure))
    assert failure.id == f"{namespace}/web"
    assert failure.outputs["metadata"]["uid"]


def test_the_skip_await_annotation_prevents_waiting(cluster: Cluster, namespace: str) -> None:
    news = deployment(namespace)
    news["metadata"]["annotations"] = {"pulumi.com/skipAwait": "true"}

    made = cluster.create(DEPLOYMENT, "web", news)

    assert made.outputs.get("status", {}).get("availableReplicas", 0) == 0


def test_an_annotation_may_set_the_time_to_wait(cluster: Cluster, namespace: str) -> None:
    news = deployment(namespace)
    news["metadata"]["annotations"] = {"pulumi.com/timeoutSeconds": "1"}

    with pytest.raises(PartialFailure):
        cluster.create(DEPLOYMENT, "web", news, timeout=0)


def test_a_load_balancer_service_is_awaited_until_it_has_address_and_pod(cluster: Cluster, namespace: str) -> None:
    creation = start(
        lambda: cluster.create(SERVICE, "web", service(namespace, type="LoadBalancer", selector={"app": "web"}))
    )
    cluster.lines.await_line("no load balancer address yet")

    ingress = {"status": {"loadBalancer": {"ingress": [{"ip": "127.1.2.3"}]}}}
    cluster.kube.patch(SERVICES, "web", ingress, namespace, type=PatchType.MERGE, subresource="status")
    cluster.lines.await_line("no ready pod matches")
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}],
        "ports": [{"port": 80}],
    }
    cluster.kube.create(ENDPOINT_SLICES, endpoints, namespace)

    made = creation.result(PATIENCE)
    assert made.outputs["status"]["loadBalancer"]["ingress"][0]["ip"] == "127.1.2.3"


def test_a_wait_reports_the_warnings_of_the_object(cluster: Cluster, namespace: str, clock: Clock) -> None:
    creation = start(lambda: cluster.create(SERVICE, "web", service(namespace, type="LoadBalancer"), timeout=600))
    cluster.lines.await_line("no load balancer address yet")
    live = cluster.kube.get(SERVICES, "web", namespace)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1"},
        "involvedObject": {"kind": "Service", "name": "web", "namespace": namespace, "uid": live["metadata"]["uid"]},
        "type": "Warning",
        "reason": "SyncLoadBalancerFailed",
        "message": "no such annotation",
    }
    cluster.kube.create(EVENTS, event, namespace)

    cluster.lines.await_line("SyncLoadBalancerFailed: no such annotation")
    clock.passed = 600
    with pytest.raises(PartialFailure, match="no load balancer address yet; SyncLoadBalancerFailed"):
        creation.result(PATIENCE)


@pytest.mark.parametrize(("mode", "awaited"), [("WaitForFirstConsumer", False), ("Immediate", True)])
def test_a_volume_claim_is_awaited_unless_a_pod_must_use_it_first(
    cluster: Cluster, namespace: str, mode: str, awaited: bool
) -> None:
    class_name = f"class-{mode.lower()}"
    storage_class = {"metadata": {"name": class_name}, "provisioner": "example.com/none", "volumeBindingMode": mode}
    cluster.create("storage.k8s.io/v1:StorageClass", "class", storage_class)
    claim = {
        "metadata": {"name": "claim", "namespace": namespace},
        "spec": {
            "storageClassName": class_name,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }

    with pytest.raises(PartialFailure, match="phase Pending") if awaited else nullcontext():
        cluster.create("core/v1:PersistentVolumeClaim", "claim", claim, timeout=1)


def test_a_custom_resource_follows_its_definition(cluster: Cluster) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    crd = cluster.create("apiextensions.k8s.io/v1:CustomResourceDefinition", "gadgets", definition)

    # In the foreground a deletion would wait until the garbage collector has noticed the new kind: half a minute.
    annotations = {"pulumi.com/deletionPropagationPolicy": "background"}
    gadget = cluster.create(
        "example.com/v1:Gadget", "g", {"metadata": {"name": "g", "annotations": annotations}, "spec": {"a": 1}}
    )

    assert gadget.id == "default/g"
    cluster.delete(gadget)
    cluster.delete(crd)


# Deletion


def test_a_foreign_object_of_the_same_name_survives_a_deletion(cluster: Cluster, namespace: str) -> None:
    news = config_map(namespace, {"whose": "ours"}, name="a")
    made = cluster.create(CONFIG_MAP, "a", news)
    cluster.kube.delete(CONFIG_MAPS, "a", namespace)
    cluster.kube.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, namespace)

    cluster.delete(made)

    assert "data" not in cluster.kube.get(CONFIG_MAPS, "a", namespace)


def test_a_blocked_deletion_names_the_finalizer(cluster: Cluster, namespace: str) -> None:
    held = config_map(namespace, {}, name="a", finalizers=["example.com/hold"])
    made = cluster.create(CONFIG_MAP, "a", held)

    with pytest.raises(ProviderError, match=r"not deleted in time: finalizers hold it: .*example\.com/hold"):
        cluster.delete(made, timeout=1)

    cluster.kube.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, namespace, type=PatchType.MERGE)


def test_a_creation_waits_until_the_old_object_of_its_name_is_gone(cluster: Cluster, namespace: str) -> None:
    news = config_map(namespace, {"run": "1"}, name="a", finalizers=["example.com/hold"])
    old = cluster.create(CONFIG_MAP, "a", news)
    cluster.kube.delete(CONFIG_MAPS, "a", namespace)

    creation = start(lambda: cluster.create(CONFIG_MAP, "a", config_map(namespace, {"run": "2"}, name="a")))
    cluster.lines.await_line("waiting for the deletion of an object with this name")
    cluster.kube.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, namespace, type=PatchType.MERGE)

    made = creation.result(PATIENCE)
    assert made.outputs["metadata"]["uid"] != old.outputs["metadata"]["uid"]
    assert made.outputs["data"] == {"run": "2"}


@pytest.mark.parametrize("affinity", ["None", "ClientIP"], ids=["whose fields are another's", "whose fields are ours"])
def test_an_update_recreates_an_object_that_is_being_deleted(cluster: Cluster, namespace: str, affinity: str) -> None:
    old = cluster.create(SERVICE, "web", service(namespace, sessionAffinity="None"))
    others = {"metadata": {"finalizers": ["example.com/hold"]}, "spec": {"sessionAffinity": "ClientIP"}}
    cluster.kube.patch(SERVICES, "web", others, namespace, type=PatchType.MERGE)
    cluster.kube.delete(SERVICES, "web", namespace)
    news = service(namespace, sessionAffinity=affinity)

    assert cluster.update(old, news, preview=True).outputs
    update = start(lambda: cluster.update(old, news))
    cluster.lines.await_line("waiting for the deletion of an object with this name")
    cluster.kube.patch(SERVICES, "web", {"metadata": {"finalizers": None}}, namespace, type=PatchType.MERGE)

    made = update.result(PATIENCE)
    assert made.outputs["metadata"]["uid"] != old.outputs["metadata"]["uid"]
    assert made.outputs["spec"]["sessionAffinity"] == affinity


def test_a_deletion_spares_an_object_that_was_recreated_meanwhile(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cluster.create(CONFIG_MAP, "a", config_map(namespace, {"run": "1"}, name="a"))
    delete = Kube.delete

    def too_late(kube: Kube, resource: Resource, name: str, space: str | None = None, **more: Any) -> Any:
        delete(cluster.kube, CONFIG_MAPS, "a", namespace)
        anew = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}}
        cluster.kube.create(CONFIG_MAPS, anew, namespace)
        return delete(kube, resource, name, space, **more)

    monkeypatch.setattr(Kube, "delete", too_late)
    cluster.delete(made)

    assert "data" not in cluster.kube.get(CONFIG_MAPS, "a", namespace)
    cluster.lines.await_line("already gone; another object with this name exists and stays")


def test_an_object_with_a_random_name_from_an_interrupted_run_is_recreated_if_it_is_being_deleted(
    cluster: Cluster, namespace: str
) -> None:
    old = cluster.create(CONFIG_MAP, "a", config_map(namespace, {"run": "1"}, finalizers=["example.com/hold"]))
    name = old.inputs["metadata"]["name"]
    cluster.kube.delete(CONFIG_MAPS, name, namespace)

    # Resumed with the same inputs, and so with the same name.
    creation = start(lambda: cluster.make(old.urn, old.inputs))
    cluster.lines.await_line("waiting for the deletion of an object with this name")
    cluster.kube.patch(CONFIG_MAPS, name, {"metadata": {"finalizers": None}}, namespace, type=PatchType.MERGE)

    made = creation.result(PATIENCE)
    assert made.outputs["metadata"]["uid"] != old.outputs["metadata"]["uid"]


def test_an_interrupted_run_stops_waiting_and_keeps_its_objects(cluster: Cluster, namespace: str) -> None:
    creation = start(lambda: cluster.create(DEPLOYMENT, "web", deployment(namespace), timeout=300))
    cluster.lines.await_line("replicas")

    cluster.provider.interrupt()

    with pytest.raises(PartialFailure, match="interrupted while waiting") as raised:
        creation.result(PATIENCE)
    assert raised.value.id == f"{namespace}/web"


def test_closing_the_provider_ends_its_waits(cluster: Cluster, namespace: str) -> None:
    creation = start(lambda: cluster.create(DEPLOYMENT, "web", deployment(namespace), timeout=300))
    cluster.lines.await_line("replicas")

    cluster.provider.close()

    with pytest.raises(ProviderError):
        creation.result(PATIENCE)


def test_many_objects_are_made_at_once(cluster: Cluster, namespace: str) -> None:
    with ThreadPoolExecutor(16) as pool:
        made = list(
            pool.map(
                lambda index: cluster.create(CONFIG_MAP, f"a-{index}", config_map(namespace, {"n": str(index)})),
                range(48),
            )
        )
        assert len({one.id for one in made}) == 48
        list(pool.map(cluster.delete, made))

    assert [one for one in made if cluster.refresh(one)] == []
