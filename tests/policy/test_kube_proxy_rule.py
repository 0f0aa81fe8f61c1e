"""Rule `kube-proxy-answer-load-balancers`."""

from __future__ import annotations

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.cluster_objects import component, config_map, eks, machine
from tests.policy_objects import EXEMPT, of

RULE = "kube-proxy-answer-load-balancers"
CONFIG = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"


@pytest.mark.parametrize(
    "resource",
    [
        config_map(f"{CONFIG}healthzBindAddress: 127.0.0.1:10256\n"),
        config_map(f'{CONFIG}healthzBindAddress: "0.0.0.0:0"\n'),
        config_map(f"{CONFIG}nodePortAddresses:\n- 127.0.0.0/8\n"),
        machine(f"cat <<Y\n{CONFIG}nodePortAddresses: [localhost]\nY\n"),
        config_map(f"{CONFIG}mode: userspace\n"),
        component("kube-proxy", "--healthz-bind-address=127.0.0.1:10256"),
    ],
    ids=["local health", "no health", "local ports", "keyword", "no such mode", "flag"],
)
def test_a_kube_proxy_that_does_not_answer_load_balancers_is_reported(
    pack: PolicyHost, resource: AnalyzedResource
) -> None:
    assert of(pack.analyze_stack([resource]), RULE) == ["advisory"]


@pytest.mark.parametrize(
    "resources",
    [
        [config_map(f'{CONFIG}healthzBindAddress: ""\nmode: ""\nnodePortAddresses: null\n')],
        [config_map(f"{CONFIG}healthzBindAddress: 0.0.0.0:10256\nmode: nftables\nnodePortAddresses: [primary]\n")],
        [config_map(f"{CONFIG}metricsBindAddress: 127.0.0.1:10249\n")],
        [config_map("healthzBindAddress: 127.0.0.1:10256\n")],
        [config_map(f"{CONFIG}mode: userspace\n", EXEMPT)],
        [config_map(f"{CONFIG}mode: userspace\n"), eks()],
    ],
    ids=["defaults", "set", "metrics", "another's", "exempt", "EKS"],
)
def test_a_kube_proxy_that_answers_passes(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_an_unknown_flag_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([component("kube-proxy", UNKNOWN)]), RULE) == ["not-evaluated"]


def test_a_message_shows_no_value(pack: PolicyHost) -> None:
    findings = pack.analyze_stack([config_map(f"{CONFIG}mode: hunter2\n")])

    assert of(findings, RULE)
    assert "hunter2" not in " ".join(each.message for each in findings)
