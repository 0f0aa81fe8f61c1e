"""Rule `ccm-workload-fit-kubernetes`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cloud_controller.clouds.aws.versions import NEWEST
from local.engine.policies.host import AnalyzedResource, PolicyHost
from local.engine.values import UNKNOWN
from tests.policy_objects import EXEMPT, ccm, of, resource, start

RULE = "ccm-workload-fit-kubernetes"
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


def test_a_ccm_of_unknown_image_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([eks(), ccm(container={"image": UNKNOWN})]), RULE) == ["not-evaluated"]


@pytest.fixture(scope="module")
def strict() -> Iterator[PolicyHost]:
    """The pack, told the version, for which the matrix has no row."""
    host = start({RULE: {"kubernetesVersion": "1.99", "refuseUnknown": True}})
    yield host
    host.close()


def test_refuse_unknown_reports_a_version_newer_than_the_matrix(strict: PolicyHost) -> None:
    [finding] = [each for each in strict.analyze_stack([manager("v1.99.0")]) if each.policy == RULE]

    assert f"the newest known row is Kubernetes {NEWEST}" in finding.message
