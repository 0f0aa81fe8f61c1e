"""Rule `cluster-cidr-agree`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.cluster_objects import KUBEADM, component, config_map, eks, machine
from tests.policy_objects import EXEMPT, ccm, of

RULE = "cluster-cidr-agree"
IMAGE = "registry.k8s.io/provider-aws/cloud-controller-manager:v1.36.1"
PROXY = "---\nkind: KubeProxyConfiguration\nclusterCIDR: 100.64.0.0/16\n"


def manager(*args: Any, name: str = "ccm", image: str = IMAGE) -> AnalyzedResource:
    return ccm(container={"image": image, "args": ["--cloud-provider=aws", *args]}, name=name)


AGREES = manager("--cluster-cidr=100.64.0.0/16")
UNALLOCATED = KUBEADM.replace("podSubnet: 100.64.0.0/16, ", "")


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ([machine(KUBEADM), manager("--cluster-cidr=100.65.0.0/16")], "container manager: --cluster-cidr is not the"),
        ([machine(KUBEADM + PROXY.replace("64", "65")), AGREES], "kube-proxy's cluster CIDR is not the one"),
        ([machine(UNALLOCATED), AGREES], "kube-controller-manager allocates no node CIDRs"),
        ([component("kube-controller-manager", "--cloud-provider=external"), AGREES], "allocates no node CIDRs"),
        (
            [component("kube-controller-manager", "--allocate-node-cidrs=false"), AGREES],
            "kube-controller-manager allocates no node CIDRs",
        ),
        ([manager()], "container manager runs the route controller without --cluster-cidr"),
        (
            [manager("--cluster-cidr=100.64.0.0/16", "--allocate-node-cidrs=false")],
            "container manager writes routes, but has --allocate-node-cidrs=false",
        ),
    ],
    ids=["CCM", "kube-proxy", "kubeadm allocates none", "no flag", "switched off", "no range", "CCM's flag"],
)
def test_a_disagreement_on_the_cluster_cidr_is_reported(
    pack: PolicyHost, resources: list[AnalyzedResource], said: str
) -> None:
    messages = [each.message for each in pack.analyze_stack(resources) if each.policy == RULE]

    assert len(messages) == 1
    assert said in messages[0]


@pytest.mark.parametrize(
    "resources",
    [
        [machine(KUBEADM + PROXY), AGREES],
        [machine(UNALLOCATED), manager("--configure-cloud-routes=false")],
        [machine(UNALLOCATED), manager("--controllers=service,cloud-node")],
        [machine(UNALLOCATED), manager("--controllers=*,-route")],
        [manager(image="registry.example/cloud-controller:0.1.0")],
        [machine(KUBEADM), manager("--cluster-cidr=100.65.0.0/16", name=EXEMPT)],
        [machine(KUBEADM), manager("--cluster-cidr=100.65.0.0/16"), eks()],
        [config_map(PROXY)],
        [replace(manager(), type="kubernetes:apps/v1:DaemonSetPatch")],
    ],
    ids=[
        "agree",
        "no routes",
        "no route controller",
        "route controller off",
        "ours",
        "exempt",
        "EKS",
        "kube-proxy alone",
        "patch",
    ],
)
def test_agreement_and_clusters_without_routes_pass(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_an_unknown_range_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([machine(KUBEADM), manager(UNKNOWN)]), RULE) == ["not-evaluated"]


def test_a_message_shows_no_range(pack: PolicyHost) -> None:
    findings = pack.analyze_stack([machine(KUBEADM), manager("--cluster-cidr=10.99.0.0/16")])

    assert of(findings, RULE)
    assert "10.99" not in " ".join(each.message for each in findings)
