"""What a Service comes to as a load balancer of mycloud."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.mycloud.annotations import CATALOGUE, INGRESS_NODE
from cloud_controller.clouds.mycloud.build import NO_INGRESS_NODES, build
from cloud_controller.kube import Object
from cloud_controller.load_balancer import Built, HealthCheck, Member


def web(annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"namespace": "default", "name": "web", "uid": "uid-1", "annotations": annotations or {}},
        "spec": {"type": "LoadBalancer", "ports": [port(80)]} | spec,
    }


def port(number: int, protocol: str = "TCP", **more: Any) -> dict[str, Any]:
    return {"protocol": protocol, "port": number, "nodePort": 30000 + number} | more


def node(number: int, *, ingress: str | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"name": f"n{number}", "annotations": {} if ingress is None else {INGRESS_NODE: ingress}},
        "spec": {"providerID": f"mycloud://local/zone-a/i-{number:012x}"} | spec,
        "status": {
            "addresses": [
                {"type": "Hostname", "address": f"n{number}"},
                {"type": "InternalIP", "address": "fd00::1"},
                {"type": "InternalIP", "address": f"10.0.0.{number}"},
            ]
        },
    }


def built(service: Object, *nodes: Object) -> Built:
    return build(service, nodes or (node(1),), cluster_id="c-1", default_scheme="internet-facing")


def named(**arguments: Any) -> dict[str, str]:
    return CATALOGUE.annotations(arguments)


def check(annotations: dict[str, str] | None = None, **spec: Any) -> HealthCheck:
    return built(web(annotations, **spec)).model.pools[0].health_check


def test_only_ingress_nodes_are_members_where_there_are_any() -> None:
    found = built(web(), node(2, ingress="true"), node(1, ingress="false"), node(3), node(4, ingress="true"))

    assert found.model.pools[0].members == (
        Member("10.0.0.2", 30080, "i-000000000002"),
        Member("10.0.0.4", 30080, "i-000000000004"),
    )
    assert found.warnings == ()


def test_without_any_ingress_node_every_node_is_a_member_and_a_warning_says_so() -> None:
    found = built(web(), node(2), node(1))

    assert [member.address for member in found.model.pools[0].members] == ["10.0.0.1", "10.0.0.2"]
    assert found.warnings == (NO_INGRESS_NODES,)


@pytest.mark.parametrize("provider_id", ["", "aws:///zone/i-1", "mycloud://local/zone-a/"])
def test_a_node_that_is_not_initialised_is_no_member_yet(provider_id: str) -> None:
    found = built(web(), node(1, ingress="true", providerID=provider_id), node(2, ingress="true"))

    assert [member.address for member in found.model.pools[0].members] == ["10.0.0.2"]


def test_each_port_has_a_listener_and_a_pool_of_its_own() -> None:
    model = built(web(ports=[port(53), port(53, "UDP")])).model

    assert [(str(each), each.pool) for each in model.listeners] == [("53/TCP", "tcp-53"), ("53/UDP", "udp-53")]
    assert [each.name for each in model.pools] == ["tcp-53", "udp-53"]


def test_the_name_is_for_people_and_the_tags_are_the_identity() -> None:
    model = built(web()).model

    assert model.name == "c-1-default-web"
    assert model.tags == {
        "kubernetes.io/cluster": "c-1",
        "kubernetes.io/service-uid": "uid-1",
        "kubernetes.io/service": "default/web",
    }


def test_annotations_set_scheme_listeners_and_pools() -> None:
    annotations = named(scheme="internal", listener_max_qps=9, listener_idle_timeout=5, scheduler="least_connections")

    model = built(web(annotations)).model

    assert model.attributes == {"scheme": "internal"}
    assert model.listeners[0].attributes == {"max_qps": 9, "idle_timeout_seconds": 5}
    assert model.pools[0].attributes == {"scheduler": "least_connections"}


def test_the_cloud_configs_scheme_is_for_services_that_do_not_say() -> None:
    model = build(web(), [], cluster_id="c-1", default_scheme="internal").model

    assert model.attributes == {"scheme": "internal"}


@pytest.mark.parametrize(
    ("annotations", "spec", "expected"),
    [
        ({}, {}, HealthCheck("TCP", None, "/")),
        ({}, {"ports": [port(53, "UDP")]}, HealthCheck("NONE", None, "/")),
        (
            {"health_check_port": 80, "health_check_protocol": "HTTP"},
            {"ports": [port(53, "UDP")]},
            HealthCheck("HTTP", 80, "/"),
        ),
        ({"health_check_protocol": "HTTP", "health_check_path": "/ready"}, {}, HealthCheck("HTTP", None, "/ready")),
        (
            {"health_check_interval": 9, "health_check_timeout": 8, "health_check_healthy_threshold": 3},
            {},
            HealthCheck("TCP", None, "/", 9, 8, 3, 2),
        ),
    ],
)
def test_health_checks(annotations: dict[str, Any], spec: dict[str, Any], expected: HealthCheck) -> None:
    assert check(named(**annotations), **spec) == expected


@pytest.mark.parametrize(
    ("annotations", "spec", "field"),
    [
        (named(health_check_interval=2, health_check_timeout=3), {}, "dlb-health-check-timeout"),
        ({CATALOGUE.by_argument["health_check_path"].name: "ready"}, {}, "dlb-health-check-path"),
        ({"service.beta.kubernetes.io/dlb-listener-maxqp": "1"}, {}, "dlb-listener-maxqp"),
        ({}, {"ports": [port(80), port(81, "SCTP")]}, r"spec.ports\[1\].protocol"),
        ({}, {"ports": [port(80, nodePort=None)]}, r"spec.ports\[0\].nodePort"),
        ({}, {"ipFamilies": ["IPv6"]}, "spec.ipFamilies"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(annotations: dict[str, str], spec: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidConfiguration, match=field):
        built(web(annotations, **spec))


def test_what_mycloud_does_not_offer_is_ignored_with_a_reason_each() -> None:
    ranges = "service.beta.kubernetes.io/load-balancer-source-ranges"
    service = web(
        {ranges: "10.0.0.0/8"},
        loadBalancerIP="192.0.2.1",
        loadBalancerSourceRanges=["10.0.0.0/8"],
        externalTrafficPolicy="Local",
        sessionAffinity="ClientIP",
    )

    ignored = built(service).ignored

    assert [(each.field, each.value) for each in ignored] == [
        (f"annotation {ranges}", "10.0.0.0/8"),
        ("spec.loadBalancerSourceRanges", ("10.0.0.0/8",)),
        ("spec.loadBalancerIP", "192.0.2.1"),
        ("spec.externalTrafficPolicy", "Local"),
        ("spec.sessionAffinity", "ClientIP"),
    ]
    assert all(each.reason for each in ignored)
