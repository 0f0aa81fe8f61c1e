"""A token assumes only the roles that trust its ServiceAccount; a forged one assumes none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from local.aws.signatures import Refused
from local.aws.web_identity import Provider, check_token, check_trust, claims_of
from local.control_plane.pki import create_signing_key
from tests.local.tokens import signed_token

PRIVATE, PUBLIC = create_signing_key()
URL = "oidc.eks.eu-central-1.amazonaws.com/id/ABC"
PROVIDER = Provider(f"arn:aws:iam::123456789012:oidc-provider/{URL}", URL, ("sts.amazonaws.com",))
ACCOUNT = "system:serviceaccount:kube-system:ccm"


def token(key: str = PRIVATE, **changed: Any) -> str:
    """A token as the API server issues it."""
    expires = (datetime.now(UTC) + timedelta(hours=1)).timestamp()
    claims = {"iss": f"https://{URL}", "sub": ACCOUNT, "aud": ["sts.amazonaws.com"], "exp": expires, **changed}
    private = serialization.load_pem_private_key(key.encode(), None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    return signed_token(claims, private)


def trust(conditions: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """A trust policy as the stack writes it for its CCM's role."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Federated": PROVIDER.arn},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": conditions or {"StringEquals": {f"{URL}:sub": ACCOUNT, f"{URL}:aud": "sts.amazonaws.com"}},
        **changed,
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


def test_a_token_of_the_cluster_is_accepted() -> None:
    check_token(token(), PUBLIC, PROVIDER)


@pytest.mark.parametrize(
    ("made", "code"),
    [
        pytest.param(lambda: token(create_signing_key()[0]), "InvalidIdentityToken", id="another cluster's key"),
        pytest.param(lambda: token(aud=["kubernetes"]), "InvalidIdentityToken", id="for another audience"),
        pytest.param(lambda: token(exp=1.0), "ExpiredTokenException", id="over"),
        pytest.param(lambda: token().rpartition(".")[0] + ".", "InvalidIdentityToken", id="unsigned"),
    ],
)
def test_a_token_of_another_issuer_audience_or_time_is_refused(made: Any, code: str) -> None:
    with pytest.raises(Refused) as raised:
        check_token(made(), PUBLIC, PROVIDER)

    assert raised.value.code == code


@pytest.mark.parametrize("text", ["", "a", "a.b.c", "e30.e30.e30", "§.§.§"])
def test_a_malformed_token_is_refused(text: str) -> None:
    with pytest.raises(Refused) as raised:
        claims_of(text)

    assert raised.value.code == "InvalidIdentityToken"


@pytest.mark.parametrize(
    "policy",
    [
        trust(),
        trust({"StringLike": {f"{URL}:sub": "system:serviceaccount:kube-system:*"}}),
        {"Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}}, *trust()["Statement"]]},
    ],
)
def test_a_role_that_trusts_the_service_account_is_assumed(policy: dict[str, Any]) -> None:
    check_trust(policy, token(), PROVIDER)


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param({}, id="nobody"),
        pytest.param(trust(Effect="Deny"), id="denied"),
        pytest.param({"Statement": [*trust()["Statement"], *trust(Effect="Deny")["Statement"]]}, id="both"),
        pytest.param(trust(Action="sts:AssumeRole"), id="by another call"),
        pytest.param(trust(Principal={"Federated": "arn:aws:iam::1:oidc-provider/else"}), id="another issuer"),
        pytest.param(trust(Principal="*"), id="no provider named"),
        pytest.param(
            trust({"StringEquals": {f"{URL}:sub": "system:serviceaccount:default:ccm"}}), id="another account"
        ),
        pytest.param(trust({"StringEquals": {"else:sub": ACCOUNT}}), id="another issuer's subject"),
        pytest.param(trust({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}), id="a condition that is not known here"),
    ],
)
def test_a_role_that_trusts_others_cannot_be_assumed(policy: dict[str, Any]) -> None:
    with pytest.raises(Refused) as raised:
        check_trust(policy, token(), PROVIDER)

    assert raised.value.code == "AccessDenied"
