"""Rule `cluster-ranges-avoid-overlap`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.cluster_objects import KUBEADM, component, config_map, eks, machine, vpc
from tests.policy_objects import EXEMPT, of, resource

RULE = "cluster-ranges-avoid-overlap"


def ack(cidr: Any) -> AnalyzedResource:
    props = {"version": "1.36.1-aliyun.1", "serviceCidr": cidr}
    return resource("alicloud:cs/managedKubernetes:ManagedKubernetes", props, "prod")


def services(cidr: Any) -> AnalyzedResource:
    return eks(kubernetesNetworkConfig={"serviceIpv4Cidr": cidr})


SWITCH = resource("alicloud:vpc/switch:Switch", {"cidrBlock": "10.1.4.0/22"}, "switch")


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ([machine(KUBEADM), vpc("100.64.0.0/12")], "the range of pods overlaps that of the network vpc"),
        ([machine(KUBEADM), vpc("172.20.8.0/21")], "the range of Services overlaps that of the network vpc"),
        ([machine(KUBEADM.replace("172.20", "100.64"))], "the range of pods overlaps that of Services"),
        (
            [component("kube-controller-manager", "--cluster-cidr=fd00::/64,10.0.1.0/24"), vpc()],
            "the range of pods overlaps that of the network vpc",
        ),
        ([services("10.0.0.0/20"), vpc()], "the range of Services overlaps that of the network vpc"),
        ([ack("10.1.0.0/20"), SWITCH], "the range of Services overlaps that of the network switch"),
    ],
    ids=["pods", "Services", "pods and Services", "dual stack", "EKS", "ACK"],
)
def test_an_overlap_is_reported(pack: PolicyHost, resources: list[AnalyzedResource], said: str) -> None:
    messages = [each.message for each in pack.analyze_stack(resources) if each.policy == RULE]

    assert len(messages) == 1
    assert said in messages[0]


@pytest.mark.parametrize(
    "resources",
    [
        [machine(KUBEADM), vpc()],
        [services("172.20.0.0/16"), vpc()],
        [ack("172.21.0.0/20"), SWITCH],
        [config_map(KUBEADM, EXEMPT), vpc("100.64.0.0/12")],
        [machine(KUBEADM.replace("100.64.0.0/16", "$PODS")), vpc()],
    ],
    ids=["own machines", "EKS", "ACK", "exempt", "set elsewhere"],
)
def test_disjoint_ranges_pass(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


@pytest.mark.parametrize(
    "resources",
    [[component("kube-controller-manager", UNKNOWN)], [machine(KUBEADM), vpc(UNKNOWN)], [services(UNKNOWN), vpc()]],
)
def test_an_unknown_range_is_not_evaluated(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == ["not-evaluated"]


def test_a_message_shows_no_range(pack: PolicyHost) -> None:
    findings = pack.analyze_stack([machine(KUBEADM), vpc("100.64.0.0/12")])

    assert of(findings, RULE)
    assert "100.64" not in " ".join(each.message for each in findings)
