"""What a Service comes to as a load balancer of mycloud."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.clouds.mycloud.annotations import CATALOGUE, INGRESS_NODE
from cloud_controller.clouds.mycloud.build import (
    NO_INGRESS_NODES,
    NO_INGRESS_NODES_WITH_PODS,
    MyCloudBuilder,
)
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends, Member
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import Built, HealthCheck, Reuse
from tests.cloud_controller.clouds.mycloud.services import BUILDER, MAX_QPS, named
from tests.cloud_controller.load_balancing import port
from tests.cloud_controller.load_balancing import service as web

SOURCE_RANGES = CATALOGUE.by_argument["load_balancer_source_ranges"].name


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
    return BUILDER.build(service, backends(*nodes), Fact())


def backends(*nodes: Object, slices: tuple[Object, ...] = ()) -> Backends:
    found = (BUILDER.backend(each) for each in nodes or (node(1),))
    return Backends(tuple(each for each in found if each is not None), slices)


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
    assert found.warnings == (("NoIngressNodes", NO_INGRESS_NODES),)


@pytest.mark.parametrize("provider_id", ["", "aws:///zone/i-1", "mycloud://local/zone-a/"])
def test_a_node_that_is_not_initialised_is_no_member_yet(provider_id: str) -> None:
    found = built(web(), node(1, ingress="true", providerID=provider_id), node(2, ingress="true"))

    assert [member.address for member in found.model.pools[0].members] == ["10.0.0.2"]


def test_each_port_has_a_listener_and_a_pool_of_its_own() -> None:
    model = built(web(ports=[port(53), port(53, "UDP")])).model

    assert [(str(each), each.pool) for each in model.listeners] == [("53/TCP", "tcp-53"), ("53/UDP", "udp-53")]
    assert [each.name for each in model.pools] == ["tcp-53", "udp-53"]


def test_annotations_set_scheme_listeners_and_pools() -> None:
    annotations = named(scheme="internal", listener_max_qps=9, listener_idle_timeout=5, scheduler="least_connections")

    model = built(web(annotations)).model

    assert model.attributes == {"scheme": "internal", "source_ranges": ()}
    assert model.listeners[0].attributes == {"max_qps": 9, "idle_timeout_seconds": 5}
    assert model.pools[0].attributes["scheduler"] == "least_connections"


def test_the_cloud_configs_scheme_is_for_services_that_do_not_say() -> None:
    model = MyCloudBuilder("c-1", "internal").build(web(), Backends(), Fact()).model

    assert model.attributes["scheme"] == "internal"


@pytest.mark.parametrize(
    ("annotations", "spec", "expected"),
    [
        ({}, {}, HealthCheck("TCP", None, "/")),
        ({}, {"ports": [port(53, "UDP")]}, HealthCheck("NONE", None, "/")),
        ({"health_check_protocol": "TCP"}, {"ports": [port(53, "UDP")]}, HealthCheck("TCP", None, "/")),
        (
            {"health_check_protocol": "HTTP", "health_check_path": "/ready"},
            {"ports": [port(53, "UDP"), port(54, "UDP")]},
            HealthCheck("HTTP", None, "/ready"),
        ),
        # It is meant for the TCP port: no HTTP is spoken at the number of the other.
        (
            {"health_check_protocol": "HTTP"},
            {"ports": [port(53, "UDP"), port(80)]},
            HealthCheck("NONE", None, "/"),
        ),
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


def test_what_mycloud_does_not_offer_is_ignored_with_a_reason_each() -> None:
    service = web(
        named(force_override_listeners=True),
        loadBalancerIP="192.0.2.1",
        ipFamilies=["IPv4", "IPv6"],
        ipFamilyPolicy="PreferDualStack",
    )

    ignored = built(service).ignored

    assert [(each.field, each.value) for each in ignored] == [
        ("spec.ipFamilies", ("IPv4", "IPv6")),
        ("spec.loadBalancerIP", "192.0.2.1"),
        ("annotation service.beta.kubernetes.io/dlb-force-override-listeners", True),
    ]
    assert all(each.reason for each in ignored)


# ------------------------------------------------------------------------------------------------- traffic policy Local

SLICE = {
    "addressType": "IPv4",
    "ports": [{"name": "", "protocol": "TCP", "port": 8080}],
    "endpoints": [
        {"addresses": ["10.244.1.5"], "conditions": {"ready": True}, "nodeName": "n1"},
        {"addresses": ["10.244.1.6"], "conditions": {"ready": True}, "nodeName": "n1"},
        {"addresses": ["10.244.2.5"], "conditions": {}, "nodeName": "n2"},
        {"addresses": ["10.244.3.5"], "conditions": {"ready": False, "serving": True}, "nodeName": "n3"},
    ],
}


def local(annotations: dict[str, str] | None = None, *nodes: Object, **spec: Any) -> Built:
    service = web(annotations, externalTrafficPolicy="Local", healthCheckNodePort=31000, **spec)
    found = backends(*(nodes or (node(1), node(2), node(3))), slices=(SLICE,))
    return BUILDER.build(service, found, Fact())


def test_with_local_only_nodes_with_ready_pods_are_members_weighing_as_many_as_they_have() -> None:
    assert local().model.pools[0].members == (
        Member("10.0.0.1", 30080, "i-000000000001", weight=2),
        Member("10.0.0.2", 30080, "i-000000000002", weight=1),
    )


def test_with_local_the_nodes_proxy_is_asked_whether_it_has_pods() -> None:
    assert local().model.pools[0].health_check == HealthCheck("HTTP", 31000, "/healthz")
    assert local(ports=[port(53, "UDP")]).model.pools[0].health_check == HealthCheck("HTTP", 31000, "/healthz")


def test_what_a_service_says_of_its_check_wins_over_the_proxys() -> None:
    said = named(health_check_protocol="TCP", health_check_port=9000, health_check_path="/mine")

    assert local(said).model.pools[0].health_check == HealthCheck("TCP", 9000, "/mine")


def test_with_local_ingress_nodes_are_preferred_where_one_has_a_pod() -> None:
    found = local(None, node(1), node(2, ingress="true"), node(3, ingress="true"))

    assert [member.address for member in found.model.pools[0].members] == ["10.0.0.2"]
    assert found.warnings == ()


def test_with_local_and_no_pod_on_an_ingress_node_the_nodes_with_pods_serve_and_a_warning_says_so() -> None:
    found = local(None, node(1), node(2), node(3, ingress="true"))

    assert [member.address for member in found.model.pools[0].members] == ["10.0.0.1", "10.0.0.2"]
    assert found.warnings == (("NoIngressNodes", NO_INGRESS_NODES_WITH_PODS),)


# ------------------------------------------------------------------------------------------------- backends by pod


def test_where_pods_are_matters_with_traffic_policy_local_and_with_backends_by_pod() -> None:
    assert not BUILDER.follows_endpoints(web())
    assert BUILDER.follows_endpoints(web(externalTrafficPolicy="Local"))
    assert BUILDER.follows_endpoints(web(named(backend_type="pod-ip")))
    assert not BUILDER.follows_endpoints(web({CATALOGUE.by_argument["backend_type"].name: "pods"}))


def test_by_pod_the_ready_pods_themselves_are_members_on_their_nodes_machines() -> None:
    service = web(named(backend_type="pod-ip"), ports=[port(80, nodePort=None)])

    model = BUILDER.build(service, backends(node(1), node(2), slices=(SLICE,)), Fact()).model

    assert model.pools[0].members == (
        Member("10.244.1.5", 8080, "i-000000000001"),
        Member("10.244.1.6", 8080, "i-000000000001"),
        Member("10.244.2.5", 8080, "i-000000000002"),
    )
    assert model.pools[0].health_check == HealthCheck("TCP", None, "/")


def test_members_are_known_also_of_a_service_whose_other_settings_are_wrong() -> None:
    service = web({MAX_QPS: "many"}, ports=[port(80), port(81, "SCTP"), port(82, nodePort=None)])

    assert BUILDER.members(service, backends(node(1))) == {("TCP", 80): (Member("10.0.0.1", 30080, "i-000000000001"),)}


# ------------------------------------------------------------------------------------------- affinity, source, families


@pytest.mark.parametrize(
    ("spec", "affinity", "timeout"),
    [
        ({}, "NONE", 10800),
        ({"sessionAffinity": "ClientIP"}, "CLIENT_IP", 10800),
        (
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}},
            "CLIENT_IP",
            60,
        ),
    ],
)
def test_session_affinity_is_the_backend_sets(spec: dict[str, Any], affinity: str, timeout: int) -> None:
    attributes = built(web(**spec)).model.pools[0].attributes

    assert (attributes["session_affinity"], attributes["session_affinity_timeout_seconds"]) == (affinity, timeout)


def test_source_ranges_are_those_of_ipv4() -> None:
    service = web({SOURCE_RANGES: "2001:db8::/32,192.0.2.7/24"})

    assert built(service).model.attributes["source_ranges"] == ("192.0.2.0/24",)


# ------------------------------------------------------------------------------------------------------------ by id


def test_on_a_load_balancer_of_others_each_part_says_whose_it_is_and_has_a_name_of_its_own() -> None:
    found = built(web(named(id="lb-0123456789ab", force_override_listeners=True)))

    assert found.reuse == Reuse("lb-0123456789ab", force=True)
    (pool,), (listener,) = found.model.pools, found.model.listeners
    assert pool.name == listener.pool == "tcp-80-uid-web"
    assert pool.tags == listener.tags == found.model.tags


def test_what_is_the_load_balancers_own_is_not_changed_on_one_of_others() -> None:
    found = built(web(named(id="lb-0123456789ab", scheme="internal")))

    assert found.model.attributes == {}
    assert [each.field for each in found.ignored] == ["annotation service.beta.kubernetes.io/dlb-scheme"]
