"""Which ports a node-proxier listens on and where they lead."""

from __future__ import annotations

from typing import Any

from local.mycloud.machine.proxy_rules import Listener, ignored_fields, listeners

NODE = "10.17.0.5"
NODE_PORT = Listener("TCP", "127.17.0.5", 30080, shared=False)
CLUSTER_IP = Listener("TCP", "127.18.0.9", 80, shared=True)


def service(**spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP"}]
    return {"metadata": {"namespace": "n", "name": "s"}, "spec": {"clusterIP": "10.18.0.9", "ports": ports, **spec}}


def endpoint(address: str, **conditions: bool) -> dict[str, Any]:
    return {"addresses": [address], "conditions": conditions}


def endpoint_slice(*endpoints: dict[str, Any], port: int = 8080, name: str = "http") -> dict[str, Any]:
    return {
        "metadata": {"namespace": "n", "name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "ports": [{"name": name, "port": port, "protocol": "TCP"}],
        "endpoints": list(endpoints),
    }


def test_node_port_and_cluster_ip_lead_to_the_ready_endpoints_of_all_slices() -> None:
    slices = [
        endpoint_slice(endpoint("10.20.0.3", ready=True), endpoint("10.20.0.4", ready=False)),
        endpoint_slice(endpoint("10.20.0.2")),  # no conditions: ready
    ]

    found = listeners([service()], slices, NODE)

    targets = (("127.20.0.2", 8080), ("127.20.0.3", 8080))
    assert found == {NODE_PORT: targets, CLUSTER_IP: targets}


def test_without_a_usable_endpoint_nothing_listens() -> None:
    assert listeners([service()], [endpoint_slice(endpoint("10.20.0.3", ready=False))], NODE) == {}
    assert listeners([service()], [], NODE) == {}


def test_endpoints_that_serve_while_they_terminate_are_used_when_no_other_is_left() -> None:
    leaving = endpoint("10.20.0.3", ready=False, serving=True, terminating=True)

    assert listeners([service()], [endpoint_slice(leaving)], NODE)[NODE_PORT] == (("127.20.0.3", 8080),)
    both = listeners([service()], [endpoint_slice(leaving, endpoint("10.20.0.4", ready=True))], NODE)
    assert both[NODE_PORT] == (("127.20.0.4", 8080),)


def test_ports_are_matched_by_name_and_protocol() -> None:
    other = endpoint_slice(endpoint("10.20.0.3", ready=True), port=9090, name="metrics")
    assert listeners([service()], [other], NODE) == {}


def test_headless_and_external_services_have_no_listener() -> None:
    ready = endpoint_slice(endpoint("10.20.0.3", ready=True))
    assert listeners([service(clusterIP="None")], [ready], NODE) == {}
    assert listeners([service(type="ExternalName", clusterIP=None)], [ready], NODE) == {}


def test_what_the_proxier_does_not_do_is_named() -> None:
    assert ignored_fields(service(sessionAffinity="None", externalTrafficPolicy="Cluster")) == []
    assert ignored_fields(service(sessionAffinity="ClientIP", externalTrafficPolicy="Local")) == [
        "externalTrafficPolicy: Local",
        "sessionAffinity: ClientIP",
    ]


def test_a_slice_of_another_namespace_is_not_mistaken() -> None:
    foreign = endpoint_slice(endpoint("10.20.0.3", ready=True))
    foreign["metadata"]["namespace"] = "other"
    assert listeners([service()], [foreign], NODE) == {}
