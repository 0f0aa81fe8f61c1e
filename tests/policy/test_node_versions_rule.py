"""Rule `node-follow-control-plane-version`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.cluster_objects import EXEMPT_RESOURCE, KUBEADM, eks, machine
from tests.policy_objects import of, resource

RULE = "node-follow-control-plane-version"


def pool(version: Any, name: str = "pool") -> AnalyzedResource:
    return resource("aws:eks/nodeGroup:NodeGroup", {"version": version}, name)


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ([eks("1.35"), pool("1.36")], "nodes of 1.36 under a control plane of 1.35: upgrade the control plane first"),
        ([eks("1.36"), pool("1.32")], "nodes of 1.32 are too old for a control plane of 1.36"),
        ([machine(KUBEADM), machine("apt-get install -y kubelet=1.37.1-1.1", "workers")], "nodes of 1.37 under"),
        ([machine(KUBEADM), machine("dnf install -y kubelet-1.32.4", "workers")], "nodes of 1.32 are too old"),
    ],
    ids=["newer", "too old", "newer package", "old package"],
)
def test_nodes_out_of_order_are_reported(pack: PolicyHost, resources: list[AnalyzedResource], said: str) -> None:
    messages = [each.message for each in pack.analyze_stack(resources) if each.policy == RULE]

    assert len(messages) == 1
    assert said in messages[0]


@pytest.mark.parametrize(
    "resources",
    [
        [eks("1.36"), pool("1.36")],
        [eks("1.36"), pool("1.33")],
        [eks("1.35"), pool("1.36", EXEMPT_RESOURCE)],
        [pool("1.36")],
        [machine(KUBEADM), machine("dnf install -y kubelet", "workers")],
    ],
    ids=["same", "three older", "exempt", "unknown cluster", "no version"],
)
def test_nodes_in_order_pass(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


@pytest.mark.parametrize("resources", [[eks(UNKNOWN), pool("1.36")], [eks("1.36"), pool(UNKNOWN)]])
def test_an_unknown_version_is_not_evaluated(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == ["not-evaluated"]
