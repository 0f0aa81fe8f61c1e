"""Rule `ram-role-limit-trust`; what both clouds' documents have in common: `clouds/aws/test_trust_rule.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import of, resource

RULE = "ram-role-limit-trust"
PROVIDER = {"Federated": ["acs:ram::1234567890123456:oidc-provider/ack"]}
ACCOUNT = "system:serviceaccount:kube-system:ccm"


def role(*statements: Any, text: Any = None, key: str = "assumeRolePolicyDocument", **more: Any) -> AnalyzedResource:
    document = json.dumps({"Version": "1", "Statement": [*statements]}) if text is None else text
    return resource("alicloud:ram/role:Role", {key: document, **more}, "ccm")


def trust(principal: Any, **condition: Any) -> dict[str, Any]:
    more = {"Condition": {"StringEquals": {key.replace("_", ":"): value for key, value in condition.items()}}}
    return {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole", **(more if condition else {})}


@pytest.mark.parametrize("key", ["assumeRolePolicyDocument", "document"])
@pytest.mark.parametrize("principal", [{"RAM": ["*"]}, {"RAM": "acs:ram::*:root"}, "*"])
def test_a_role_that_everyone_may_take_is_reported(pack: PolicyHost, principal: Any, key: str) -> None:
    [finding] = pack.analyze(role(trust({"Service": ["ecs.aliyuncs.com"]}), trust(principal), key=key))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "mandatory", "high")
    assert finding.message == f"{key}: Statement[1] lets everyone take the role (Principal *)"


def test_a_role_for_tokens_without_a_condition_on_their_subject_is_reported(pack: PolicyHost) -> None:
    [finding] = pack.analyze(role(trust(PROVIDER, oidc_aud="sts.aliyuncs.com")))

    assert "no condition on the token's subject (:sub)" in finding.message


def test_a_subject_that_is_like_every_account_is_reported(pack: PolicyHost) -> None:
    wide = trust(PROVIDER) | {"Condition": {"StringLike": {"oidc:sub": ["system:serviceaccount:*"]}}}

    [finding] = pack.analyze(role(wide))

    assert "is like system:serviceaccount:*" in finding.message


@pytest.mark.parametrize(
    "fine",
    [
        role(trust({"Service": ["ecs.aliyuncs.com"]})),
        role(trust({"RAM": ["acs:ram::1234567890123456:root"]})),
        role(trust(PROVIDER, oidc_aud="sts.aliyuncs.com", oidc_sub=ACCOUNT)),
        resource("alicloud:ram/role:Role", {"services": ["ecs.aliyuncs.com"]}),
    ],
)
def test_roles_for_those_who_are_named_pass(pack: PolicyHost, fine: AnalyzedResource) -> None:
    assert of(pack.analyze(fine), RULE) == []


def test_an_unknown_trust_policy_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze(role(text=UNKNOWN)), RULE) == ["not-evaluated"]
