"""Rule `ccm-workload-tolerate-uninitialized`."""

from __future__ import annotations

import pytest

from local.engine.policies.host import AnalyzedResource, PolicyHost
from local.engine.values import UNKNOWN, PropertyMap
from tests.policy_objects import EXEMPT, TOLERATION, ccm, of

RULE = "ccm-workload-tolerate-uninitialized"
KEY = TOLERATION["key"]


@pytest.mark.parametrize(
    "toleration",
    [
        TOLERATION,
        {"operator": "Exists"},
        {"key": KEY, "operator": "Exists"},
        {"key": KEY, "operator": "Exists", "effect": "NoSchedule"},
        {"key": KEY, "operator": "Equal", "value": "true"},
    ],
)
def test_a_ccm_that_tolerates_uninitialised_nodes_passes(pack: PolicyHost, toleration: PropertyMap) -> None:
    assert of(pack.analyze(ccm(tolerations=[{"key": "other"}, toleration])), RULE) == []


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
        {"key": KEY, "effect": "NoSchedule"},
        {"key": KEY, "operator": "Exists", "effect": "NoExecute"},
        {"key": KEY, "value": "false", "effect": "NoSchedule"},
    ],
)
def test_a_ccm_without_a_matching_toleration_is_refused(pack: PolicyHost, toleration: PropertyMap) -> None:
    [finding] = pack.analyze(ccm(tolerations=[toleration]))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "mandatory", "critical")
    assert "container manager" in finding.message
    assert finding.urn.endswith("::ccm")


@pytest.mark.parametrize(
    "image",
    [
        "registry.example/cloud-controller-manager/cloud-controller-manager:v1.36.0",
        "registry.example/team/aws-cloud-controller-manager@sha256:0123",
        "hetzner/hcloud-ccm:1",
        "registry.local:5000/cloud-controller",
    ],
)
def test_a_ccm_is_recognised_by_its_image(pack: PolicyHost, image: str) -> None:
    assert of(pack.analyze(ccm(tolerations=[], container={"image": image})), RULE) == ["mandatory"]


def test_a_ccm_is_recognised_by_its_command(pack: PolicyHost) -> None:
    workload = ccm(
        tolerations=[],
        kind="Deployment",
        container={"image": "registry.example/tools:1.0.0", "command": ["/bin/my-ccm"]},
    )

    assert of(pack.analyze(workload), RULE) == ["mandatory"]


def test_other_workloads_need_no_toleration(pack: PolicyHost) -> None:
    assert pack.analyze(ccm(tolerations=[], container={"image": "registry.example/cloud-controller-dashboard:1"})) == []


def test_an_exempt_ccm_is_left_alone(pack: PolicyHost) -> None:
    assert pack.analyze(ccm(tolerations=[], name=EXEMPT)) == []


@pytest.mark.parametrize(
    "workload",
    [ccm(tolerations=UNKNOWN), ccm(tolerations=[UNKNOWN]), ccm(tolerations=[], container={"image": UNKNOWN})],
)
def test_unknown_tolerations_or_images_are_not_evaluated(pack: PolicyHost, workload: AnalyzedResource) -> None:
    assert of(pack.analyze(workload), RULE) == ["not-evaluated"]


def test_a_known_toleration_counts_beside_an_unknown_one(pack: PolicyHost) -> None:
    assert of(pack.analyze(ccm(tolerations=[UNKNOWN, TOLERATION])), RULE) == []
