"""The admission policy that adds readiness gates, on a real API server."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from cloud_controller import manifests, readiness_policy
from cloud_controller.kube import (
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    AlreadyExistsError,
    Kube,
    Object,
    PatchType,
    name,
)
from cloud_controller.load_balancers.readiness_gates import ANNOTATION, Mode, ReadinessGates
from tests.waiting import eventually

pytestmark = pytest.mark.control_plane

ALIAS = "service.beta.kubernetes.io/some-cloud-readiness-gate"
PREFIX = "example.com/ready-"
GATES = ReadinessGates(
    "overridden by each test",
    "service.readiness.example.com/",
    frozenset({None, "example.com/nlb"}),
    (ALIAS,),
)
ON_REQUEST = ReadinessGates()
"""Those of a cloud without classes that have gates by default."""
_numbers = itertools.count()


class Cluster:
    """A cluster with the policy, and a namespace in it.

    Its condition type is no other test's: the API server may apply the policy of the test before for another second.
    """

    def __init__(self, kube: Kube, gates: ReadinessGates, *arguments: str) -> None:
        self.kube = kube
        self.namespace = f"gates-{next(_numbers)}"
        self.gate = f"{PREFIX}{next(_numbers)}"
        kube.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        with contextlib.suppress(AlreadyExistsError):
            kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, self.namespace)
        self.objects = manifests.readiness_gates(replace(gates, condition=self.gate), Mode.INJECT, arguments)
        for each in self.objects:
            kube.create(kube.resource(each["apiVersion"], each["kind"]), each)

    def service(self, annotations: dict[str, str] | None = None, name: str = "web", **spec: Any) -> None:
        """A Service whose pods are `app: web`."""
        metadata = {"name": name, "annotations": annotations or {}}
        given = {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
        self.kube.create(SERVICES, {"metadata": metadata, "spec": given}, self.namespace)

    def seen(self) -> None:
        """Wait until the policy has seen every Service of the namespace: it sees them in their order."""
        marker = f"marker-{next(_numbers)}"
        self.service({ANNOTATION: "true"}, marker, selector={"app": marker})
        eventually(lambda: self.gate in self.gates(labels={"app": marker}), "the policy works")

    def gates(self, *gates: str, labels: dict[str, str] | None = None, namespace: str = "") -> list[str]:
        """The gates of a new pod that asks for these; `namespace`: another one than that of the Services."""
        metadata = {"name": "pod", "labels": {"app": "web", "more": "labels"} if labels is None else labels}
        spec: Object = {"containers": [{"name": "c", "image": "registry.local/web"}]}
        if gates:
            spec["readinessGates"] = [{"conditionType": each} for each in gates]
        made = self.kube.create(PODS, {"metadata": metadata, "spec": spec}, namespace or self.namespace, dry_run=True)
        found = [each["conditionType"] for each in made["spec"].get("readinessGates") or []]
        return [each for each in found if each == self.gate or not each.startswith(PREFIX)]

    def remove(self) -> None:
        for each in self.objects:
            self.kube.delete(self.kube.resource(each["apiVersion"], each["kind"]), name(each))
        for service in self.kube.list(SERVICES, self.namespace).items:
            self.kube.delete(SERVICES, name(service), self.namespace)


@pytest.fixture
def on_request(kube: Kube) -> Iterator[Cluster]:
    """A cluster in a cloud whose Services get gates by annotation only."""
    cluster = Cluster(kube, ON_REQUEST)
    yield cluster
    cluster.remove()


@pytest.fixture
def by_default(kube: Kube) -> Iterator[Cluster]:
    """A cluster in a cloud that gives gates to Services without a class, and to those of its class."""
    cluster = Cluster(kube, GATES)
    yield cluster
    cluster.remove()


def test_a_pod_gets_the_gate_if_its_service_has_the_annotation(on_request: Cluster) -> None:
    on_request.service({ANNOTATION: "true"})
    on_request.seen()

    assert on_request.gates() == [on_request.gate]
    assert on_request.gates("others.example.com/gate") == ["others.example.com/gate", on_request.gate]


@pytest.mark.parametrize(
    ("annotations", "spec"),
    [
        ({}, {}),
        ({ANNOTATION: "false"}, {}),
        ({ANNOTATION: "yes"}, {}),
        ({ALIAS: "true"}, {}),
        ({ANNOTATION: "true"}, {"type": "ClusterIP"}),
        ({ANNOTATION: "true"}, {"selector": {"app": "web", "tier": "front"}}),
        ({ANNOTATION: "true"}, {"selector": {"app": "other"}}),
        ({ANNOTATION: "true"}, {"selector": None}),
    ],
)
def test_a_pod_gets_no_gate_for_a_service_that_does_not_ask_for_it_or_does_not_select_it(
    on_request: Cluster, annotations: dict[str, str], spec: dict[str, Any]
) -> None:
    on_request.service(annotations, **spec)
    on_request.seen()

    assert on_request.gates() == []
    assert on_request.gates("others.example.com/gate") == ["others.example.com/gate"]


def test_a_pod_without_labels_and_a_pod_of_another_namespace_are_left_alone(on_request: Cluster) -> None:
    on_request.service({ANNOTATION: "true"})
    on_request.seen()

    assert on_request.gates(labels={}) == []
    assert on_request.gates(namespace="default") == []


@pytest.mark.parametrize(
    ("annotations", "load_balancer_class", "expected"),
    [
        ({}, None, True),
        ({}, "example.com/nlb", True),
        ({}, "others.example.com/nlb", False),
        ({ANNOTATION: "false"}, None, False),
        ({ALIAS: "false"}, "example.com/nlb", False),
        ({ALIAS: "true"}, "others.example.com/nlb", True),
        ({ANNOTATION: "false", ALIAS: "true"}, None, False),
    ],
)
def test_in_a_cloud_whose_classes_have_gates_by_default_an_annotation_decides_before_the_class(
    by_default: Cluster, annotations: dict[str, str], load_balancer_class: str | None, expected: bool
) -> None:
    spec = {"loadBalancerClass": load_balancer_class} if load_balancer_class else {}
    by_default.service(annotations, **spec)
    by_default.seen()

    assert by_default.gates() == ([by_default.gate] if expected else [])


def test_beside_a_controller_that_serves_services_without_a_class_those_have_no_gates_by_default(kube: Kube) -> None:
    cluster = Cluster(kube, GATES, "--require-load-balancer-class")
    cluster.service()
    cluster.service(name="ours", selector={"app": "ours"}, loadBalancerClass="example.com/nlb")
    cluster.seen()

    assert cluster.gates() == []
    assert cluster.gates(labels={"app": "ours"}) == [cluster.gate]
    cluster.remove()


def test_a_gate_that_is_there_already_is_not_added_again(by_default: Cluster) -> None:
    by_default.service()
    by_default.service(name="second")
    by_default.seen()

    assert by_default.gates() == [by_default.gate], "two Services, one gate"
    assert by_default.gates(by_default.gate) == [by_default.gate]
    both = [f"{GATES.service_prefix}web", f"{GATES.service_prefix}second"]
    assert by_default.gates(*both) == both


def test_a_service_that_is_being_deleted_adds_no_gates(on_request: Cluster) -> None:
    on_request.service({ANNOTATION: "true"})
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    on_request.kube.patch(SERVICES, "web", held, on_request.namespace, type=PatchType.MERGE)
    on_request.kube.delete(SERVICES, "web", on_request.namespace)
    on_request.seen()

    assert on_request.gates() == []
    on_request.kube.patch(
        SERVICES, "web", {"metadata": {"finalizers": None}}, on_request.namespace, type=PatchType.MERGE
    )


@pytest.mark.parametrize(
    "broken",
    [
        {"matchConditions": [{"name": "broken", "expression": "params.spec.nothing.here == 'x'"}]},
        {
            "mutations": [
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {"expression": '[JSONPatch{op: "remove", path: "/spec/nothing/here"}]'},
                }
            ]
        },
    ],
)
def test_pods_are_created_without_gates_while_the_policy_fails(on_request: Cluster, broken: dict[str, Any]) -> None:
    on_request.service({ANNOTATION: "true"})
    on_request.seen()
    policy = on_request.kube.resource("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy")
    on_request.kube.patch(policy, readiness_policy.NAME, {"spec": broken}, type=PatchType.MERGE)

    eventually(lambda: on_request.gates() == [], "the pod is created without a gate")

    assert on_request.gates("others.example.com/gate") == ["others.example.com/gate"]
