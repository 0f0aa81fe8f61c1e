"""Keys for a time: for the holder of a trusted token, and for a machine with a role."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from local.alicloud import machines
from local.alicloud.metadata import TOKEN, TTL
from local.alicloud.sts import add_issuer, add_role
from local.http_messages import Request
from tests.local.alicloud.caller import Refused, call, request
from tests.local.alicloud.conftest import Site
from tests.local.tokens import signed_token

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
URL, SUBJECT = "https://oidc.example.com/c-1", "system:serviceaccount:kube-system:ccm"


def public(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    pem, kind = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(pem, kind).decode()


def token(site: Site, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = RSA_KEY, **changed: Any) -> str:
    """A token as an API server issues it."""
    claims = {"iss": URL, "sub": SUBJECT, "aud": ["sts.aliyuncs.com"], "exp": site.clock() + 600}
    return signed_token({**claims, **changed}, key)


def assume(site: Site, token: str, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = RSA_KEY, **more: Any) -> Any:
    with site.cloud.changing() as account:
        provider = add_issuer(account, "c-1", URL, public(key))
        role = add_role(account, "ccm", [SUBJECT], ["ecs:*"])
    parameters = {"OIDCProviderArn": provider, "RoleArn": role, "RoleSessionName": "ccm", "OIDCToken": token, **more}
    return call(site.cloud, "sts.AssumeRoleWithOIDC", **parameters)


@pytest.mark.parametrize("key", [RSA_KEY, EC_KEY], ids=["rsa", "ec"])
def test_a_trusted_token_gets_a_key_that_signs_until_it_expires(
    site: Site, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
) -> None:
    answer = assume(site, token(site, key), key, DurationSeconds=900)

    lent = answer["Credentials"]
    sent = request(
        site.cloud,
        "ecs.DescribeInstances",
        {},
        lent["AccessKeyId"],
        lent["AccessKeySecret"],
        SecurityToken=lent["SecurityToken"],
    )
    assert site.cloud.answer(sent).status == 200
    assert lent["Expiration"] == "2026-11-23T08:15:00Z"
    assert answer["OIDCTokenInfo"]["Subject"] == SUBJECT


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"exp": 1.0}, "AuthenticationFail.OIDCToken.Expired"),
        ({"iss": "https://other"}, "AuthenticationFail.OIDCToken.IssuerNotMatch"),
        ({"aud": "other"}, "AuthenticationFail.OIDCToken.AudienceNotMatch"),
        ({"sub": "system:serviceaccount:default:other"}, "AuthenticationFail.NoPermission"),
    ],
)
def test_a_token_that_does_not_fit_is_refused(site: Site, claims: dict[str, Any], code: str) -> None:
    with pytest.raises(Refused) as refused:
        assume(site, token(site, **claims))

    assert refused.value.code == code


@pytest.mark.parametrize("wrong", ["not a token", "a.b.c"])
def test_what_is_no_token_is_refused(site: Site, wrong: str) -> None:
    with pytest.raises(Refused, match=r"OIDCToken\.Invalid"):
        assume(site, wrong)


def test_a_token_that_another_key_signed_is_refused(site: Site) -> None:
    with pytest.raises(Refused, match=r"OIDCToken\.Invalid"):
        assume(site, token(site, rsa.generate_private_key(public_exponent=65537, key_size=2048)))


def test_unknown_roles_providers_and_too_short_sessions_are_refused(site: Site) -> None:
    for wrong, code in (
        ({"RoleArn": "acs:ram::1:role/none"}, "EntityNotExist.Role"),
        ({"OIDCProviderArn": "acs:ram::1:oidc-provider/none"}, "EntityNotExist.OIDCProvider"),
        ({"DurationSeconds": 899}, "InvalidParameter.DurationSeconds"),
        ({"RoleSessionName": "a"}, "InvalidParameter.RoleSessionName"),
        ({"OIDCToken": ""}, "MissingOIDCToken"),
    ):
        with pytest.raises(Refused) as refused:
            assume(site, token(site), **wrong)
        assert refused.value.code == code


def test_a_role_is_assumed_by_the_accounts_keys_where_it_trusts_them(site: Site) -> None:
    with site.cloud.changing() as account:
        open_, closed = add_role(account, "open", ["*"]), add_role(account, "closed", [SUBJECT])

    assert call(site.cloud, "sts.AssumeRole", RoleArn=open_, RoleSessionName="me")["Credentials"]["SecurityToken"]
    with pytest.raises(Refused, match="403 NoPermission"):
        call(site.cloud, "sts.AssumeRole", RoleArn=closed, RoleSessionName="me")


def ask(site: Site, method: str, path: str, **headers: str) -> tuple[int, str]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = site.cloud.metadata(Request(method, path, "", sent, client="192.168.0.11"))
    assert answer is not None
    return answer.status, answer.body.decode()


def test_a_machine_reads_itself_and_the_key_of_its_role(site: Site) -> None:
    with site.cloud.changing() as account:
        add_role(account, "worker", ["ecs"])
        machines.set_instance(account, site.machines[1], role="worker")
    _, granted = ask(site, "PUT", "/latest/api/token", **{TTL: "60"})
    roles = "/latest/meta-data/ram/security-credentials/"

    assert ask(site, "GET", "/latest/meta-data/instance-id", **{TOKEN: granted}) == (200, site.machines[1])
    assert ask(site, "GET", "/latest/meta-data/zone-id", **{TOKEN: granted}) == (200, "cn-hangzhou-h")
    assert ask(site, "GET", roles, **{TOKEN: granted}) == (200, "worker")
    lent = json.loads(ask(site, "GET", f"{roles}worker", **{TOKEN: granted})[1])
    assert (lent["Code"], lent["Expiration"]) == ("Success", "2026-11-23T09:00:00Z")
    assert ask(site, "GET", f"{roles}other", **{TOKEN: granted})[0] == 404
    assert ask(site, "GET", roles)[0] == 403
    site.clock.now += 60
    assert ask(site, "GET", roles, **{TOKEN: granted})[0] == 403


def test_a_machine_without_a_role_has_no_key(site: Site) -> None:
    site.cloud.metadata.machine = site.machines[0]
    _, granted = ask(site, "PUT", "/latest/api/token", **{TTL: "60"})

    assert ask(site, "GET", "/latest/meta-data/ram/security-credentials/", **{TOKEN: granted})[0] == 404
    assert ask(site, "PUT", "/latest/api/token")[0] == 400


def test_other_paths_are_the_apis(site: Site) -> None:
    assert site.cloud.metadata(Request("POST", "/", "", {})) is None
