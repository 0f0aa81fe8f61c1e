"""The cloud put together: keys of roles from the stand-in's STS and metadata service, and what it offers."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from cloud_controller.cloud import AccessDenied, NotFound
from cloud_controller.clouds.alicloud.cloud import AliCloud
from cloud_controller.clouds.alicloud.config import METADATA
from cloud_controller.clouds.alicloud.credentials import PROVIDER, ROLE, TOKEN_FILE
from cloud_controller.clouds.alicloud.permissions import actions
from local.alicloud.sts import add_issuer, add_role
from tests.cloud_controller.clouds.alicloud.account import CONFIG, PRODUCTS, Account

SUBJECT, URL = "system:serviceaccount:kube-system:ccm", "https://oidc.example.com/c-1"
MACHINES = ("node", "node-lifecycle")


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def without_role(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (ROLE, PROVIDER, TOKEN_FILE):
        monkeypatch.delenv(name, raising=False)
    yield


def token(key: rsa.RSAPrivateKey) -> str:
    claims = {"iss": URL, "sub": SUBJECT, "aud": ["sts.aliyuncs.com"], "exp": time.time() + 600}
    parts = (base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in ({"alg": "RS256"}, claims))
    signed = b".".join(parts)
    signature = base64.urlsafe_b64encode(key.sign(signed, padding.PKCS1v15(), hashes.SHA256())).rstrip(b"=")
    return b".".join((signed, signature)).decode()


def keyless(url: str) -> AliCloud:
    """The cloud of a config without a key."""
    endpoints = dict.fromkeys((*PRODUCTS, METADATA), url)
    return AliCloud(replace(CONFIG, access_key=None, endpoints=endpoints))


@pytest.mark.integration
def test_a_pod_with_a_role_acts_with_its_rights_alone(
    alicloud: Account, alicloud_url: str, key: rsa.RSAPrivateKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    with alicloud.standin.changing() as world:
        monkeypatch.setenv(PROVIDER, add_issuer(world, "c-1", URL, public.decode()))
        monkeypatch.setenv(ROLE, add_role(world, "ccm", [SUBJECT], actions(MACHINES)))
    path = tmp_path / "token"
    path.write_text(token(key))
    monkeypatch.setenv(TOKEN_FILE, str(path))
    machine = alicloud.machine("one")
    cloud = keyless(alicloud_url)

    cloud.check_access(MACHINES)

    assert [each.id for each in cloud.instances.list()] == [machine]
    with pytest.raises(AccessDenied, match="vpc:DescribeRouteTableList"):
        cloud.routes.list()
    assert alicloud.calls()["sts.AssumeRoleWithOIDC"] == 1


@pytest.mark.integration
@pytest.mark.usefixtures("without_role")
def test_a_machine_with_a_role_acts_with_its_rights(alicloud: Account, alicloud_url: str) -> None:
    with alicloud.standin.changing() as world:
        add_role(world, "ccm-machine", ["ecs"], actions())
    machine = alicloud.machine("one", role="ccm-machine")
    alicloud.standin.metadata.machine = machine

    assert [each.id for each in keyless(alicloud_url).instances.list()] == [machine]


def test_check_access_is_one_call_without_rights_and_refuses_a_wrong_key(alicloud: Account) -> None:
    alicloud.cloud().check_access(MACHINES)
    assert alicloud.calls() == {"sts.GetCallerIdentity": 1}

    assert CONFIG.access_key is not None
    wrong = replace(CONFIG.access_key, id="LTAI-nobodys")
    with pytest.raises(AccessDenied, match=r"InvalidAccessKeyId\.NotFound"):
        alicloud.cloud(access_key=wrong).check_access(MACHINES)


def test_the_cluster_is_not_the_clouds_to_give_access_to(alicloud: Account) -> None:
    with pytest.raises(NotFound):
        alicloud.cloud().cluster_access()


def test_no_key_is_in_the_text_of_the_cloud(alicloud: Account) -> None:
    assert CONFIG.access_key is not None
    assert CONFIG.access_key.secret not in repr(alicloud.cloud())
