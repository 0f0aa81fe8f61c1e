"""Rules `ccm-workload-fit-kubernetes` and `ccm-workload-use-known-version`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.clouds.aws.versions import NEWEST
from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.cluster_objects import KUBEADM, machine
from tests.policy_objects import EXEMPT, ccm, of, resource, start

RULE, KNOWN = "ccm-workload-fit-kubernetes", "ccm-workload-use-known-version"
IMAGE = "registry.k8s.io/provider-aws/cloud-controller-manager"


def eks(version: Any = "1.32") -> AnalyzedResource:
    return resource("aws:eks/cluster:Cluster", {"version": version}, "prod")


def manager(tag: Any = "v1.32.0", name: str = "ccm") -> AnalyzedResource:
    return ccm(container={"image": f"{IMAGE}:{tag}" if isinstance(tag, str) else tag}, name=name)


def test_a_ccm_of_another_minor_version_is_reported_with_the_right_one(pack: PolicyHost) -> None:
    workload = manager("v1.30.5")

    [finding] = [each for each in pack.analyze_stack([eks(), workload]) if each.policy == RULE]

    assert (finding.level, finding.urn) == ("advisory", workload.urn)
    assert "v1.30.5 is for Kubernetes 1.30, not 1.32; the matrix has v1.32.8" in finding.message


@pytest.mark.parametrize(
    "resources",
    [
        [eks(), manager()],
        [eks(), manager("v1.30.5", EXEMPT)],
        [eks(), ccm(container={"image": "registry.example/cloud-controller:0.1.0"})],
        [manager("v1.30.5")],
        [eks("1.99"), manager("v1.99.0")],
    ],
    ids=["it fits", "exempt", "ours", "no version known", "newer than the matrix"],
)
def test_a_ccm_that_may_fit_the_cluster_passes(pack: PolicyHost, resources: Any) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_alibabas_ccm_is_judged_by_its_own_matrix(pack: PolicyHost) -> None:
    cluster = resource("alicloud:cs/managedKubernetes:ManagedKubernetes", {"version": "1.32.1-aliyun.1"}, "prod")
    image = "registry.cn-hangzhou.aliyuncs.com/acs/cloud-controller-manager-amd64"
    wrong, unknown = (ccm(container={"image": f"{image}:{tag}"}) for tag in ("v2.11.2", "v2.13.0"))

    assert of(pack.analyze_stack([cluster, wrong]), RULE) == ["advisory"]
    assert of(pack.analyze_stack([cluster, wrong]), KNOWN) == []
    assert of(pack.analyze_stack([cluster, unknown]), RULE) == []
    assert of(pack.analyze_stack([cluster, unknown]), KNOWN) == ["advisory"]


@pytest.mark.parametrize(
    "image",
    [
        "mirror.example/provider-aws/cloud-controller-manager:v1.30.5",
        "mirror.example:5000/k8s/provider-aws/cloud-controller-manager:v1.30.5@sha256:0123456789abcdef",
        "mirror.example/amazon/aws-cloud-controller-manager:v1.30.5",
        "mcr.microsoft.com/oss/kubernetes/azure-cloud-controller-manager:v1.30.13",
        "registry.k8s.io/cloud-provider-gcp/cloud-controller-manager:v30.0.0",
    ],
    ids=["mirror", "mirror with port and digest", "former repository", "Azure", "GCP"],
)
def test_a_wrong_version_is_reported_wherever_the_image_comes_from(pack: PolicyHost, image: str) -> None:
    assert of(pack.analyze_stack([eks(), ccm(container={"image": image})]), RULE) == ["advisory"]


@pytest.mark.parametrize(
    ("provider", "tag"), [("aws", "v1.30.5"), ("alicloud", "v2.11.2"), ("azure", "v1.30.13"), ("gce", "v30.0.0")]
)
def test_an_image_without_a_vendors_name_is_its_flags(pack: PolicyHost, provider: str, tag: str) -> None:
    container = {"image": f"mirror.example/cloud-controller-manager:{tag}", "args": [f"--cloud-provider={provider}"]}

    assert of(pack.analyze_stack([eks(), ccm(container=container)]), RULE) == ["advisory"]


@pytest.mark.parametrize("version", ["v1.32.11", "v32.0.0"])
def test_azures_and_gcps_ccm_of_the_clusters_version_pass(pack: PolicyHost, version: str) -> None:
    azure, gcp = "example/azure-cloud-controller-manager", "example/cloud-provider-gcp/cloud-controller-manager"
    image = f"{azure if version.startswith('v1.') else gcp}:{version}"

    findings = pack.analyze_stack([eks(), ccm(container={"image": image})])

    assert of(findings, RULE) == of(findings, KNOWN) == []


@pytest.mark.parametrize("reference", ["@sha256:0123456789abcdef", "", ":latest", ":main"])
def test_an_image_that_does_not_tell_its_version_is_unknown(pack: PolicyHost, reference: str) -> None:
    mirrored = ccm(container={"image": f"mirror.example:5000/provider-aws/cloud-controller-manager{reference}"})

    findings = pack.analyze_stack([eks(), mirrored])

    assert of(findings, RULE) == []
    assert of(findings, KNOWN) == ["advisory"]


def test_the_clusters_version_is_read_from_a_kubeadm_configuration(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([machine(KUBEADM), manager("v1.30.5")]), RULE) == ["advisory"]


def test_a_ccm_of_unknown_image_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([eks(), ccm(container={"image": UNKNOWN})]), RULE) == ["not-evaluated"]


def test_a_version_that_the_matrix_does_not_have_is_reported_by_a_rule_of_its_own(pack: PolicyHost) -> None:
    findings = pack.analyze_stack([eks("1.99"), manager("v1.99.0")])

    [finding] = [each for each in findings if each.policy == KNOWN]
    assert f"the newest known row is Kubernetes {NEWEST}" in finding.message
    assert of(findings, RULE) == []


@pytest.mark.integration
def test_the_rules_can_be_told_the_version_of_a_cluster_that_is_not_managed() -> None:
    host = start({RULE: {"kubernetesVersion": "1.32"}})
    try:
        assert of(host.analyze_stack([manager("v1.30.5")]), RULE) == ["advisory"]
    finally:
        host.close()
