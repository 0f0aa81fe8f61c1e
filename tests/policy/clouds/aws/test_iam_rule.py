"""Rule `iam-policy-avoid-wildcards`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud_controller.clouds.aws.permissions import statements
from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
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
        (allow("ec2:**"), "Statement[0] allows ec2:**"),
        (allow("ec2:?*"), "Statement[0] allows ec2:?*"),
        (allow("EC2:*"), "Statement[0] allows EC2:*"),
        (allow("e*:*"), "Statement[0] allows e*:*"),
        (allow("e?2:Describe*"), "Statement[0] allows e?2:Describe*"),
        (
            {"Effect": "Allow", "Action": "ec2:DeleteVpc", "NotResource": "arn:aws:ec2:::vpc/x"},
            "Statement[0] allows ec2:DeleteVpc on everything but its NotResource",
        ),
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
        resource("aws:iam/role:Role", {"assumeRolePolicy": json.dumps({"Statement": [allow("*")]})}),
    ],
)
def test_named_operations_denials_and_other_resources_pass(pack: PolicyHost, fine: AnalyzedResource) -> None:
    assert of(pack.analyze(fine), RULE) == []


def test_a_single_statement_outside_of_a_list_is_judged(pack: PolicyHost) -> None:
    single = resource("aws:iam/policy:Policy", {"policy": json.dumps({"Statement": allow("s3:*")})})

    assert of(pack.analyze(single), RULE) == ["advisory"]


@pytest.mark.parametrize(
    "action",
    ["iam:PassRole", "iam:passrole", "iam:Pass*", "sts:AssumeRole", "iam:AttachRolePolicy", "iam:CreateAccessKey"],
)
@pytest.mark.parametrize("every", ["*", "arn:aws:iam::123456789012:role/*", "arn:aws:iam::*:*"])
def test_operations_that_are_enough_to_take_any_right_are_reported_on_every_resource(
    pack: PolicyHost, action: str, every: str
) -> None:
    [finding] = pack.analyze(policy({"Effect": "Allow", "Action": ["ec2:RunInstances", action], "Resource": [every]}))

    assert finding.message == f"Statement[0] allows {action} on every resource, enough to take any right"


def test_they_pass_on_a_named_role(pack: PolicyHost) -> None:
    named = {"Effect": "Allow", "Action": "iam:PassRole", "Resource": "arn:aws:iam::123456789012:role/nodes"}

    assert of(pack.analyze(policy(named)), RULE) == []


def in_role(**props: Any) -> AnalyzedResource:
    return resource("aws:iam/role:Role", props, "nodes")


def test_a_roles_inline_policies_are_judged(pack: PolicyHost) -> None:
    texts = [json.dumps({"Statement": each}) for each in ([allow("ec2:DescribeVpcs")], [allow("ec2:*")])]

    [finding] = pack.analyze(in_role(inlinePolicies=[{"name": "x", "policy": text} for text in texts]))

    assert (finding.policy, finding.message) == (RULE, "inlinePolicies[1]: Statement[0] allows ec2:*")


MANAGED = "arn:aws:iam::aws:policy/"
ATTACHMENTS = {
    "rolePolicyAttachment": "policyArn",
    "userPolicyAttachment": "policyArn",
    "groupPolicyAttachment": "policyArn",
    "policyAttachment": "policyArn",
    "rolePolicyAttachmentsExclusive": "policyArns",
}


def attached(arn: Any, kind: str = "rolePolicyAttachment") -> AnalyzedResource:
    key = ATTACHMENTS[kind]
    return resource(f"aws:iam/{kind}:{kind[0].upper()}{kind[1:]}", {key: [arn] if key.endswith("s") else arn})


@pytest.mark.parametrize("kind", ATTACHMENTS)
@pytest.mark.parametrize(
    "name",
    [
        "AdministratorAccess",
        "PowerUserAccess",
        "IAMFullAccess",
        "AmazonEC2FullAccess",
        "job-function/SystemAdministrator",
    ],
)
def test_an_attachment_of_a_policy_of_awss_own_that_allows_everything_is_reported(
    pack: PolicyHost, kind: str, name: str
) -> None:
    [finding] = pack.analyze(attached(f"{MANAGED}{name}", kind))

    assert finding.message == f"the policy {name} allows everything, of a service or of all"


def test_managed_policies_of_a_role_are_judged(pack: PolicyHost) -> None:
    arns = [UNKNOWN, f"{MANAGED}AmazonEKSWorkerNodePolicy", "arn:aws-cn:iam::aws:policy/AdministratorAccess"]

    assert of(pack.analyze(in_role(managedPolicyArns=arns)), RULE) == ["advisory"]


@pytest.mark.parametrize(
    "arn",
    [
        f"{MANAGED}AmazonEKSClusterPolicy",
        f"{MANAGED}AmazonEC2ReadOnlyAccess",
        "arn:aws:iam::123456789012:policy/OurFullAccess",
        # It is made in the same update, and judged by itself.
        UNKNOWN,
    ],
)
def test_other_policies_may_be_attached(pack: PolicyHost, arn: Any) -> None:
    assert of(pack.analyze(attached(arn)), RULE) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not JSON: hunter2", "the policy document is not valid JSON, so nobody can tell what it allows"),
        ("", "the policy document is not valid JSON, so nobody can tell what it allows"),
        ('["hunter2"]', "the policy document is not a JSON object, so nobody can tell what it allows"),
        ('{"Version": "2012-10-17"}', "the policy document has no Statement"),
        (
            '{"Statement": {"Effect": "Allow", "Action": "s3:*", "Action": "s3:Get*", "Resource": "hunter2"}}',
            "the policy document has the key Action twice: which one counts is not certain",
        ),
    ],
)
def test_a_document_that_cannot_be_read_is_a_finding_that_does_not_show_it(
    pack: PolicyHost, text: str, said: str
) -> None:
    [finding] = pack.analyze(resource("aws:iam/policy:Policy", {"policy": text}))

    assert finding.message == said


def test_a_key_that_comes_twice_hides_no_other_problem(pack: PolicyHost) -> None:
    text = '{"Statement": [], "Statement": {"Effect": "Allow", "Action": "s3:*"}}'

    [finding] = pack.analyze(resource("aws:iam/policy:Policy", {"policy": text}))

    assert "Statement twice" in finding.message
    assert "Statement[0] allows s3:*" in finding.message


def test_an_unknown_iam_policy_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze(resource("aws:iam/policy:Policy", {"policy": UNKNOWN})), RULE) == ["not-evaluated"]


def test_an_unknown_inline_policy_hides_no_attachment(pack: PolicyHost) -> None:
    role = in_role(inlinePolicies=[{"policy": UNKNOWN}], managedPolicyArns=[f"{MANAGED}AdministratorAccess"])

    assert sorted(of(pack.analyze(role), RULE)) == ["advisory", "not-evaluated"]
