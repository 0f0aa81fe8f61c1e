"""Rule `iam-role-limit-trust`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import of, resource

RULE = "iam-role-limit-trust"
ISSUER = "oidc.eks.eu-central-1.amazonaws.com/id/0123"
PROVIDER = {"Federated": f"arn:aws:iam::123456789012:oidc-provider/{ISSUER}"}
ACCOUNT = "system:serviceaccount:kube-system:ccm"


def role(*statements: Any, text: Any = None, **more: Any) -> AnalyzedResource:
    document = json.dumps({"Version": "2012-10-17", "Statement": [*statements]}) if text is None else text
    return resource("aws:iam/role:Role", {"assumeRolePolicy": document, **more}, "ccm")


def trust(principal: Any, **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole", **more}


def subject(value: Any, operator: str = "StringEquals", key: str = f"{ISSUER}:sub") -> dict[str, Any]:
    """A statement for tokens with this condition."""
    return trust(PROVIDER, Condition={operator: {key: value}})


@pytest.mark.parametrize(
    "principal", ["*", {"AWS": "*"}, {"AWS": ["123456789012", "*"]}, {"AWS": "arn:aws:iam::*:root"}]
)
def test_a_role_that_everyone_may_take_is_reported(pack: PolicyHost, principal: Any) -> None:
    [finding] = pack.analyze(role(trust({"Service": "ec2.amazonaws.com"}), trust(principal)))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "mandatory", "high")
    assert finding.message == "assumeRolePolicy: Statement[1] lets everyone take the role (Principal *)"


def test_an_external_id_limits_nobody_and_is_not_shown(pack: PolicyHost) -> None:
    [finding] = pack.analyze(role(trust("*", Condition={"StringEquals": {"sts:ExternalId": "hunter2"}})))

    assert finding.policy == RULE
    assert "hunter2" not in finding.message


@pytest.mark.parametrize(
    "condition",
    [
        {"StringEqualsIfExists": {"aws:SourceAccount": "123456789012"}},
        {"ForAllValues:StringLike": {"aws:PrincipalOrgPaths": ["o-0123/*"]}},
        {"StringLike": {"aws:PrincipalArn": "*"}},
        {"StringLike": {"aws:PrincipalArn": "?*"}},
    ],
    ids=["passes without the key", "passes without a value", "anything", "anything but nothing"],
)
def test_a_condition_that_others_pass_too_limits_nobody(pack: PolicyHost, condition: Any) -> None:
    [finding] = pack.analyze(role(trust("*", Condition=condition)))

    assert finding.message == "assumeRolePolicy: Statement[0] lets everyone take the role (Principal *)"


def test_not_principal_is_reported(pack: PolicyHost) -> None:
    [finding] = pack.analyze(role({"Effect": "Allow", "NotPrincipal": {"AWS": "x"}, "Action": "sts:AssumeRole"}))

    assert finding.message == "assumeRolePolicy: Statement[0] lets everyone but its NotPrincipal take the role"


@pytest.mark.parametrize(
    "condition",
    [
        {},
        {"StringEquals": {f"{ISSUER}:aud": "sts.amazonaws.com"}},
        {"StringNotEquals": {f"{ISSUER}:sub": ACCOUNT}},
    ],
)
def test_a_role_for_tokens_without_a_condition_on_their_subject_is_reported(pack: PolicyHost, condition: Any) -> None:
    [finding] = pack.analyze(role(trust(PROVIDER, Condition=condition)))

    assert finding.message == (
        "assumeRolePolicy: Statement[0] lets every ServiceAccount of the cluster take the role: no condition on the "
        "token's subject (:sub)"
    )


@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "system:serviceaccount:*",
        "system:serviceaccount:*:*",
        "system:serviceaccount:*:ccm",
        "system:serviceaccount:**:ccm",
        "system:serviceaccount:?*:ccm",
        "system:*:ccm",
        "*:ccm",
        "*ccm",
        "system:serviceaccount:*ccm",
        "system:serviceaccount:kube-system*",
        "system:serviceaccount:kube-system:*",
        "system:serviceaccount:kube-system:?*",
        "system:*",
    ],
)
def test_a_subject_that_is_like_every_account_is_reported(pack: PolicyHost, pattern: str) -> None:
    [finding] = pack.analyze(role(subject([ACCOUNT, pattern], "StringLike")))

    assert finding.message == (
        f"assumeRolePolicy: Statement[0] lets every ServiceAccount take the role that is like {pattern}"
    )


@pytest.mark.parametrize(
    "fine",
    [
        role(trust({"Service": "ec2.amazonaws.com"})),
        role(trust({"AWS": "arn:aws:iam::123456789012:root"})),
        role(trust("*", Condition={"StringEquals": {"aws:PrincipalOrgID": "o-0123"}})),
        role({"Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRole"}),
        role(subject(ACCOUNT)),
        # No wildcard: no token has this subject.
        role(subject("system:serviceaccount:kube-system:*")),
        role(subject([ACCOUNT, "system:serviceaccount:kube-system:other"])),
        role(subject("system:serviceaccount:kube-system:ccm-*", "ForAnyValue:StringLike")),
        role(subject("system:serviceaccount:s*:ccm", "StringLike")),
        role(subject("repo:example/infra:*", "StringLike", "token.actions.githubusercontent.com:sub")),
        role(trust({"Federated": "cognito-identity.amazonaws.com"}, Action="sts:AssumeRoleWithWebIdentity")),
        role(trust({"Federated": "arn:aws:iam::123456789012:saml-provider/okta"}, Action="sts:AssumeRoleWithSAML")),
        resource("aws:iam/role:Role", {}),
        resource("aws:iam/policy:Policy", {"assumeRolePolicy": json.dumps({"Statement": trust("*")})}),
    ],
)
def test_roles_for_those_who_are_named_pass(pack: PolicyHost, fine: AnalyzedResource) -> None:
    assert of(pack.analyze(fine), RULE) == []


def test_a_document_that_cannot_be_read_is_a_finding_that_does_not_show_it(pack: PolicyHost) -> None:
    [finding] = pack.analyze(role(text="not JSON: hunter2"))

    assert finding.message.startswith("assumeRolePolicy: the policy document ")
    assert "hunter2" not in finding.message


def test_an_unknown_trust_policy_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze(role(text=UNKNOWN)), RULE) == ["not-evaluated"]
