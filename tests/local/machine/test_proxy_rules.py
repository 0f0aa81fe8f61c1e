"""The ports that a node-proxier listens on, and where they lead."""

from __future__ import annotations

from typing import Any

from local.machine.proxy_rules import (
    Listener,
    Node,
    Route,
    Rules,
    ServiceHealth,
    ignored_addresses,
    ignored_fields,
    rules,
)

NODE = Node("here", "10.17.0.5")
NODE_PORT = Listener("TCP", "127.17.0.5", 30080, shared=False)
CLUSTER_IP = Listener("TCP", "127.18.0.9", 80, shared=True)
HEALTH_PORT = ("127.17.0.5", 31000)
NOTHING = Rules({}, {})

Object = dict[str, Any]


def service(**spec: Any) -> Object:
    ports = [{"name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP"}]
    return {"metadata": {"namespace": "n", "name": "s"}, "spec": {"clusterIP": "10.18.0.9", "ports": ports, **spec}}


def endpoint(address: str, node: str = "there", **conditions: bool) -> Object:
    return {"addresses": [address], "nodeName": node, "conditions": conditions}


def leaving(address: str, node: str = "there") -> Object:
    return endpoint(address, node, ready=False, serving=True, terminating=True)


def endpoint_slice(*endpoints: Object, port: int = 8080, name: str = "http") -> Object:
    return {
        "metadata": {"namespace": "n", "name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "ports": [{"name": name, "port": port, "protocol": "TCP"}],
        "endpoints": list(endpoints),
    }


def targets(*slices: Object, of: Object | None = None) -> dict[Listener, list[str]]:
    """Each listener with the addresses that it leads to."""
    routes = rules([of or service()], slices, NODE).routes
    return {listener: [host for host, _ in route.targets] for listener, route in routes.items()}


def test_node_port_and_cluster_ip_lead_to_the_ready_endpoints_of_all_slices() -> None:
    slices = [
        endpoint_slice(endpoint("10.20.0.3", ready=True), endpoint("10.20.0.4", ready=False)),
        endpoint_slice(endpoint("10.20.0.2")),  # no conditions: ready
    ]

    found = rules([service()], slices, NODE)

    both = (("127.20.0.2", 8080), ("127.20.0.3", 8080))
    assert found.routes == {NODE_PORT: Route(both, masquerade=True), CLUSTER_IP: Route(both)}


def test_a_port_without_a_usable_endpoint_has_no_listener() -> None:
    assert rules([service()], [endpoint_slice(endpoint("10.20.0.3", ready=False))], NODE) == NOTHING
    assert rules([service()], [], NODE) == NOTHING


def test_endpoints_that_serve_while_they_terminate_are_used_when_no_other_is_left() -> None:
    alone = endpoint_slice(leaving("10.20.0.3"))
    beside_another = endpoint_slice(leaving("10.20.0.3"), endpoint("10.20.0.4", ready=True))

    assert targets(alone)[NODE_PORT] == ["127.20.0.3"]
    assert targets(beside_another)[NODE_PORT] == ["127.20.0.4"]


def test_ports_are_matched_by_name_and_protocol() -> None:
    other = endpoint_slice(endpoint("10.20.0.3", ready=True), port=9090, name="metrics")
    assert rules([service()], [other], NODE) == NOTHING


def test_headless_and_external_services_have_no_listener() -> None:
    ready = endpoint_slice(endpoint("10.20.0.3", ready=True))
    assert rules([service(clusterIP="None")], [ready], NODE) == NOTHING
    assert rules([service(type="ExternalName", clusterIP=None)], [ready], NODE) == NOTHING


def test_an_external_traffic_policy_local_keeps_a_node_port_to_this_nodes_endpoints_and_the_clients_address() -> None:
    local = service(externalTrafficPolicy="Local")
    slices = [endpoint_slice(endpoint("10.20.0.2"), endpoint("10.20.0.3", "here"))]

    found = rules([local], slices, NODE).routes

    assert found[NODE_PORT] == Route((("127.20.0.3", 8080),), masquerade=False)
    assert len(found[CLUSTER_IP].targets) == 2


def test_with_policy_local_a_node_port_without_an_endpoint_here_is_closed() -> None:
    local = service(externalTrafficPolicy="Local")

    assert list(targets(endpoint_slice(endpoint("10.20.0.2")), of=local)) == [CLUSTER_IP]


def test_with_policy_local_a_terminating_local_endpoint_is_preferred_to_a_remote_one() -> None:
    local = service(externalTrafficPolicy="Local")
    slices = endpoint_slice(endpoint("10.20.0.2"), leaving("10.20.0.3", "here"))

    assert targets(slices, of=local)[NODE_PORT] == ["127.20.0.3"]


def test_an_internal_traffic_policy_local_keeps_the_cluster_ip_to_this_nodes_endpoints() -> None:
    local = service(internalTrafficPolicy="Local")

    found = targets(endpoint_slice(endpoint("10.20.0.2"), endpoint("10.20.0.3", "here")), of=local)
    assert found == {CLUSTER_IP: ["127.20.0.3"], NODE_PORT: ["127.20.0.2", "127.20.0.3"]}
    assert list(targets(endpoint_slice(endpoint("10.20.0.2")), of=local)) == [NODE_PORT]


def test_a_health_check_node_port_counts_the_ready_endpoints_of_this_node_once_each() -> None:
    local = service(externalTrafficPolicy="Local", healthCheckNodePort=31000)
    here = [endpoint("10.20.0.3", "here"), endpoint("10.20.0.4", "here", ready=True), leaving("10.20.0.5", "here")]
    slices = [endpoint_slice(*here, endpoint("10.20.0.2")), endpoint_slice(*here, name="metrics")]

    assert rules([local], slices, NODE).health_ports == {HEALTH_PORT: ServiceHealth("n", "s", 2)}
    assert rules([local], [], NODE).health_ports == {HEALTH_PORT: ServiceHealth("n", "s", 0)}


def test_client_ip_affinity_has_kubernetes_default_timeout_or_the_services_own() -> None:
    slices = [endpoint_slice(endpoint("10.20.0.2"))]
    of_an_hour = {"clientIP": {"timeoutSeconds": 3600}}

    def seconds(**spec: Any) -> set[float | None]:
        return {route.affinity_seconds for route in rules([service(**spec)], slices, NODE).routes.values()}

    assert seconds(sessionAffinity="None") == {None}
    assert seconds(sessionAffinity="ClientIP") == {10800}
    assert seconds(sessionAffinity="ClientIP", sessionAffinityConfig=of_an_hour) == {3600}


def test_unsupported_service_fields_are_named() -> None:
    honoured = service(sessionAffinity="ClientIP", externalTrafficPolicy="Local", internalTrafficPolicy="Local")
    assert ignored_fields(honoured) == []

    ports = [{"port": 80, "protocol": "SCTP"}, {"port": 81}]
    assert ignored_fields(service(externalIPs=["192.0.2.1"], trafficDistribution="PreferClose", ports=ports)) == [
        "externalIPs: ['192.0.2.1']",
        "trafficDistribution: PreferClose",
        "ports of protocol SCTP",
    ]


def test_an_endpoint_outside_the_clusters_ranges_is_ignored_and_named() -> None:
    by_hand = endpoint_slice(endpoint("192.0.2.1"), endpoint("10.20.0.3"))

    assert targets(by_hand) == {NODE_PORT: ["127.20.0.3"], CLUSTER_IP: ["127.20.0.3"]}
    assert ignored_addresses(by_hand) == ["endpoint 192.0.2.1"]


def test_a_slice_of_another_namespace_is_ignored() -> None:
    foreign = endpoint_slice(endpoint("10.20.0.3", ready=True))
    foreign["metadata"]["namespace"] = "other"
    assert rules([service()], [foreign], NODE) == NOTHING
