"""Rule `cluster-cidr-cover-nodes`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.cluster_objects import EXEMPT_RESOURCE, KUBEADM, component, group, machine
from tests.policy_objects import EXEMPT, ccm, of, resource, start

RULE = "cluster-cidr-cover-nodes"
MYCLOUD = [resource("pulumi-python:dynamic/mycloud:Machine", {"name": f"m-{i}"}, f"m-{i}") for i in range(49)]


def router(*args: Any, name: str = "ccm") -> AnalyzedResource:
    return ccm(container={"args": ["--cloud-provider=aws", "--cluster-cidr=100.64.0.0/8", *args]}, name=name)


def ack_pool(**size: Any) -> AnalyzedResource:
    return resource("alicloud:cs/nodePool:NodePool", size, "pool")


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ([machine(KUBEADM), group(257)], "256 parts of /24, one a node, and the stack can have 257 nodes"),
        (
            [component("kube-controller-manager", "--cluster-cidr=10.9.0.0/16", "--node-cidr-mask-size=20"), group(17)],
            "16 parts of /20, one a node, and the stack can have 17 nodes",
        ),
        ([router(), group(501)], "can have 501 nodes, but a route table of aws takes 500 routes"),
        ([router(), ack_pool(scalingConfig={"maxSize": 201}, desiredSize="3")], "a route table of alicloud takes 200"),
        ([router(), ack_pool(desiredSize="201")], "a route table of alicloud takes 200"),
        ([router(), *MYCLOUD], "can have 49 nodes, but a route table of mycloud takes 48 routes"),
    ],
    ids=["range", "mask", "routes on AWS", "largest size", "desired size", "single machines"],
)
def test_more_nodes_than_there_is_room_for_are_reported(
    pack: PolicyHost, resources: list[AnalyzedResource], said: str
) -> None:
    messages = [each.message for each in pack.analyze_stack(resources) if each.policy == RULE]

    assert len(messages) == 1
    assert said in messages[0]


@pytest.mark.parametrize(
    "resources",
    [
        [machine(KUBEADM), router(), group(256)],
        [router("--configure-cloud-routes=false"), group(501)],
        [router(name=EXEMPT), group(501)],
        [machine(KUBEADM, EXEMPT_RESOURCE), group(257)],
        [ccm(container={"args": [UNKNOWN]}), group(500)],
    ],
    ids=["just enough", "no routes", "exempt CCM", "exempt machines", "enough, whatever the unknown flag says"],
)
def test_enough_room_passes(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


@pytest.mark.parametrize(
    "resources", [[router(), group(UNKNOWN)], [ccm(container={"args": [UNKNOWN]}), group(501)]], ids=["size", "flag"]
)
def test_an_unknown_size_or_flag_is_not_evaluated(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == ["not-evaluated"]


@pytest.mark.integration
def test_an_account_can_have_another_quota() -> None:
    host = start({RULE: {"routeQuota": 1000}})
    try:
        assert of(host.analyze_stack([router(), group(501)]), RULE) == []
        assert of(host.analyze_stack([router(), group(1001)]), RULE) == ["advisory"]
    finally:
        host.close()
