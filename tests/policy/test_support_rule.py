"""Rule `cluster-version-stay-supported`. Days are given to the function, so that no test ages."""

from __future__ import annotations

from datetime import date

import pytest

from cloud_controller.known_versions import support_problem
from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.cluster_objects import KUBEADM, eks, machine
from tests.policy_objects import of

RULE = "cluster-version-stay-supported"


@pytest.mark.parametrize(
    ("version", "cloud", "today", "said"),
    [
        ("1.36", "upstream", date(2027, 6, 29), "the support of Kubernetes 1.36 ended on 2027-06-28"),
        ("1.36", "upstream", date(2027, 6, 28), "the support of Kubernetes 1.36 ends on 2027-06-28"),
        ("1.36", "upstream", date(2027, 4, 29), "the support of Kubernetes 1.36 ends on 2027-06-28"),
        ("1.36", "upstream", date(2027, 4, 28), None),
        ("1.36.1-aliyun.1", "alicloud", date(2027, 6, 1), "the support of Kubernetes 1.36 ended on 2027-05-30"),
        ("1.35", "aws", date(2027, 3, 1), "the support of Kubernetes 1.35 ends on 2027-03-27"),
        ("1.36", "aws", date(2027, 6, 29), "the support of Kubernetes 1.36 ended on 2027-06-28"),
        ("1.99", "upstream", date(2027, 1, 1), "no date is known for the support of Kubernetes 1.99"),
    ],
    ids=["over", "last day", "60 days ahead", "61 days ahead", "ACK", "EKS", "EKS without a row", "unknown"],
)
def test_the_end_of_support_is_reported_ahead(version: str, cloud: str, today: date, said: str | None) -> None:
    message = support_problem(version, cloud, 60, today)

    assert message is None if said is None else said in (message or "")


@pytest.mark.parametrize(
    "resources",
    [[eks("1.29")], [machine(KUBEADM.replace("v1.36.1", "v1.29.3"))], [eks("1.99")]],
    ids=["EKS", "own", "unknown"],
)
def test_a_cluster_that_is_not_known_to_be_supported_is_reported(
    pack: PolicyHost, resources: list[AnalyzedResource]
) -> None:
    assert of(pack.analyze_stack(resources), RULE) == ["advisory"]


def test_a_stack_without_a_version_is_skipped(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([machine("kubeadm join --config /run/join.yaml")]), RULE) == []


def test_an_unknown_version_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([eks(UNKNOWN)]), RULE) == ["not-evaluated"]
