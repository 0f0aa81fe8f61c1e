"""Rule `lb-service-serve-node-zones`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, Finding, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.services import balanced, ours, said
from tests.policy_objects import EXEMPT, resource

RULE = "lb-service-serve-node-zones"
AWS = "service.beta.kubernetes.io/aws-load-balancer-"
NLB = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-"


def subnets(zones: str) -> list[AnalyzedResource]:
    return [resource("aws:ec2/subnet:Subnet", {"availabilityZone": f"eu-1{zone}"}, f"subnet-{zone}") for zone in zones]


def switches(zones: str) -> list[AnalyzedResource]:
    return [resource("alicloud:vpc/switch:Switch", {"zoneId": f"cn-{zone}"}, f"switch-{zone}") for zone in zones]


def pool(
    of: list[AnalyzedResource], type: str = "aws:eks/nodeGroup:NodeGroup", field: str = "subnetIds", name: str = "nodes"
) -> AnalyzedResource:
    return resource(type, {field: UNKNOWN}, name, property_dependencies={field: [each.urn for each in of]})


def on_aws(of: list[AnalyzedResource], name: str = "web", **annotations: Any) -> AnalyzedResource:
    given = {f"{AWS}subnets": UNKNOWN, **{f"{AWS}{key.replace('_', '-')}": value for key, value in annotations.items()}}
    service = balanced(name, annotations=given, loadBalancerClass="cloud-controller/nlb")
    depends = {"metadata": [each.urn for each in of]}
    return resource(service.type, service.properties, name, property_dependencies=depends)


def found(pack: PolicyHost, *stack: AnalyzedResource) -> list[Finding]:
    return said(pack, RULE, ours("aws"), *stack)


def on_alicloud(zones: str, **more: str) -> AnalyzedResource:
    maps = ",".join(f"cn-{zone}:vsw-{zone}" for zone in zones)
    annotations = {f"{NLB}zone-maps": maps, **{f"{NLB}{key.replace('_', '-')}": value for key, value in more.items()}}
    return balanced(annotations=annotations, loadBalancerClass="cloud-controller/nlb")


def test_a_load_balancer_in_the_nodes_zones_passes(pack: PolicyHost) -> None:
    both = subnets("ab")

    assert found(pack, *both, pool(both), on_aws(both)) == []


def test_nodes_in_a_zone_that_the_load_balancer_does_not_serve_are_reported(pack: PolicyHost) -> None:
    a, b, c = subnets("abc")
    web = on_aws([a, b])

    [finding] = found(pack, a, b, c, pool([a, b, c]), web)

    assert (finding.level, finding.severity, finding.urn) == ("advisory", "medium", web.urn)
    assert finding.message == (
        f"the load balancer does not serve zone eu-1c, so the nodes there get no traffic (annotation {AWS}subnets)"
    )


def test_a_zone_of_the_load_balancer_without_nodes_is_reported(pack: PolicyHost) -> None:
    a, b = subnets("ab")

    [finding] = found(pack, a, b, pool([a]), on_aws([a, b]))

    assert "is in zone eu-1b, where no pool has nodes" in finding.message


@pytest.mark.parametrize(
    ("type", "field"),
    [
        ("aws:autoscaling/group:Group", "vpcZoneIdentifiers"),
        ("aws:ec2/instance:Instance", "subnetId"),
    ],
)
def test_every_kind_of_pool_counts(pack: PolicyHost, type: str, field: str) -> None:
    a, b = subnets("ab")

    assert len(found(pack, a, b, pool([b], type, field), on_aws([a]))) == 1


@pytest.mark.parametrize(
    "crossing",
    [
        {"cross_zone_load_balancing_enabled": "true"},
        {"attributes": "load_balancing.cross_zone.enabled=true"},
    ],
)
def test_balancing_across_zones_reaches_every_node(pack: PolicyHost, crossing: dict[str, str]) -> None:
    a, b = subnets("ab")

    assert found(pack, a, b, pool([b]), on_aws([a], **crossing)) == []


def test_the_control_planes_machines_are_no_backends(pack: PolicyHost) -> None:
    a, b = subnets("ab")

    assert found(pack, a, b, pool([a]), pool([b], name="shop-control-plane-0"), on_aws([a])) == []


def test_zones_that_zone_maps_names_count_on_alicloud_without_cross_zone(pack: PolicyHost) -> None:
    h, i = switches("hi")
    nodes = pool([h, i], "alicloud:cs/nodePool:NodePool", "vswitchIds")
    stack = [ours("alicloud"), h, i, nodes]

    assert said(pack, RULE, *stack, on_alicloud("h")) == []
    [finding] = said(pack, RULE, *stack, on_alicloud("h", cross_zone_enabled="off"))
    assert "does not serve zone cn-i" in finding.message


def test_a_service_without_the_annotation_and_a_stack_without_pools_pass(pack: PolicyHost) -> None:
    a, b = subnets("ab")

    assert found(pack, a, b, pool([b]), balanced(loadBalancerClass="cloud-controller/nlb")) == []
    assert found(pack, a, b, on_aws([a])) == []


def test_subnets_by_an_id_alone_are_not_judged(pack: PolicyHost) -> None:
    a, b = subnets("ab")

    assert found(pack, a, b, pool([a]), on_aws([], subnets="subnet-0a")) == []


def test_an_unknown_cross_zone_setting_is_not_evaluated(pack: PolicyHost) -> None:
    a, b = subnets("ab")

    crossing = on_aws([a], cross_zone_load_balancing_enabled=UNKNOWN)

    assert [finding.level for finding in found(pack, a, b, pool([b]), crossing)] == ["not-evaluated"]


def test_an_exempt_service_is_left_alone(pack: PolicyHost) -> None:
    a, b = subnets("ab")

    assert found(pack, a, b, pool([b]), on_aws([a], EXEMPT)) == []
