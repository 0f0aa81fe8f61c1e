"""Rule `lb-service-check-local-nodes`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, Finding, PolicyHost
from local.plugins.values import UNKNOWN, Secret
from tests.policy.services import balanced, port

RULE = "lb-service-check-local-nodes"
BETA = "service.beta.kubernetes.io/"
PORTS = [
    f"{BETA}dlb-health-check-port",
    f"{BETA}alibaba-cloud-loadbalancer-health-check-connect-port",
    f"{BETA}alicloud-loadbalancer-health-check-connect-port",
    f"{BETA}aws-load-balancer-healthcheck-port",
    f"{BETA}port_80_health-probe_port",
]
DLB = PORTS[0]


def local(annotations: Any = None, name: str = "web", *ports: Any, **spec: Any) -> AnalyzedResource:
    return balanced(name, *ports, annotations=annotations, externalTrafficPolicy="Local", **spec)


def found(pack: PolicyHost, service: AnalyzedResource) -> list[Finding]:
    return [finding for finding in pack.analyze(service) if finding.policy == RULE]


def test_local_with_the_controllers_own_check_passes(pack: PolicyHost) -> None:
    assert found(pack, local()) == []
    assert found(pack, local({f"{BETA}aws-load-balancer-healthcheck-port": "traffic-port"})) == []


@pytest.mark.parametrize("annotation", PORTS)
def test_a_fixed_port_that_nodes_without_pods_answer_is_reported(pack: PolicyHost, annotation: str) -> None:
    [finding] = found(pack, local({annotation: "10256"}))

    assert (finding.level, finding.severity) == ("advisory", "medium")
    assert finding.message.startswith(f"annotation {annotation} checks another port than spec.healthCheckNodePort")


def test_the_health_check_node_port_and_a_node_port_of_the_service_pass(pack: PolicyHost) -> None:
    assert found(pack, local({DLB: "32100"}, healthCheckNodePort=32100)) == []
    assert found(pack, local({DLB: "30080"}, "web", port(80, nodePort=30080))) == []


@pytest.mark.parametrize(
    "off",
    [
        {f"{BETA}dlb-health-check-protocol": "NONE"},
        {f"{BETA}alibaba-cloud-loadbalancer-health-check-flag": "off"},
        {"loadbalancer.openstack.org/enable-health-monitor": "false"},
    ],
)
def test_a_check_that_is_switched_off_is_reported(pack: PolicyHost, off: dict[str, str]) -> None:
    [finding] = found(pack, local(off))

    assert "switches off the check that finds the nodes with pods" in finding.message


@pytest.mark.parametrize(
    "by_pod",
    [
        {DLB: "8080", f"{BETA}dlb-backend-type": "pod-ip"},
        {PORTS[1]: "8080", f"{BETA}backend-type": "eni"},
        {PORTS[3]: "8080", f"{BETA}aws-load-balancer-nlb-target-type": "ip"},
    ],
)
def test_pods_as_backends_may_be_checked_on_any_port(pack: PolicyHost, by_pod: dict[str, str]) -> None:
    assert found(pack, local(by_pod)) == []


def test_a_fixed_port_without_local_passes(pack: PolicyHost) -> None:
    assert found(pack, balanced(annotations={DLB: "10256"})) == []


def test_a_health_check_node_port_without_local_is_reported(pack: PolicyHost) -> None:
    [finding] = found(pack, balanced(healthCheckNodePort=32100))

    assert "needs spec.externalTrafficPolicy: Local" in finding.message


@pytest.mark.parametrize(
    "unknown",
    [
        local({DLB: UNKNOWN}),
        local({DLB: "10256"}, healthCheckNodePort=UNKNOWN),
        balanced(annotations={DLB: "10256"}, externalTrafficPolicy=UNKNOWN),
    ],
)
def test_what_depends_on_an_unknown_value_is_not_evaluated(pack: PolicyHost, unknown: AnalyzedResource) -> None:
    assert [finding.level for finding in found(pack, unknown)] == ["not-evaluated"]


def test_a_secret_value_is_not_in_the_message(pack: PolicyHost) -> None:
    assert "10256" not in found(pack, local({DLB: Secret("10256")}))[0].message
