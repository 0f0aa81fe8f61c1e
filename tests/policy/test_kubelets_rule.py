"""Rule `kubelet-use-external-cloud`."""

from __future__ import annotations

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.cluster_objects import EXEMPT_RESOURCE, KUBEADM, config_map, eks, machine
from tests.policy_objects import of

RULE = "kubelet-use-external-cloud"
JOIN = "kind: JoinConfiguration\nnodeRegistration:\n  kubeletExtraArgs:\n    cloud-provider: external\n"


@pytest.mark.parametrize(
    "resource",
    [
        machine(JOIN.replace("    cloud-provider: external\n", "    node-labels: a=b\n")),
        machine(JOIN.replace("external", "aws")),
        machine("kubeadm join 10.0.0.1:6443 --token x"),
        machine("echo 'KUBELET_EXTRA_ARGS=\"--node-labels=a=b\"' >/etc/default/kubelet\nkubeadm join 10.0.0.1:6443"),
        machine("ExecStart=/usr/bin/kubelet --config=/etc/kubelet.yaml"),
        config_map("kind: KubeletConfiguration\ncloudProvider: external\n"),
    ],
    ids=["kubeadm", "another cloud", "join", "environment", "unit", "not a flag"],
)
def test_a_kubelet_that_does_not_wait_for_the_ccm_is_reported(pack: PolicyHost, resource: AnalyzedResource) -> None:
    assert of(pack.analyze_stack([resource]), RULE) == ["mandatory"]


@pytest.mark.parametrize(
    "resources",
    [
        [machine(KUBEADM)],
        [machine(JOIN)],
        [machine("KUBELET_EXTRA_ARGS=--cloud-provider=external\nkubeadm join 10.0.0.1:6443")],
        [machine("kubeadm join --config /run/made-elsewhere.yaml")],
        [machine("dnf install -y kubelet kubeadm\nsystemctl enable --now kubelet\n")],
        [machine("kubeadm join 10.0.0.1:6443", EXEMPT_RESOURCE)],
        [machine("kubeadm join 10.0.0.1:6443"), eks()],
        [config_map("kind: KubeletConfiguration\nproviderID: x\n")],
    ],
    ids=["init", "join", "environment", "config of elsewhere", "installed", "exempt", "EKS", "configuration"],
)
def test_a_kubelet_that_waits_for_the_ccm_passes(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_user_data_that_no_preview_knows_is_not_judged_and_hides_no_other(pack: PolicyHost) -> None:
    wrong = machine("kubeadm join 10.0.0.1:6443")

    assert of(pack.analyze_stack([machine(UNKNOWN, "other"), wrong]), RULE) == ["mandatory"]


def test_a_message_shows_nothing_of_the_text(pack: PolicyHost) -> None:
    text = "kubeadm join 10.0.0.1:6443 --token hunter2"

    [finding] = [each for each in pack.analyze_stack([machine(text)]) if each.policy == RULE]

    assert "hunter2" not in finding.message
