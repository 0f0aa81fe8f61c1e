"""Rule `api-server-avoid-cloud-provider`."""

from __future__ import annotations

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.cluster_objects import KUBEADM, component, config_map, eks, machine
from tests.policy_objects import EXEMPT, of

RULE = "api-server-avoid-cloud-provider"
WRONG = f"{KUBEADM}apiServer:\n  extraArgs:\n  - {{name: cloud-provider, value: external}}\n"


@pytest.mark.parametrize(
    "resource",
    [
        machine(WRONG),
        config_map(WRONG),
        component("kube-apiserver", "--cloud-provider=external"),
        component("kube-apiserver", "--cloud-config=/etc/cloud.conf", version="latest"),
    ],
    ids=["user data", "ConfigMap", "workload", "unknown version"],
)
def test_an_api_server_that_refuses_its_flags_is_reported(pack: PolicyHost, resource: AnalyzedResource) -> None:
    assert of(pack.analyze_stack([resource]), RULE) == ["mandatory"]


@pytest.mark.parametrize(
    "resources",
    [
        [machine(KUBEADM)],
        [component("kube-apiserver", "--cloud-provider=external", version="v1.32.9")],
        [config_map(WRONG, EXEMPT)],
        [config_map(WRONG), eks()],
    ],
    ids=["without", "before 1.33", "exempt", "EKS"],
)
def test_an_api_server_that_starts_passes(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_an_unknown_flag_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([component("kube-apiserver", UNKNOWN)]), RULE) == ["not-evaluated"]


def test_a_message_shows_no_value_of_a_flag(pack: PolicyHost) -> None:
    findings = pack.analyze_stack([component("kube-apiserver", "--cloud-provider=hunter2")])

    assert of(findings, RULE)
    assert "hunter2" not in " ".join(each.message for each in findings)
