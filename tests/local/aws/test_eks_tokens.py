"""Tokens of EKS: valid ones, and those that the webhook rejects."""

from __future__ import annotations

import base64

import pytest

from local.aws.get_token import exec_credential, token
from local.aws.tokens import NotAToken, identity_url, principal

STS = "http://127.16.0.1:7070"


def made(endpoint: str = STS) -> str:
    return token("c1", endpoint, "eu-central-1", "AKIAEXAMPLEEXAMPLE12", "a-secret")


def changed(old: str, new: str) -> str:
    """A token with a changed request."""
    encoded = made().removeprefix("k8s-aws-v1.")
    url = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    assert old in url
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.replace(old, new).encode()).decode().rstrip("=")


def test_a_token_leads_to_the_sites_sts() -> None:
    url = identity_url(made(), STS)

    assert url.startswith(f"{STS}/?Action=GetCallerIdentity&Version=2011-06-15&")
    assert "X-Amz-SignedHeaders=host%3Bx-k8s-aws-id" in url


@pytest.mark.parametrize(
    "other",
    [
        "k8s-aws-v2.abc",
        "eyJhbGciOiJSUzI1NiJ9.e30.c2ln",
        "k8s-aws-v1.§",
        made("http://127.16.0.2:7070"),
        made("https://sts.eu-central-1.amazonaws.com"),
        changed("/?", "/latest/meta-data?"),
        changed("GetCallerIdentity", "DeleteRole"),
        changed("Version=", "RoleName=a&Version="),
        changed("Version=", "Action=DeleteRole&Version="),
        changed("x-k8s-aws-id", "x-other"),
        changed("X-Amz-Expires=60", "X-Amz-Expires=6000"),
    ],
)
def test_a_token_that_leads_elsewhere_or_requests_more_is_invalid(other: str) -> None:
    with pytest.raises(NotAToken):
        identity_url(other, STS)


@pytest.mark.parametrize(
    ("arn", "counts_as"),
    [
        ("arn:aws:iam::123456789012:user/site", "arn:aws:iam::123456789012:user/site"),
        ("arn:aws:sts::123456789012:assumed-role/admin/me", "arn:aws:iam::123456789012:role/admin"),
    ],
)
def test_a_session_counts_as_its_role(arn: str, counts_as: str) -> None:
    assert principal(arn) == counts_as


def test_kubernetes_clients_get_the_token_with_its_expiry() -> None:
    credential = exec_credential("k8s-aws-v1.abc")

    assert credential["kind"] == "ExecCredential"
    assert set(credential["status"]) == {"token", "expirationTimestamp"}  # type: ignore[call-overload]
