"""Rule `ccm-use-internal-endpoints`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.test_config_syntax_rule import ALICLOUD, AWS, MYCLOUD, alicloud, reading, secret
from tests.policy_objects import EXEMPT, of, resource

RULE = "ccm-use-internal-endpoints"
VPC = resource("aws:ec2/vpc:Vpc", {}, "net")
APIS = ("ec2", "elasticloadbalancing", "sts")
SAID = "the CCM calls these APIs by public addresses:"


def endpoint(api: Any, *, dns: bool = True, kind: str = "Interface") -> AnalyzedResource:
    service = api if api is UNKNOWN else f"com.amazonaws.eu-central-1.{api}"
    props = {"serviceName": service, "vpcEndpointType": kind, "privateDnsEnabled": dns}
    return resource("aws:ec2/vpcEndpoint:VpcEndpoint", props, f"{api}")


def overridden(*services: str) -> str:
    keys = "Region = eu-central-1\nURL = https://vpce.example\nSigningRegion = eu-central-1\n"
    return AWS + "".join(f'[ServiceOverride "{each}"]\nService = {each}\n{keys}' for each in services)


@pytest.mark.parametrize(
    ("cloud", "text", "others", "said"),
    [
        ("aws", AWS, [VPC], f"{SAID} ec2, elasticloadbalancing, sts"),
        ("aws", AWS, [VPC, endpoint("ec2"), endpoint("sts", dns=False)], f"{SAID} elasticloadbalancing, sts"),
        ("aws", AWS, [VPC, endpoint("ec2"), endpoint("sts"), endpoint("elasticloadbalancing", kind="Gateway")],
         f"{SAID} elasticloadbalancing"),
        ("aws", overridden("ec2", "elb", "sts"), [VPC], f"{SAID} elasticloadbalancing"),
        ("alicloud", alicloud(), [], f"{SAID} ecs, nlb, slb, sts"),
        ("alicloud", json.dumps({"Global": ALICLOUD, "Endpoints": {"ecs": "https://ecs.internal"}}), [],
         f"{SAID} nlb, slb, sts"),
    ],
)  # fmt: skip
def test_apis_that_are_called_over_the_internet_are_reported(
    pack: PolicyHost, cloud: str, text: str, others: list[AnalyzedResource], said: str
) -> None:
    stored = secret(text)

    found = pack.analyze_stack([reading(f"--cloud={cloud}"), stored, *others])

    [finding] = [each for each in found if each.policy == RULE]
    assert (finding.urn, finding.level, finding.severity) == (stored.urn, "advisory", "medium")
    assert finding.message.endswith(said)


@pytest.mark.parametrize(
    "resources",
    [
        [VPC, reading("--cloud=aws"), secret(AWS), *map(endpoint, APIS)],
        [VPC, reading("--cloud=aws"), secret(overridden("ec2", "elb", "elbv2", "sts"))],
        [reading("--cloud=aws"), secret(AWS)],
        [reading("--cloud=alicloud"), secret(alicloud(network="vpc"))],
        [reading("--cloud=mycloud"), secret(MYCLOUD)],
        [VPC, reading("--cloud=aws"), secret("[Global]\n")],
        [VPC, reading("--cloud=aws"), secret(UNKNOWN)],
        [VPC, reading("--cloud=aws", name=EXEMPT), secret(AWS, EXEMPT)],
    ],
    ids=["endpoints", "overrides", "a VPC of another program", "vpc", "mycloud", "another rule's", "unknown", "exempt"],
)
def test_internal_endpoints_pass(pack: PolicyHost, resources: Any) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_an_endpoint_for_an_unknown_service_is_not_evaluated(pack: PolicyHost) -> None:
    resources = [VPC, reading("--cloud=aws"), secret(AWS), endpoint(UNKNOWN)]

    assert of(pack.analyze_stack(resources), RULE) == ["not-evaluated"]


def test_apis_that_are_reached_by_endpoints_of_another_program_are_a_setting(pack: PolicyHost) -> None:
    found = pack.analyze_stack([reading("--cloud=alicloud"), secret(alicloud())])

    [finding] = [each for each in found if each.policy == RULE]
    assert "vpc" not in finding.message
