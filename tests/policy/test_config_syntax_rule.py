"""Rule `ccm-cloud-config-valid`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import EXEMPT, ccm, of, resource

RULE = "ccm-cloud-config-valid"
HUSH = "hUsh4Ever"
OTHER = {"name": "web", "image": "registry.example/web:1.0.0"}
MYCLOUD = f"[Global]\nendpoint = https://api.mycloud.internal\ntoken = {HUSH}\ncluster-id = c-1\n"
AWS = "[Global]\nKubernetesClusterID = prod\nRegion = eu-central-1\nVPC = vpc-0123456789abcdef0\n"
OPENSTACK = f"[Global]\nauth-url = https://keystone/v3\nuser-id = u\npassword = {HUSH}\ntenant-id = t\n"
FROM_CLOUDS = "[Global]\nuse-clouds = true\ncloud = prod\nclouds-file = /etc/clouds.yaml\n"
ALICLOUD = {"clusterID": "c-1", "region": "cn-hangzhou", "vpcid": "vpc-1"}


def alicloud(**changed: Any) -> str:
    return json.dumps({"Global": {**ALICLOUD, **changed}})


def secret(text: Any, name: str = "config", key: str = "cloud.conf") -> AnalyzedResource:
    metadata = {"name": name, "namespace": "kube-system"}
    return resource("kubernetes:core/v1:Secret", {"metadata": metadata, "stringData": {key: text}}, name)


def reading(
    cloud: Any = "--cloud=mycloud", volume: Any = None, name: str = "config", mount: Any = None
) -> AnalyzedResource:
    volume = volume or {"secret": {"secretName": name}}
    return ccm(
        volumes=[{"name": "v", **volume}],
        container={
            "args": ["run", cloud, "--cloud-config=/etc/cloud/cloud.conf"],
            "volumeMounts": [{"name": "v", **(mount or {"mountPath": "/etc/cloud"})}],
        },
    )


@pytest.mark.parametrize(
    ("cloud", "text", "said"),
    [
        ("mycloud", MYCLOUD.replace("endpoint", "endpiont"),
         "entry cloud.conf: cloud config: line 2: unknown key in [Global]; did you mean 'endpoint'?"),
        ("mycloud", MYCLOUD.replace("cluster-id = c-1\n", ""), "[Global] cluster-id: missing"),
        ("mycloud", MYCLOUD.replace("[Global]", f"[Global {HUSH}]"), "line 1: not a known section"),
        ("mycloud", MYCLOUD.replace(HUSH, f'"{HUSH}'), "line 3: unclosed quote"),
        ("mycloud", f"{HUSH}\n", "line 1: not in a [section]"),
        ("aws", AWS.replace("VPC = vpc-", f"VPC = {HUSH}"), "[Global] VPC: not a valid ID"),
        ("openstack", OPENSTACK.replace("auth-url", "auth-ulr"), "did you mean 'auth-url'?"),
        ("openstack", OPENSTACK.replace("tenant-id", "trust-id"), "[Global] trust-id: trusts are not supported"),
        ("alicloud", alicloud(vpcid=HUSH), "Global: vpcid: not a valid ID"),
        ("alicloud", f'{{"Global": "{HUSH}', "line 1: not valid JSON"),
        ("alicloud", alicloud(**{HUSH: HUSH}), "unknown key in Global"),
        ("alicloud", alicloud(accessKeyID="LTAI1", accessKeySecret=f"{HUSH} {HUSH}"), "not valid in an HTTP header"),
    ],
)  # fmt: skip
def test_a_cloud_config_that_the_ccm_would_refuse_is_refused(
    pack: PolicyHost, cloud: str, text: str, said: str
) -> None:
    stored = secret(text)

    [finding] = [each for each in pack.analyze_stack([reading(f"--cloud={cloud}"), stored]) if each.policy == RULE]

    assert (finding.urn, finding.level, finding.severity) == (stored.urn, "mandatory", "high")
    assert said in finding.message
    assert HUSH not in finding.message


WRONG = secret("[Global]\n")


def test_the_cloud_config_of_a_ccm_that_runs_as_a_sidecar_is_judged(pack: PolicyHost) -> None:
    sidecar = reading()
    pod = sidecar.properties["spec"]["template"]["spec"]
    [manager] = pod["containers"]
    pod |= {"containers": [OTHER], "initContainers": [{**manager, "restartPolicy": "Always"}]}

    assert of(pack.analyze_stack([sidecar, WRONG]), RULE) == ["mandatory"]


ITEMS = [{"key": "aws.ini", "path": "cloud.conf"}]


@pytest.mark.parametrize(
    ("workload", "stored"),
    [
        (reading("--cloud-provider=aws"), WRONG),
        (reading(mount={"mountPath": "/etc/cloud/cloud.conf", "subPath": "cloud.conf"}), WRONG),
        (reading(volume={"projected": {"sources": [{"secret": {"name": "config"}}]}}), WRONG),
        (reading(volume={"secret": {"secretName": "config", "items": ITEMS}}), secret("[Global]\n", key="aws.ini")),
    ],
    ids=["cloud-provider", "subPath", "projected", "items"],
)
def test_the_cloud_config_is_found_wherever_it_is_mounted_from(
    pack: PolicyHost, workload: AnalyzedResource, stored: AnalyzedResource
) -> None:
    assert of(pack.analyze_stack([workload, stored]), RULE) == ["mandatory"]


@pytest.mark.parametrize(
    "resources",
    [
        [reading(), secret(MYCLOUD)],
        [reading(), secret(MYCLOUD.replace(f"token = {HUSH}", "token-file = /nowhere/token"))],
        [reading("--cloud=aws"), secret(AWS)],
        [reading("--cloud=alicloud"), secret(alicloud())],
        [reading("--cloud-provider=openstack"), secret(OPENSTACK)],
        [reading("--cloud=openstack"), secret(f"{OPENSTACK}cluster-id = c-1\n")],
        [reading("--cloud=openstack"), secret(FROM_CLOUDS)],
        [reading("--cloud-provider=vsphere"), WRONG],
        [reading(name="other"), WRONG],
        [reading(name=EXEMPT), secret("[Global]\n", EXEMPT)],
        [reading(), secret(UNKNOWN)],
        [reading(), resource(WRONG.type, {**WRONG.properties, "stringData": UNKNOWN}, "config")],
        [ccm(), WRONG],
    ],
    ids=[
        "mycloud",
        "token-file",
        "aws",
        "alicloud",
        "openstack's own",
        "openstack",
        "clouds.yaml",
        "another cloud",
        "not the CCM's",
        "exempt",
        "unknown",
        "unknown data",
        "unread",
    ],
)
def test_valid_cloud_configs_and_other_files_pass(pack: PolicyHost, resources: Any) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_an_unknown_word_beside_the_flags_of_the_ccm_matters_not(pack: PolicyHost) -> None:
    workload = reading()
    workload.properties["spec"]["template"]["spec"]["containers"][0]["args"].append(UNKNOWN)

    assert of(pack.analyze_stack([workload, WRONG]), RULE) == ["mandatory"]


def test_an_unknown_cloud_of_the_ccm_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([reading(UNKNOWN), WRONG]), RULE) == ["not-evaluated"]
