"""Rule `iam-policy-avoid-wildcards`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud_controller.clouds.aws.permissions import statements
from local.engine.policies.host import AnalyzedResource, PolicyHost
from local.engine.values import UNKNOWN
from tests.policy_objects import of, resource

RULE = "iam-policy-avoid-wildcards"


def policy(*allowed: Any, kind: str = "policy", **more: Any) -> AnalyzedResource:
    document = json.dumps({"Version": "2012-10-17", "Statement": list(allowed), **more})
    return resource(f"aws:iam/{kind}:{kind[0].upper()}{kind[1:]}", {"policy": document}, "ccm")


def allow(*actions: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": "*"}


@pytest.mark.parametrize("kind", ["policy", "rolePolicy", "userPolicy", "groupPolicy"])
def test_an_iam_policy_that_allows_a_whole_service_is_reported_with_its_statement(pack: PolicyHost, kind: str) -> None:
    [finding] = pack.analyze(policy(allow("ec2:DescribeVpcs"), allow("elasticloadbalancing:*"), kind=kind))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "high")
    assert finding.message == "Statement[1] allows elasticloadbalancing:*"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ({"Effect": "Allow", "Action": "*", "Resource": "*"}, "Statement[0] allows *"),
        ({"Effect": "Allow", "Action": "ec2:**", "Resource": "*"}, "Statement[0] allows ec2:**"),
        (
            {"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"},
            "Statement[0] allows everything but its NotAction",
        ),
    ],
)
def test_an_iam_policy_that_allows_everything_is_reported_in_every_form(
    pack: PolicyHost, statement: Any, said: str
) -> None:
    [finding] = pack.analyze(policy(statement))

    assert finding.message == said


@pytest.mark.parametrize(
    "fine",
    [
        policy(allow("ec2:Describe*", "ec2:CreateRoute")),
        policy({"Effect": "Deny", "Action": "*", "Resource": "*"}),
        policy(*statements(["node", "node-lifecycle", "route", "service"], "prod")),
        resource("aws:iam/policy:Policy", {"policy": "not JSON"}),
        resource("aws:iam/role:Role", {"assumeRolePolicy": json.dumps({"Statement": [allow("*")]})}),
    ],
)
def test_named_operations_denials_and_other_resources_pass(pack: PolicyHost, fine: AnalyzedResource) -> None:
    assert of(pack.analyze(fine), RULE) == []


def test_a_single_statement_outside_of_a_list_is_judged(pack: PolicyHost) -> None:
    single = resource("aws:iam/policy:Policy", {"policy": json.dumps({"Statement": allow("s3:*")})})

    assert of(pack.analyze(single), RULE) == ["advisory"]


def test_an_unknown_iam_policy_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze(resource("aws:iam/policy:Policy", {"policy": UNKNOWN})), RULE) == ["not-evaluated"]
