"""Alibaba Cloud's cloud config: the file of Alibaba's own controller, with errors that show no secret."""

from __future__ import annotations

import base64
import json
import traceback
from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud import CLOUD
from cloud_controller.clouds.alicloud.cloud import AliCloud
from cloud_controller.clouds.alicloud.config import AccessKey, Config, parse, render
from cloud_controller.clouds.alicloud.endpoints import endpoint

REQUIRED = {"clusterID": "c-1", "region": "cn-hangzhou", "vpcid": "vpc-1"}
SECRET = "a-secret-that-nobody-sees"


def text(*, section: str = "Global", **values: Any) -> str:
    content: dict[str, Any] = {"Global": dict(REQUIRED)}
    content.setdefault(section, {}).update(values)
    return json.dumps(content)


def test_the_file_of_alibabas_controller_is_read_whole() -> None:
    config = parse(
        """{
          "Global": {
            "routeTableIDs": "vtb-1, vtb-2", "vpcid": "vpc-1", "vswitchid": "vsw-1", "region": "cn-hangzhou",
            "clusterID": "c-1", "zoneID": "cn-hangzhou-h", "serviceAccountName": "alibaba-cloud-controller-manager"
          },
          "CloudControllerManager": {
            "cloudConfigPath": "/etc/kubernetes/cloud-config.conf", "clusterCIDR": "10.244.0.0/16"
          }
        }"""
    )

    assert config == Config(
        "c-1",
        "cn-hangzhou",
        "vpc-1",
        vswitch_id="vsw-1",
        zone_id="cn-hangzhou-h",
        route_table_ids=("vtb-1", "vtb-2"),
        session_name="alibaba-cloud-controller-manager",
    )


def test_names_of_keys_are_case_insensitive() -> None:
    assert parse(text(vswitchID="vsw-1", ZoneId="cn-hangzhou-h")).zone_id == "cn-hangzhou-h"


@pytest.mark.parametrize(
    "config",
    [
        Config("c-1", "cn-hangzhou", "vpc-1"),
        Config(
            "c-1",
            "ap-southeast-1",
            "vpc-1",
            "vsw-1",
            "ap-southeast-1a",
            ("vtb-1",),
            "ccm",
            AccessKey("LTAI1", SECRET),
            "vpc",
            "uri",
            {"ecs": "http://127.0.0.1:1", "metadata": "http://127.0.0.1:2"},
        ),
    ],
)
def test_a_written_config_reads_back_as_it_was(config: Config) -> None:
    assert parse(render(config)) == config


def test_a_key_may_be_in_base64_as_alibabas_controller_wants_it() -> None:
    encoded = {
        "accessKeyID": base64.b64encode(b"LTAI1").decode(),
        "accessKeySecret": base64.b64encode(SECRET.encode()).decode(),
    }

    assert parse(text(**encoded)).access_key == AccessKey("LTAI1", SECRET)
    assert parse(text(accessKeyID="LTAI1", accessKeySecret=SECRET)).access_key == AccessKey("LTAI1", SECRET)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (text(vswitchids="vsw-1"), "Global: unknown key in Global; did you mean 'vswitchid'"),
        (json.dumps({"Globals": {}}), "section: unknown section; did you mean 'Global'"),
        (json.dumps({"Global": {"region": "cn-hangzhou", "vpcid": "vpc-1"}}), "clusterID: missing"),
        (json.dumps({"Global": {"clusterID": "c-1", "vpcid": "vpc-1"}}), "region: missing"),
        (json.dumps({"Global": {"clusterID": "c-1", "region": "cn-hangzhou"}}), "vpcid: missing"),
        (text(vpcid=SECRET), r"vpcid: not a valid ID \(allowed: vpc-…\)"),
        (text(routeTableIDs=f"vtb-1,{SECRET}"), "routeTableIDs: not a list of different IDs"),
        (text(routeTableIDs="vtb-1,vtb-1"), "routeTableIDs: not a list of different IDs"),
        (text(network=SECRET), r"network: not a valid value \(allowed: public, vpc\)"),
        (text(serveNlbClass=SECRET), r"serveNlbClass: not a valid value \(allowed: true, false\)"),
        (text(providerIDFormat=SECRET), r"providerIDFormat: not a valid value \(allowed: region, uri\)"),
        (text(accessKeyID="LTAI1"), "accessKeySecret: missing"),
        (text(accessKeySecret=SECRET), "accessKeyID: missing"),
        (text(accessKeyID=base64.b64encode(b"LTAI1").decode(), accessKeySecret=SECRET), "accessKeySecret: not base64"),
        (text(accessKeyID="LTAI1", accessKeySecret=f"{SECRET}\n"), "accessKeySecret: not valid in an HTTP header"),
        (text(vpcid=7), "vpcid: not a text"),
        (text(section="Endpoints", ecs=f"//{SECRET}"), "Endpoints: ecs: not a URL"),
        (text(section="CloudControllerManager", clusterCIDR=SECRET), "clusterCIDR: not a CIDR"),
        (f'{{"Global": "{SECRET}"}}', "Global: not a JSON object"),
        (f'["{SECRET}"]', "the file: not a JSON object"),
        (f'{{"Global": {{\n"a" "{SECRET}"}}}}', "line 2: not valid JSON"),
        (text(Vpcid="vpc-2"), "vpcid: appears twice"),
    ],
)
def test_an_invalid_config_is_an_error_that_names_the_place_and_no_value(content: str, why: str) -> None:
    with pytest.raises(InvalidConfiguration, match=why) as refused:
        parse(content)

    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_no_secret_is_in_the_config_as_text() -> None:
    assert SECRET not in repr(parse(text(accessKeyID="LTAI1", accessKeySecret=SECRET)))


