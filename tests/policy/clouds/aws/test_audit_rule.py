"""Rule `aws-cluster-audit-cloud-calls`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import of, resource, start

RULE = "aws-cluster-audit-cloud-calls"
CLUSTER = resource("aws:eks/cluster:Cluster", {}, "prod")
MACHINE = resource("aws:ec2/launchTemplate:LaunchTemplate", {}, "control-plane")


def trail(props: Any, name: str = "audit") -> AnalyzedResource:
    return resource("aws:cloudtrail/trail:Trail", props, name)


@pytest.mark.parametrize("made", [CLUSTER, MACHINE])
def test_a_cluster_without_a_trail_is_reported(pack: PolicyHost, made: AnalyzedResource) -> None:
    [finding] = [each for each in pack.analyze_stack([made]) if each.policy == RULE]

    assert (finding.level, finding.severity) == ("advisory", "medium")
    assert "set aws.auditDays" in finding.message


@pytest.mark.parametrize(
    "stack", [[CLUSTER, trail({"isMultiRegionTrail": True})], [], [resource("random:index:Id", {})]]
)
def test_a_trail_of_every_call_and_a_stack_without_a_cluster_pass(pack: PolicyHost, stack: Any) -> None:
    assert of(pack.analyze_stack(stack), RULE) == []


@pytest.mark.parametrize(
    ("props", "said"),
    [
        ({"isMultiRegionTrail": False}, "the trail records one region only"),
        ({}, "the trail records one region only"),
        ({"isMultiRegionTrail": True, "enableLogging": False}, "the trail is switched off"),
    ],
)
def test_a_trail_that_is_off_or_leaves_calls_out_is_reported(pack: PolicyHost, props: Any, said: str) -> None:
    made = trail(props)

    [finding] = [each for each in pack.analyze_stack([CLUSTER, made]) if each.policy == RULE]

    assert (finding.urn, finding.message) == (made.urn, said)


def test_a_trail_that_is_not_known_yet_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([CLUSTER, trail({"isMultiRegionTrail": UNKNOWN})]), RULE) == ["not-evaluated"]


@pytest.mark.integration
def test_the_setting_names_the_trail_that_is_managed_elsewhere() -> None:
    host = start({RULE: {"trail": "the organization's"}})
    try:
        assert of(host.analyze_stack([CLUSTER]), RULE) == []
    finally:
        host.close()
