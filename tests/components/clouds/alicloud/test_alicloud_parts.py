"""The parts of a cluster on Alibaba Cloud: ranges, systems of machine types, the start of machines, access."""

from __future__ import annotations

import importlib.util
import io
import json
import shutil
import string
import subprocess
import sys
from collections.abc import Sequence
from ipaddress import IPv4Network
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pulumi
import pytest

from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.alicloud.config import parse
from components.clouds.alicloud import access
from components.clouds.alicloud.network import vswitch_cidrs
from components.clouds.alicloud.nodes import image_type
from components.clouds.alicloud.user_data import machine
from components.clouds.common.user_data import kubeadm_control_plane, kubeadm_worker
from components.cluster import Cluster
from components.node_pool import NodePool

JOIN = {
    "region": "cn-hangzhou",
    "kubernetes_version": "1.36",
    "endpoint": "api.example.com",
    "pod_cidr": "172.20.0.0/16",
    "service_cidr": "172.21.0.0/20",
    "certificate_authority": "Q0E=",
}
KMS = Path(access.__file__).parent / "boot" / "kms.py"


@pytest.mark.parametrize("vpc", ["10.0.0.0/10", "172.16.0.0/12", "192.168.0.0/16"])
def test_the_vswitches_of_all_zones_lie_in_the_vpc_and_do_not_overlap(vpc: str) -> None:
    cidrs = vswitch_cidrs(vpc, [f"cn-hangzhou-{letter}" for letter in string.ascii_lowercase])

    ranges = [IPv4Network(cidr) for pair in cidrs.values() for cidr in pair]
    assert len(ranges) == 52
    assert all(each.subnet_of(IPv4Network(vpc)) and 16 <= each.prefixlen <= 29 for each in ranges)
    assert not any(a.overlaps(b) for index, a in enumerate(ranges) for b in ranges[:index])


def test_a_zone_that_is_added_leaves_the_others_ranges_alone() -> None:
    two, three = (vswitch_cidrs("10.0.0.0/16", [f"eu-central-1{z}" for z in zones]) for zones in ("bc", "abc"))

    assert two.items() <= three.items()


@pytest.mark.parametrize(
    ("machine_type", "system"),
    [
        ("ecs.g8y.large", "AliyunLinux3Arm64"),
        ("ecs.c6r.xlarge", "AliyunLinux3Arm64"),
        ("ecs.g8i.large", "AliyunLinux3"),
        ("ecs.r7.xlarge", "AliyunLinux3"),
        ("ecs.ebmg7.32xlarge", "AliyunLinux3"),
    ],
)
def test_the_system_of_nodes_matches_their_processor(machine_type: str, system: str) -> None:
    assert image_type(machine_type) == system


# ------------------------------------------------------------------------------------------------ the start of machines


