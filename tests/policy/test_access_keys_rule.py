"""Rule `ccm-avoid-access-key`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, PropertyMap
from tests.policy_objects import EXEMPT, ccm, of, resource

RULE = "ccm-avoid-access-key"
HUSH = "hUsh4Ever"
ACK = resource("alicloud:cs/managedKubernetes:ManagedKubernetes", {"version": "1.34.1-aliyun.1"}, "prod")
ECS = resource("alicloud:ecs/instance:Instance", {}, "node")
EKS = resource("aws:eks/cluster:Cluster", {"version": "1.36"}, "prod")
EC2 = resource("aws:ec2/launchTemplate:LaunchTemplate", {}, "nodes")
RAM_KEY = resource("alicloud:ram/accessKey:AccessKey", {"userName": "ccm"}, "key")
IAM_KEY = resource("aws:iam/accessKey:AccessKey", {"user": "ccm"}, "key")
RRSA = "on ACK, pods take RAM roles (RRSA)"
IRSA = "on EKS, pods take IAM roles (IRSA)"
AWS_FILE = f"[default]\naws_access_key_id = AKIAABCDEFGHIJKLMNOP\naws_secret_access_key = {HUSH}\n"
ALICLOUD_FILE = f'{{"Global": {{"accessKeySecret": "{HUSH}"}}}}'


def with_variable(name: Any, workload: str = "ccm") -> AnalyzedResource:
    return ccm(container={"env": [{"name": "REGION", "value": "cn-hangzhou"}, {"name": name}]}, name=workload)


def secret(data: Any, name: str = "cloud") -> AnalyzedResource:
    return resource(
        "kubernetes:core/v1:Secret", {"metadata": {"name": name, "namespace": "kube-system"}, "stringData": data}, name
    )


def mounting(name: str = "cloud", container: PropertyMap | None = None) -> AnalyzedResource:
    return ccm(volumes=[{"name": "v", "secret": {"secretName": name}}], container=container)


READING = ccm(container={"envFrom": [{"secretRef": {"name": "cloud"}}]})


@pytest.mark.parametrize(
    ("stack", "offender", "said"),
    [
        ([ACK], RAM_KEY, f"an access key does not expire, wherever it has leaked to; {RRSA}"),
        ([EKS], IAM_KEY, f"an access key does not expire, wherever it has leaked to; {IRSA}"),
        ([EC2], IAM_KEY, "machines of EC2 have IAM roles (instance profiles)"),
        ([ACK], with_variable("ACCESS_KEY_ID"), f"the container gets an access key by ACCESS_KEY_ID; {RRSA}"),
        ([ECS], with_variable("ALIBABA_CLOUD_ACCESS_KEY_SECRET"), "machines of ECS have RAM roles"),
        ([EKS], with_variable("AWS_ACCESS_KEY_ID"), f"the container gets an access key by AWS_ACCESS_KEY_ID; {IRSA}"),
        ([EKS, READING], secret({"AWS_SECRET_ACCESS_KEY": HUSH}), "the CCM reads an access key from entry AWS_SECRET"),
        ([EKS, mounting()], secret({"credentials": AWS_FILE}), f"from entry credentials; {IRSA}"),
        ([ACK, mounting()], secret({"cloud.conf": ALICLOUD_FILE}), "from entry cloud.conf"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_an_access_key_where_there_are_roles_is_reported(
    pack: PolicyHost, stack: list[AnalyzedResource], offender: AnalyzedResource, said: str
) -> None:
    [finding] = [each for each in pack.analyze_stack([*stack, offender]) if each.policy == RULE]

    assert (finding.urn, finding.level, finding.severity) == (offender.urn, "advisory", "high")
    assert said in finding.message
    assert HUSH not in finding.message


@pytest.mark.parametrize(
    "resources",
    [
        [ACK, EKS, ccm()],
        [ACK, with_variable("ACCESS_KEY_ID", EXEMPT)],
        [RAM_KEY, IAM_KEY, with_variable("ACCESS_KEY_ID")],
        [EKS, with_variable("AWS_WEB_IDENTITY_TOKEN_FILE")],
        [EKS, RAM_KEY],
        [EKS, mounting("other"), secret({"credentials": AWS_FILE})],
        [EKS, mounting(), secret({"cloud.conf": "[Global]\nKubernetesClusterID = a\n"})],
        [EKS, mounting(), secret({"cloud.conf": UNKNOWN})],
        [EKS, mounting(), secret(UNKNOWN)],
    ],
    ids=["roles", "exempt", "no roles", "a token", "another cloud's", "not the CCM's", "no key", "a text", "data"],
)  # fmt: skip
def test_roles_exemptions_and_other_clusters_pass(pack: PolicyHost, resources: Any) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_an_unknown_variable_of_the_ccm_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([ACK, with_variable(UNKNOWN)]), RULE) == ["not-evaluated"]
