"""Rule `subnet-tag-load-balancer-role`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import of, resource

RULE = "subnet-tag-load-balancer-role"
CLUSTER = {"kubernetes.io/cluster/prod": "owned"}


def subnet(tags: Any) -> AnalyzedResource:
    return resource("aws:ec2/subnet:Subnet", {"cidrBlock": "10.0.0.0/20", "tags": tags})


def test_a_clusters_subnet_without_a_role_is_reported(pack: PolicyHost) -> None:
    [finding] = pack.analyze(subnet({**CLUSTER, "Name": "a"}))

    assert (finding.policy, finding.level) == (RULE, "advisory")
    assert "has the tag kubernetes.io/cluster/prod but neither" in finding.message


@pytest.mark.parametrize(
    "tags",
    [
        {**CLUSTER, "kubernetes.io/role/elb": "1"},
        {**CLUSTER, "kubernetes.io/role/internal-elb": ""},
        {"Name": "of no cluster"},
        None,
    ],
)
def test_one_role_tag_is_enough_and_other_subnets_need_none(pack: PolicyHost, tags: Any) -> None:
    assert of(pack.analyze(subnet(tags)), RULE) == []


def test_a_role_tag_that_is_switched_off_does_not_count(pack: PolicyHost) -> None:
    assert of(pack.analyze(subnet({**CLUSTER, "kubernetes.io/role/elb": "0"})), RULE) == ["advisory"]


def test_unknown_subnet_tags_are_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze(subnet(UNKNOWN)), RULE) == ["not-evaluated"]