REGIONS = (
    "ap-northeast-1",
    "ap-southeast-1",
    "ap-southeast-3",
    "ap-southeast-5",
    "cn-beijing",
    "cn-chengdu",
    "cn-guangzhou",
    "cn-hangzhou",
    "cn-hongkong",
    "cn-qingdao",
    "cn-shanghai",
    "cn-shenzhen",
    "cn-zhangjiakou",
    "eu-central-1",
    "me-east-1",
    "us-east-1",
    "us-west-1",
)


@pytest.mark.integration
@pytest.mark.parametrize("product", ["ecs", "vpc", "slb", "nlb", "sts"])
def test_public_endpoints_are_those_of_the_sdk(product: str) -> None:
    """The table is read from the SDK's source: importing its clients takes seconds."""
    import ast
    import importlib.util
    from pathlib import Path

    packages = {"ecs": "ecs20140526", "vpc": "vpc20160428", "slb": "slb20140515", "nlb": "nlb20220430"}
    spec = importlib.util.find_spec(f"alibabacloud_{packages.get(product, 'sts20150401')}")
    assert spec is not None and spec.origin is not None
    tree = ast.parse(Path(spec.origin).with_name("client.py").read_text())
    tables = (
        ast.literal_eval(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "self._endpoint_map"
    )
    table: dict[str, str] = next(tables, {})

    for region in REGIONS:
        theirs = table.get(region, f"{product}.{region}.aliyuncs.com")
        assert endpoint(Config("c", region, "vpc-1"), product) == f"https://{theirs}"


def test_endpoints_inside_vpcs_are_regional() -> None:
    config = Config("c", "cn-hangzhou", "vpc-1", network="vpc", endpoints={"slb": "http://127.0.0.1:1"})

    assert endpoint(config, "ecs") == "https://ecs-vpc.cn-hangzhou.aliyuncs.com"
    assert endpoint(config, "slb") == "http://127.0.0.1:1"
    assert endpoint(config, "metadata") == "http://100.100.100.200"


@pytest.mark.parametrize(("given", "served"), [({}, True), ({"serveNlbClass": "false"}, False)])
def test_the_class_of_alibabas_own_controller_is_served_unless_the_config_leaves_it_to_that(
    given: dict[str, str], served: bool
) -> None:
    config = parse(text(**given))

    classes = AliCloud(config).load_balancer_classes

    assert ("alibabacloud.com/nlb" in classes) is served
    assert classes == CLOUD.load_balancer_classes | (CLOUD.default_classes if served else frozenset())
    assert parse(render(config)) == config
