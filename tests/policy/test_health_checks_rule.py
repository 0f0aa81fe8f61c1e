"""Rule `lb-service-check-health`."""

from __future__ import annotations

import pytest

from cloud_stacks.policies.host import PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import EXEMPT, of, service

RULE = "lb-service-check-health"
PROTOCOL = "service.beta.kubernetes.io/dlb-health-check-protocol"
OFF = {PROTOCOL: "NONE"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (PROTOCOL, "NONE"),
        ("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-flag", "off"),
        ("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-switch", "off"),
        ("service.beta.kubernetes.io/alicloud-loadbalancer-health-check-flag", "OFF"),
        ("service.beta.kubernetes.io/port_443_no_probe_rule", "true"),
        ("loadbalancer.openstack.org/enable-health-monitor", "false"),
        ("kubernetes.io/elb.health-check-flag", "off"),
        ("example.com/health-check", "Never"),
    ],
)
def test_an_annotation_that_switches_the_check_off_is_reported(pack: PolicyHost, name: str, value: str) -> None:
    [finding] = pack.analyze(service(annotations={"other": "off", name: value}))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "medium")
    assert finding.message == f"the health check is switched off by annotation {name}: {value}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (PROTOCOL, "TCP"),
        (PROTOCOL, "HTTP"),
        ("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-flag", "on"),
        ("service.beta.kubernetes.io/port_443_no_probe_rule", "false"),
        ("example.com/health-check", "always"),
    ],
)
def test_an_annotation_that_leaves_the_health_check_on_passes(pack: PolicyHost, name: str, value: str) -> None:
    assert pack.analyze(service(annotations={name: value})) == []


def test_a_service_without_health_check_annotations_passes(pack: PolicyHost) -> None:
    assert pack.analyze(service()) == []
    assert pack.analyze(service(annotations={})) == []


def test_services_without_a_load_balancer_and_exempt_ones_are_left_alone(pack: PolicyHost) -> None:
    assert pack.analyze(service(type="NodePort", annotations=OFF)) == []
    assert pack.analyze(service(EXEMPT, annotations=OFF)) == []


def test_an_answer_that_depends_on_an_unknown_value_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze(service(annotations={PROTOCOL: UNKNOWN})), RULE) == ["not-evaluated"]
    assert of(pack.analyze(service(annotations=UNKNOWN)), RULE) == ["not-evaluated"]
    assert of(pack.analyze(service(type=UNKNOWN, annotations=OFF)), RULE) == ["not-evaluated"]


def test_an_unknown_value_that_decides_nothing_is_ignored(pack: PolicyHost) -> None:
    assert of(pack.analyze(service(annotations={"other": UNKNOWN})), RULE) == []
    assert of(pack.analyze(service(type=UNKNOWN)), RULE) == []
    assert of(pack.analyze(service(type="ClusterIP", annotations=UNKNOWN)), RULE) == []
    assert of(pack.analyze(service(annotations={PROTOCOL: "NONE", "other": UNKNOWN})), RULE) == ["advisory"]
