"""When objects count as ready."""

from __future__ import annotations

from typing import Any

import pytest

from local.plugins.kubernetes.conditions import Progress, judge_endpoints, judge_of, needs_endpoints
from local.plugins.kubernetes.wait import pod_problems

Obj = dict[str, Any]


def judge(api_version: str, kind: str, obj: Obj) -> Progress:
    judged = judge_of(api_version, kind)
    assert judged is not None
    return judged(obj)


def deployment(generation: int = 2, spec: Obj | None = None, **status: Any) -> Progress:
    obj = {
        "metadata": {"generation": generation},
        "spec": {"replicas": 2, **(spec or {})},
        "status": {"observedGeneration": 2, **status},
    }
    return judge("apps/v1", "Deployment", obj)


DONE: Obj = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


def test_a_deployment_is_ready_when_all_replicas_are_new_and_available() -> None:
    assert deployment(**DONE).ready


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (deployment(generation=3, **DONE), "not observed"),
        (deployment(updatedReplicas=1), "1 of 2 replicas updated"),
        (deployment(updatedReplicas=2, replicas=3), "1 old replicas"),
        (deployment(updatedReplicas=2, replicas=2, availableReplicas=1), "1 of 2 replicas available"),
        (deployment(), "0 of 2 replicas updated"),
        (
            deployment(conditions=[{"type": "ReplicaFailure", "status": "True", "message": "quota"}]),
            "0 of 2 replicas updated: quota",
        ),
    ],
)
def test_a_deployments_progress_names_what_is_missing(progress: Progress, said: str) -> None:
    assert not progress.ready
    assert not progress.failed
    assert said in progress.message


def test_a_deployment_over_its_deadline_has_failed() -> None:
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too late"}

    assert deployment(conditions=[late]) == Progress(False, "too late", failed=True)


def test_a_deployment_without_replicas_or_paused_is_ready() -> None:
    assert deployment(spec={"replicas": 0}).ready
    assert deployment(spec={"paused": True}).ready


def daemon_set(generation: int = 1, strategy: str = "RollingUpdate", **status: Any) -> Progress:
    obj = {
        "metadata": {"generation": generation},
        "spec": {"updateStrategy": {"type": strategy}},
        "status": {"observedGeneration": 1, "desiredNumberScheduled": 2, **status},
    }
    return judge("apps/v1", "DaemonSet", obj)


def test_a_daemon_set_is_ready_when_every_node_runs_the_new_pod() -> None:
    assert daemon_set(updatedNumberScheduled=2, numberAvailable=2).ready
    assert not daemon_set(updatedNumberScheduled=1, numberAvailable=2).ready
    assert not daemon_set(updatedNumberScheduled=2, numberAvailable=1).ready
    assert not daemon_set(generation=2, updatedNumberScheduled=2, numberAvailable=2).ready
    assert daemon_set(strategy="OnDelete", numberAvailable=2).ready


def test_a_stateful_set_is_ready_when_its_replicas_are_of_one_revision() -> None:
    obj: Obj = {
        "metadata": {"generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "readyReplicas": 1, "updateRevision": "b", "currentRevision": "a"},
    }

    assert not judge("apps/v1", "StatefulSet", obj).ready
    obj["status"]["currentRevision"] = "b"
    assert judge("apps/v1", "StatefulSet", obj).ready


def test_a_load_balancer_service_is_ready_with_an_address() -> None:
    balanced: Obj = {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {}}}

    assert judge("v1", "Service", balanced) == Progress(False, "no load balancer address yet")
    assert judge("v1", "Service", balanced | {"status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}}}).ready
    assert judge("v1", "Service", {"spec": {"type": "ClusterIP"}}).ready


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({"selector": {"a": "b"}, "clusterIP": "10.0.0.1"}, True),
        ({"selector": {"a": "b"}, "clusterIP": "None"}, False),
        ({"clusterIP": "10.0.0.1"}, False),
        ({"type": "ExternalName", "selector": {"a": "b"}}, False),
    ],
)
def test_services_with_selector_and_cluster_ip_need_a_pod(spec: Obj, needed: bool) -> None:
    assert needs_endpoints({"spec": spec}) is needed


@pytest.mark.parametrize(
    ("endpoints", "ready"),
    [
        ([{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}], True),
        ([{"addresses": ["10.0.0.1"]}], True),
        ([{"addresses": ["10.0.0.1"], "conditions": {"ready": False}}], False),
        (None, False),
    ],
)
def test_a_service_is_ready_with_one_ready_endpoint(endpoints: Any, ready: bool) -> None:
    assert judge_endpoints([{"endpoints": None}, {"endpoints": endpoints}]).ready is ready


@pytest.mark.parametrize(
    ("api_version", "kind", "ready", "failed"),
    [
        ("v1", "Namespace", {"phase": "Active"}, None),
        ("v1", "PersistentVolumeClaim", {"phase": "Bound"}, {"phase": "Lost"}),
        ("v1", "Pod", {"phase": "Succeeded"}, {"phase": "Failed"}),
        ("v1", "Pod", {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, None),
        (
            "batch/v1",
            "Job",
            {"conditions": [{"type": "Complete", "status": "True"}]},
            {"conditions": [{"type": "Failed", "status": "True", "message": "x"}]},
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            {"conditions": [{"type": "Established", "status": "True"}]},
            {"conditions": [{"type": "NamesAccepted", "status": "False", "message": "taken"}]},
        ),
    ],
)
def test_other_kinds_have_their_own_conditions(api_version: str, kind: str, ready: Obj, failed: Obj | None) -> None:
    assert judge(api_version, kind, {"status": ready}).ready
    waiting = judge(api_version, kind, {})
    assert (waiting.ready, waiting.failed) == (False, False)
    if failed is not None:
        assert judge(api_version, kind, {"status": failed}).failed


def test_kinds_without_readiness_are_not_awaited() -> None:
    assert judge_of("v1", "ConfigMap") is None
    assert judge_of("example.com/v1", "Deployment") is None


def test_a_pods_problems_explain_why_it_is_not_ready() -> None:
    pod = {
        "metadata": {"name": "a"},
        "status": {
            "containerStatuses": [
                {"name": "web", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}},
                {"name": "app", "state": {}, "lastState": {"terminated": {"exitCode": 2}}},
                {"name": "new", "state": {"waiting": {"reason": "ContainerCreating"}}},
            ],
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no nodes"}
            ],
        },
    }

    assert pod_problems(pod) == [
        "pod a: web: ErrImagePull (no such image)",
        "pod a: app: exited with 2",
        "pod a: not scheduled: Unschedulable (no nodes)",
    ]
