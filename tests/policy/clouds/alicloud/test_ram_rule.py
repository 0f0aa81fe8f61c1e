"""Rule `ram-policy-avoid-wildcards`; how documents are read: `clouds/aws/test_iam_rule.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud_controller.clouds.alicloud.permissions import statements
from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from components.clouds.alicloud.ram import allow
from local.plugins.values import UNKNOWN
from tests.policy_objects import of, resource

RULE = "ram-policy-avoid-wildcards"


def policy(*statements: Any, key: str = "policyDocument") -> AnalyzedResource:
    document = json.dumps({"Version": "1", "Statement": list(statements)})
    return resource("alicloud:ram/policy:Policy", {key: document}, "ccm")


def attachment(name: str, kind: str = "System", who: str = "role") -> AnalyzedResource:
    type_ = f"alicloud:ram/{who}PolicyAttachment:{who.capitalize()}PolicyAttachment"
    return resource(type_, {"policyName": name, "policyType": kind}, "ccm")


def test_a_policy_of_the_resource_manager_is_judged_like_rams(pack: PolicyHost) -> None:
    document = json.dumps({"Version": "1", "Statement": [allow(["slb:*"], ["*"])]})
    made = resource("alicloud:resourcemanager/policy:Policy", {"policyDocument": document})
    given = resource(
        "alicloud:resourcemanager/policyAttachment:PolicyAttachment",
        {"policyName": "AdministratorAccess", "policyType": "System"},
    )

    assert of(pack.analyze(made), RULE) == ["advisory"]
    assert of(pack.analyze(given), RULE) == ["advisory"]


def test_a_custom_policy_whose_name_is_unknown_passes(pack: PolicyHost) -> None:
    made = resource(
        "alicloud:ram/rolePolicyAttachment:RolePolicyAttachment", {"policyName": UNKNOWN, "policyType": "Custom"}
    )

    assert of(pack.analyze(made), RULE) == []


@pytest.mark.parametrize("key", ["policyDocument", "document"])
def test_a_ram_policy_that_allows_a_whole_product_is_reported_with_its_statement(pack: PolicyHost, key: str) -> None:
    [finding] = pack.analyze(policy(allow(["ecs:DescribeZones"], ["*"]), allow(["slb:*"], ["*"]), key=key))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "high")
    assert finding.message == "Statement[1] allows slb:*"


@pytest.mark.parametrize(
    "everything", ["*", "acs:*:*:*:*", "acs:*:*:*", "acs:slb:*:*:*", "acs:slb:*:1234567890123456:*"]
)
def test_changes_of_every_resource_are_reported(pack: PolicyHost, everything: str) -> None:
    [finding] = pack.analyze(policy(allow(["slb:DescribeLoadBalancers", "slb:DeleteLoadBalancer"], [everything])))

    assert finding.message == "Statement[0] allows slb:DeleteLoadBalancer on every resource"


def test_passing_any_role_is_reported(pack: PolicyHost) -> None:
    [finding] = pack.analyze(policy(allow(["ram:PassRole"], ["*"])))

    assert finding.message == "Statement[0] allows ram:PassRole on every resource"


@pytest.mark.parametrize("who", ["role", "user", "group"])
@pytest.mark.parametrize("name", ["AdministratorAccess", "PowerUserAccess", "AliyunSLBFullAccess"])
def test_a_policy_of_alibaba_clouds_own_that_allows_everything_is_reported(
    pack: PolicyHost, who: str, name: str
) -> None:
    [finding] = pack.analyze(attachment(name, who=who))

    assert finding.message == f"the policy {name} allows everything, of a product or of all"


@pytest.mark.parametrize(
    "fine",
    [
        policy(allow(["ecs:Describe*", "slb:ListTagResources"], ["*"])),
        policy(allow(["slb:DeleteLoadBalancer"], ["acs:slb:cn-hangzhou:*:*"])),
        policy({"Effect": "Deny", "Action": "*", "Resource": "*"}),
        policy(*statements("cn-hangzhou")),
        attachment("AliyunECSReadOnlyAccess"),
        attachment("AliyunSLBFullAccess", kind="Custom"),
    ],
)
def test_named_operations_reads_and_denials_pass(pack: PolicyHost, fine: AnalyzedResource) -> None:
    assert of(pack.analyze(fine), RULE) == []


@pytest.mark.parametrize(
    "unknown",
    [
        resource("alicloud:ram/policy:Policy", {"policyDocument": UNKNOWN}),
        resource(
            "alicloud:ram/rolePolicyAttachment:RolePolicyAttachment", {"policyName": UNKNOWN, "policyType": "System"}
        ),
    ],
)
def test_an_unknown_policy_is_not_evaluated(pack: PolicyHost, unknown: AnalyzedResource) -> None:
    assert of(pack.analyze(unknown), RULE) == ["not-evaluated"]
