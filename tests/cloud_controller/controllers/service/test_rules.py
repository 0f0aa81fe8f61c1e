"""What of a Service and of a node the service controller looks at, and what not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.controllers.service.rules import (
    FINALIZER,
    preserves,
    reused_id,
    service_traits,
)
from cloud_controller.kube import Object
from tests.cloud_controller import load_balancing
from tests.cloud_controller.clouds.mycloud.services import named

PORT: dict[str, Any] = {"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080, "targetPort": 8080}


def service(annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    return load_balancing.service(annotations, PORT, **spec)


@pytest.mark.parametrize(
    "change",
    [
        {"type": "ClusterIP"},
        {"loadBalancerSourceRanges": ["10.0.0.0/8"]},
        {"ports": [PORT | {"name": "web"}]},
        {"ports": [PORT | {"protocol": "UDP"}]},
        {"ports": [PORT | {"port": 81}]},
        {"ports": [PORT | {"nodePort": 30081}]},
        {"ports": [PORT | {"targetPort": 8081}]},
        {"ports": [PORT | {"appProtocol": "http"}]},
        {"ports": [PORT, PORT | {"port": 81}]},
        {"sessionAffinity": "ClientIP"},
        {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}},
        {"loadBalancerIP": "192.0.2.1"},
        {"loadBalancerClass": "example.com/x"},
        {"externalIPs": ["192.0.2.1"]},
        {"externalTrafficPolicy": "Local"},
        {"healthCheckNodePort": 31000},
        {"ipFamilies": ["IPv4", "IPv6"]},
        {"ipFamilyPolicy": "RequireDualStack"},
    ],
)
def test_a_change_that_may_change_the_load_balancer_brings_a_visit(change: dict[str, Any]) -> None:
    assert service_traits(service()) != service_traits(service(**change))


@pytest.mark.parametrize(
    "change",
    [
        {"annotations": {"anything": "at all"}},
        {"uid": "uid-2"},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        {"finalizers": [FINALIZER]},
    ],
)
def test_so_does_any_annotation_a_new_uid_a_deletion_and_the_finalizer(change: dict[str, Any]) -> None:
    changed = service()
    changed["metadata"] |= change

    assert service_traits(service()) != service_traits(changed)


def test_a_status_that_somebody_overwrote_brings_a_visit() -> None:
    changed = service() | {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}}

    assert service_traits(service()) != service_traits(changed)


@pytest.mark.parametrize(
    "change",
    [
        {"selector": {"app": "other"}},
        {"clusterIP": "10.2.0.9"},
        {"clusterIPs": ["10.2.0.9"]},
        {"allocateLoadBalancerNodePorts": False},
        {"internalTrafficPolicy": "Local"},
        {"publishNotReadyAddresses": True},
    ],
)
def test_what_concerns_no_load_balancer_brings_none(change: dict[str, Any]) -> None:
    assert service_traits(service()) == service_traits(service(**change))


def test_labels_conditions_and_the_finalizers_of_others_bring_none_either() -> None:
    changed = copy.deepcopy(service())
    changed["metadata"] |= {"labels": {"a": "b"}, "finalizers": ["example.com/theirs"], "resourceVersion": "7"}
    changed["status"]["conditions"] = [{"type": "Theirs"}]

    assert service_traits(service()) == service_traits(changed)


def test_a_wrong_value_of_preserve_deletes_nothing() -> None:
    assert preserves(service(named(preserve_on_delete=True)), CATALOGUE)
    assert not preserves(service(), CATALOGUE)
    with pytest.raises(InvalidConfiguration, match="preserve-on-delete: 'yes'"):
        preserves(service({CATALOGUE.by_argument["preserve_on_delete"].name: "yes"}), CATALOGUE)


def test_the_id_is_known_whatever_else_is_wrong() -> None:
    wrong = {CATALOGUE.by_argument["listener_max_qps"].name: "many"}

    assert reused_id(service(named(id="lb-0a") | wrong), CATALOGUE) == "lb-0a"
    assert reused_id(service({CATALOGUE.by_argument["id"].name: "mine"}), CATALOGUE) is None