@pytest.mark.integration
@pytest.mark.parametrize("render", [kubeadm_worker, lambda *args: kubeadm_control_plane(*args, first=True)])
def test_user_data_is_a_valid_bash_script(render: Any) -> None:
    bash = shutil.which("bash")
    assert bash

    text = render(machine(), "it's", JOIN, {"a": "b; rm -rf /"})

    checked = subprocess.run([bash, "-n"], input=text, capture_output=True, text=True, check=False, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "LABELS='a=b; rm -rf /'\n" in text  # a value is never code
    assert KMS.read_text() in text


@pytest.fixture
def kms() -> Any:
    """The program with which machines read and write their secrets."""
    spec = importlib.util.spec_from_file_location("kms", KMS)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ROLE_KEY = {"AccessKeyId": "STS.1", "AccessKeySecret": "a secret", "SecurityToken": "a token"}


def test_machines_sign_as_the_official_sdk_does(kms: Any) -> None:
    sdk = pytest.importorskip("alibabacloud_tea_openapi.utils")

    request = kms.signed(
        "kms.example", "GetSecretValue", {"SecretName": "a/b c"}, ROLE_KEY, "2026-11-23T08:00:00Z", "n"
    )

    headers = {name.lower(): value for name, value in request.header_items()}
    signed = SimpleNamespace(
        method="POST",
        pathname="/",
        query={},
        headers={n: v for n, v in headers.items() if n.startswith("x-acs-") or n in ("host", "content-type")},
    )
    digest = headers["x-acs-content-sha256"]
    theirs = sdk.Utils.get_authorization(signed, "ACS3-HMAC-SHA256", digest, "STS.1", "a secret")
    assert headers["authorization"] == theirs
    assert request.full_url == "https://kms.example/"  # no secret and no name is in a URL


@pytest.mark.parametrize(("verb", "action"), [("get", "GetSecretValue"), ("put", "PutSecretValue")])
def test_machines_read_and_write_secrets_with_their_role(
    verb: str, action: str, kms: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sent: list[Any] = []

    def fetched(request: Any) -> str:
        sent.append(request)
        if "aliyuncs.com" in request.full_url:
            return json.dumps({"SecretData": "a join token"})
        return {"token": "metadata token", "security-credentials/": "the-role\n"}.get(
            request.full_url.rpartition("/")[2] or "security-credentials/", json.dumps(ROLE_KEY)
        )

    monkeypatch.setattr(kms, "fetched", fetched)
    monkeypatch.setattr(sys, "stdin", io.StringIO("a new token"))

    kms.main("cn-hangzhou", verb, "cloud-controller/c/join-token")

    last = sent[-1]
    body = parse_qs(last.data.decode())
    assert (last.host, last.get_header("X-acs-action")) == ("kms.cn-hangzhou.aliyuncs.com", action)
    assert body["SecretName"] == ["cloud-controller/c/join-token"]
    assert body.get("SecretData") == (["a new token"] if verb == "put" else None)
    assert capsys.readouterr().out == ("a join token" if verb == "get" else "")
    assert sent[-2].full_url.endswith("/ram/security-credentials/the-role")


# ---------------------------------------------------------------------------------------------------------- access


def stack_config(**section: Any) -> Any:
    return {"alicloud": json.dumps({"region": "cn-hangzhou", **section})}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (name for names in access._KEYS for name in names):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_a_dynamic_provider_gets_the_cloud_config_with_the_access_key_of_its_environment(environment: Any) -> None:
    environment.setenv("ALICLOUD_ACCESS_KEY", "LTAI1")
    environment.setenv("ALICLOUD_SECRET_KEY", "the-key-of-a-program")

    config = parse(access.cloud_config(stack_config(), "c-1", "vpc-1"))

    assert (config.cluster_id, config.vpc_id, config.region) == ("c-1", "vpc-1", "cn-hangzhou")
    assert config.access_key and (config.access_key.id, config.access_key.secret) == ("LTAI1", "the-key-of-a-program")


def test_without_an_access_key_the_cloud_config_leaves_it_to_a_role(environment: Any) -> None:
    del environment

    assert parse(access.cloud_config(stack_config(), "c-1", "vpc-1")).access_key is None


@pytest.mark.parametrize(
    ("section", "asked"),
    [
        (
            {"controlPlane": "ack"},
            (
                "https://cs.cn-hangzhou.aliyuncs.com",
                "2015-12-15",
                "DescribeClusterUserKubeconfig",
                "/k8s/c-1/user_config",
                {"PrivateIpAddress": "true"},
            ),
        ),
        (
            {"publicApi": True},
            (
                "https://cs.cn-hangzhou.aliyuncs.com",
                "2015-12-15",
                "DescribeClusterUserKubeconfig",
                "/k8s/c-1/user_config",
                {"PrivateIpAddress": "false"},
            ),
        ),
        (
            {"controlPlane": "ecs"},
            (
                "https://kms.cn-hangzhou.aliyuncs.com",
                "2016-01-20",
                "GetSecretValue",
                "/",
                {"SecretName": "cloud-controller/c-1/kubeconfig"},
            ),
        ),
    ],
)
def test_a_dynamic_provider_reads_the_kubeconfig_from_ack_or_kms(
    section: Any, asked: Sequence[Any], environment: Any
) -> None:
    seen: list[Any] = []

    def read(_: Client, endpoint: str, version: str, action: str, path: str = "/", query: Any = None) -> Any:
        seen.append((endpoint, version, action, path, query))
        return {"config": "a kubeconfig", "SecretData": "a kubeconfig"}

    environment.setattr(Client, "read", read)

    assert access.kubeconfig(stack_config(**section), "c-1") == "a kubeconfig"
    assert seen == [asked]


# ------------------------------------------------------------------------------------------------------ wrong inputs


def cluster(zones: Sequence[str] = ("cn-hangzhou-h", "cn-hangzhou-i"), **more: Any) -> Cluster:
    given = {"region": "cn-hangzhou", "control_plane": "ack", "kubernetes_version": "1.34.1-aliyun.1", **more}
    return Cluster("c", {"cloud": "alicloud", "zones": zones, "settings": given})


def pool() -> NodePool:
    args: Any = {
        "cloud": "alicloud",
        "cluster_name": "c",
        "cluster_id": "c-1",
        "subnet_ids": {"cn-hangzhou-h": "vsw-1"},
        "join": {"control_plane": "ack"},
        "count": 1,
        "type": "ecs.g8i.large",
        "zones": ["cn-hangzhou-h"],
        "ingress": True,
    }
    return NodePool("p", args)


@pytest.mark.parametrize(
    ("make", "path", "hint"),
    [
        (lambda: cluster(["eu-central-1a"]), "zones[0]", "a zone of region cn-hangzhou"),
        (lambda: cluster(vpc_cidr="10.0.0.0/20"), "settings.vpc_cidr", "from /10 to /16"),
        (lambda: cluster(pod_cidr="100.64.0.0/16"), "settings.pod_cidr", "Alibaba Cloud uses itself"),
        (lambda: cluster(control_plane="ecs", kubernetes_version="1.36"), "settings.image", "required with"),
        (lambda: Cluster("c", {"cloud": "alicloud", "zones": ["cn-hangzhou-h"]}), "settings", "is missing"),
        (pool, "ingress", "is not supported on Alibaba Cloud"),
    ],
)
def test_a_wrong_input_is_refused_by_its_name(make: Any, path: str, hint: str, run_program: Any) -> None:
    with pytest.raises(pulumi.InputPropertyError) as caught:
        run_program(make)

    assert caught.value.property_path == path
    assert hint in caught.value.reason
