"""Rule `ccm-workload-tolerate-uninitialized`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, PropertyMap, Secret
from tests.policy_objects import EXEMPT, TOLERATION, ccm, exemption, of, patch, resource, start

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
        {"key": KEY, "value": True, "effect": "NoSchedule"},
        {"key": KEY, "value": "true", "operator": "Gt"},
    ],
)
def test_a_ccm_without_a_matching_toleration_is_refused(pack: PolicyHost, toleration: PropertyMap) -> None:
    [finding] = pack.analyze(ccm(tolerations=[toleration]))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "critical")
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
    assert of(pack.analyze(ccm(tolerations=[], container={"image": image})), RULE) == ["advisory"]


def test_a_ccm_is_recognised_by_its_command(pack: PolicyHost) -> None:
    workload = ccm(
        tolerations=[],
        kind="Deployment",
        container={"image": "registry.example/tools:1.0.0", "command": ["/bin/my-ccm"]},
    )

    assert of(pack.analyze(workload), RULE) == ["advisory"]


def test_a_patch_may_leave_tolerations_to_others_but_not_replace_them(pack: PolicyHost) -> None:
    other = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}

    assert of(pack.analyze(patch(ccm(tolerations=None))), RULE) == []
    assert of(pack.analyze(patch(ccm(tolerations=[other]))), RULE) == ["advisory"]


def remediated(workload: AnalyzedResource) -> tuple[PropertyMap, list[str]]:
    """The inputs after the rule's remediation, and the levels of what the pack then finds."""
    pack = start({RULE: {"enforcementLevel": "remediate", "exempt": [exemption(EXEMPT)]}})
    try:
        properties, done = pack.remediate(workload)
        found = [*(finding for finding, _ in done), *pack.analyze(replace(workload, properties=properties))]
        return properties, of(found, RULE)
    finally:
        pack.close()


@pytest.mark.integration
@pytest.mark.parametrize("given", [None, [{"key": "other", "value": UNKNOWN}]])
def test_at_level_remediate_the_toleration_is_added_to_those_given(given: list[PropertyMap] | None) -> None:
    workload = ccm(tolerations=given, container={"env": [{"name": "TOKEN", "value": Secret("hush")}, UNKNOWN]})

    properties, levels = remediated(workload)

    expected = ccm(tolerations=[*(given or []), TOLERATION]).properties["spec"]["template"]["spec"]["tolerations"]
    spec = properties["spec"]["template"]["spec"]
    assert levels == ["remediate"]
    assert spec["tolerations"] == expected
    # All else stays as it was: secrets, unknown values.
    assert {**spec, "tolerations": given} == workload.properties["spec"]["template"]["spec"]


@pytest.mark.integration
def test_each_object_of_a_list_is_remediated_where_it_needs_it() -> None:
    good, bad = ccm().properties, ccm(tolerations=[]).properties

    properties, levels = remediated(resource("kubernetes:apps/v1:DaemonSetList", {"items": [good, bad]}))

    assert levels == ["remediate"]
    assert properties["items"] == [good, good]


@pytest.mark.integration
@pytest.mark.parametrize("workload", [ccm(), ccm(tolerations=[], name=EXEMPT), ccm(container={"image": "web:1"})])
def test_what_holds_to_the_rule_is_not_remediated(workload: AnalyzedResource) -> None:
    assert remediated(workload) == (workload.properties, [])


@pytest.mark.integration
def test_unknown_tolerations_are_left_as_they_are_and_not_evaluated() -> None:
    workload = ccm(tolerations=[UNKNOWN])

    assert remediated(workload) == (workload.properties, ["not-evaluated", "not-evaluated"])


@pytest.mark.parametrize(
    "workload",
    [ccm(tolerations=UNKNOWN), ccm(tolerations=[UNKNOWN]), ccm(tolerations=[], container={"image": UNKNOWN})],
)
def test_unknown_tolerations_or_images_are_not_evaluated(pack: PolicyHost, workload: AnalyzedResource) -> None:
    assert of(pack.analyze(workload), RULE) == ["not-evaluated"]


def test_a_known_toleration_counts_beside_an_unknown_one(pack: PolicyHost) -> None:
    assert of(pack.analyze(ccm(tolerations=[UNKNOWN, TOLERATION])), RULE) == []
