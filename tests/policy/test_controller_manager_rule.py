"""Rule `controller-manager-leave-cloud-to-ccm`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.cluster_objects import KUBEADM, component, config_map, eks, machine
from tests.policy_objects import EXEMPT, of

RULE = "controller-manager-leave-cloud-to-ccm"
WITHOUT = KUBEADM.replace("  - {name: cloud-provider, value: external}\n---", "  - {name: v, value: 2}\n---")
SHORT = "--controllers=*,-cloud-node-lifecycle,-route,-service"
LONG = "--controllers=*,-cloud-node-lifecycle-controller,-node-route-controller,-service-lb-controller"


def manager(*args: str, version: str = "v1.36.1") -> AnalyzedResource:
    return component("kube-controller-manager", "--cloud-provider=external", *args, version=version)


@pytest.mark.parametrize(
    "resource",
    [
        machine(WITHOUT),
        machine(KUBEADM.replace("external", "aws", 1)),
        config_map(WITHOUT),
        component("kube-controller-manager"),
        component("kube-controller-manager", "--cloud-provider=aws"),
        manager("--controllers=*,service"),
        manager("--controllers=*,-cloud-node"),
        manager("--controllers=*,-service-controller"),
        manager(SHORT, version="v1.37.1"),
        manager(LONG, version="v1.37.1"),
        manager(LONG, version="v1.27.3"),
    ],
    ids=[
        "kubeadm without it",
        "another cloud",
        "ConfigMap",
        "no flags",
        "flag of another cloud",
        "a cloud controller turned on",
        "a name of the CCM alone",
        "a guessed name",
        "short names in 1.37",
        "long names in 1.37",
        "long names before 1.28",
    ],
)
def test_a_manager_that_runs_cloud_controllers_or_does_not_start_is_reported(
    pack: PolicyHost, resource: AnalyzedResource
) -> None:
    assert of(pack.analyze_stack([resource]), RULE) == ["mandatory"]


@pytest.mark.parametrize(
    "resources",
    [
        [machine(KUBEADM)],
        [manager()],
        [manager(SHORT)],
        [manager(LONG)],
        [manager(SHORT, version="v1.27.3")],
        [config_map(WITHOUT, EXEMPT)],
        [eks(), config_map(WITHOUT)],
        [machine("dnf install -y kubeadm\n# kube-controller-manager gets --cloud-provider=aws\n")],
        [component("kube-scheduler")],
        [replace(component("kube-controller-manager"), type="kubernetes:apps/v1:DaemonSetPatch")],
    ],
    ids=[
        "kubeadm",
        "flag",
        "short names",
        "long names",
        "short names before 1.28",
        "exempt",
        "EKS",
        "mention",
        "other",
        "patch",
    ],
)
def test_a_manager_that_leaves_the_cloud_to_the_ccm_passes(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_an_unknown_flag_is_not_evaluated_and_hides_no_other(pack: PolicyHost) -> None:
    unknown = component("kube-controller-manager", "--cloud-provider=external", UNKNOWN)

    assert of(pack.analyze_stack([unknown, machine(WITHOUT)]), RULE) == ["mandatory", "not-evaluated"]


def test_user_data_that_no_preview_knows_is_not_judged_and_hides_no_other(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([machine(UNKNOWN, "other"), machine(WITHOUT)]), RULE) == ["mandatory"]


def test_a_message_shows_no_value_of_a_flag(pack: PolicyHost) -> None:
    wrong = component("kube-controller-manager", "--cloud-provider=hunter2")

    [finding] = [each for each in pack.analyze_stack([wrong]) if each.policy == RULE]

    assert "must be external" in finding.message
    assert "hunter2" not in finding.message
