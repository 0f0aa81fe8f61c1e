"""Rule `lb-service-annotations-take-effect`."""

from __future__ import annotations

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.services import ACK, LEGACY_INTERNAL, balanced, managed, ours, said
from tests.policy_objects import resource

RULE = "lb-service-annotations-take-effect"
CLB = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-"


def messages(pack: PolicyHost, *stack: AnalyzedResource) -> list[str]:
    return [finding.message for finding in said(pack, RULE, *stack)]


def test_an_annotation_with_effect_passes(pack: PolicyHost) -> None:
    assert messages(pack, ours("aws"), balanced(annotations={LEGACY_INTERNAL: "true", "team": "web"})) == []


@pytest.mark.parametrize("cloud", ["alicloud", "mycloud"])
def test_an_annotation_of_another_cloud_is_reported(pack: PolicyHost, cloud: str) -> None:
    [finding] = said(pack, RULE, ours(cloud), balanced(annotations={LEGACY_INTERNAL: "true"}))

    assert (finding.level, finding.severity) == ("advisory", "low")
    assert finding.message == (
        f"annotation {LEGACY_INTERNAL} has no effect: it is aws's, and the load balancer is on {cloud}"
    )


def test_an_annotation_of_another_kind_of_load_balancer_is_reported(pack: PolicyHost) -> None:
    of_nlb = balanced(annotations={f"{CLB}zone-maps": "cn-hangzhou-k:vsw-1"})

    assert "only NLB load balancers have it" in messages(pack, managed(ACK), of_nlb)[0]


def test_what_our_controller_does_not_support_is_reported_only_where_it_serves(pack: PolicyHost) -> None:
    weight = balanced(annotations={f"{CLB}ignore-weight-update": "on"})

    assert "ignore-weight-update has no effect" in messages(pack, ours("alicloud"), weight)[0]
    assert messages(pack, managed(ACK), weight) == []


@pytest.mark.parametrize("value", ["", "false"])
def test_an_annotation_that_asks_for_nothing_passes(pack: PolicyHost, value: str) -> None:
    assert messages(pack, ours("mycloud"), balanced(annotations={LEGACY_INTERNAL: value})) == []


def test_nothing_is_said_where_the_cloud_is_not_known(pack: PolicyHost) -> None:
    both_clouds = [resource("aws:s3/bucket:Bucket", {}, "a"), resource("alicloud:ecs/eipAddress:EipAddress", {}, "b")]

    assert messages(pack, *both_clouds, balanced(annotations={LEGACY_INTERNAL: "true"})) == []


def test_an_unknown_value_hides_no_other_annotation(pack: PolicyHost) -> None:
    annotations = {LEGACY_INTERNAL: UNKNOWN, f"{CLB}spec": "slb.s1.small"}

    found = said(pack, RULE, ours("mycloud"), balanced(annotations=annotations))

    assert [finding.level for finding in found] == ["advisory", "not-evaluated"]
