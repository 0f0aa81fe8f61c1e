"""Rule `ack-ccm-avoid-access-key`."""

from __future__ import annotations

from typing import Any

import pytest

from local.engine.policies.host import AnalyzedResource, PolicyHost
from local.engine.values import UNKNOWN
from tests.policy_objects import EXEMPT, ccm, of, resource

RULE = "ack-ccm-avoid-access-key"
CLUSTER = resource("alicloud:cs/managedKubernetes:ManagedKubernetes", {"version": "1.34.1-aliyun.1"}, "prod")
KEY = resource("alicloud:ram/accessKey:AccessKey", {"userName": "ccm"}, "ccm")


def with_variable(name: Any, workload: str = "ccm") -> AnalyzedResource:
    return ccm(container={"env": [{"name": "REGION", "value": "cn-hangzhou"}, {"name": name}]}, name=workload)


@pytest.mark.parametrize(
    ("offender", "said"),
    [
        (KEY, "a RAM user's access key does not expire; on ACK, pods take RAM roles (RRSA)"),
        (with_variable("ACCESS_KEY_ID"), "the container gets an access key by ACCESS_KEY_ID"),
        (with_variable("ALIBABA_CLOUD_ACCESS_KEY_SECRET"), "by ALIBABA_CLOUD_ACCESS_KEY_SECRET"),
    ],
)
def test_an_access_key_on_ack_is_reported(pack: PolicyHost, offender: AnalyzedResource, said: str) -> None:
    [finding] = [each for each in pack.analyze_stack([CLUSTER, offender]) if each.policy == RULE]

    assert (finding.urn, finding.level, finding.severity) == (offender.urn, "advisory", "high")
    assert said in finding.message


@pytest.mark.parametrize(
    "resources",
    [[CLUSTER, ccm()], [CLUSTER, with_variable("ACCESS_KEY_ID", EXEMPT)], [KEY, with_variable("ACCESS_KEY_ID")]],
    ids=["a role", "exempt", "no ACK cluster"],
)
def test_roles_exemptions_and_other_clusters_pass(pack: PolicyHost, resources: Any) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_an_unknown_variable_of_the_ccm_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([CLUSTER, with_variable(UNKNOWN)]), RULE) == ["not-evaluated"]
