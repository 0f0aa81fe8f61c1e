"""A session may call what its role's policies name."""

from __future__ import annotations

from typing import Any

import pytest

from local.aws.rights import permits


def allow(*actions: str, **more: Any) -> dict[str, Any]:
    return {"Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*", **more}]}


DENY = {"Statement": {"Effect": "Deny", "Action": "ec2:CreateRoute", "Resource": "*"}}


@pytest.mark.parametrize(
    "policies",
    [
        [allow("ec2:CreateRoute")],
        [allow("ec2:*")],
        [allow("EC2:create*")],
        [allow("*")],
        [allow("ec2:DescribeVpcs"), allow("ec2:CreateRoute", Condition={"StringEquals": {"a": "b"}})],
        [{"Statement": {"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}}],
        [allow("ec2:CreateRoute"), {"Statement": {**DENY["Statement"], "Condition": {"Bool": {"a": "true"}}}}],
        [allow("ec2:*"), {"Statement": {"Effect": "Deny", "Action": "*", "NotResource": "arn:aws:ec2:*"}}],
    ],
)
def test_a_call_that_a_statement_allows_is_permitted(policies: list[dict[str, Any]]) -> None:
    assert permits(policies, "ec2:CreateRoute")


@pytest.mark.parametrize(
    "policies",
    [
        [],
        [allow("ec2:CreateRouteTable")],
        [allow("elasticloadbalancing:*")],
        [allow("ec2:CreateRoute"), DENY],
        [{"Statement": {"Effect": "Allow", "NotAction": "ec2:*", "Resource": "*"}}],
    ],
)
def test_a_call_that_no_statement_allows_is_denied(policies: list[dict[str, Any]]) -> None:
    assert not permits(policies, "ec2:CreateRoute")


def test_every_caller_may_call_get_caller_identity() -> None:
    assert permits([], "sts:GetCallerIdentity")
