"""Rule `ccm-version-acknowledge-changes`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import EXEMPT, ccm, of, start

RULE = "ccm-version-acknowledge-changes"
AWS = "registry.k8s.io/provider-aws/cloud-controller-manager"
ALICLOUD = "registry.cn-hangzhou.aliyuncs.com/acs/cloud-controller-manager-amd64"
AZURE = "mcr.microsoft.com/oss/kubernetes/azure-cloud-controller-manager"


def manager(image: Any, name: str = "ccm") -> AnalyzedResource:
    return ccm(container={"image": image}, name=name)


@pytest.mark.parametrize(
    ("image", "notes"),
    [
        (f"{AWS}:v1.30.0", ["aws-1.30"]),
        (f"{AWS}:v1.36.1", ["aws-1.30"]),
        (f"{ALICLOUD}:v2.11.2", ["alicloud-2.11"]),
        (f"{ALICLOUD}:v2.12.4", ["alicloud-2.11", "alicloud-2.12"]),
        (f"{AZURE}:v1.32.11", ["azure-1.30"]),
    ],
)
def test_what_a_version_changes_is_reported_until_it_is_acknowledged(
    pack: PolicyHost, image: str, notes: list[str]
) -> None:
    [finding] = [each for each in pack.analyze_stack([manager(image)]) if each.policy == RULE]

    assert (finding.level, finding.severity) == ("advisory", "low")
    assert [note for note in notes if f"acknowledge {note}" in finding.message] == notes
    assert finding.message.count("acknowledge ") == len(notes)


@pytest.mark.parametrize(
    "resource",
    [manager(f"{AWS}:v1.29.6"), manager(f"{ALICLOUD}:v2.10.0"), ccm(), manager(f"{AWS}:v1.30.0", EXEMPT)],
    ids=["older", "older than both", "ours", "exempt"],
)
def test_versions_before_a_change_pass(pack: PolicyHost, resource: AnalyzedResource) -> None:
    assert of(pack.analyze_stack([resource]), RULE) == []


def test_an_unknown_image_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([manager(UNKNOWN)]), RULE) == ["not-evaluated"]


@pytest.mark.integration
def test_an_acknowledged_change_passes() -> None:
    host = start({RULE: {"acknowledged": ["aws-1.30"]}})
    try:
        assert of(host.analyze_stack([manager(f"{AWS}:v1.36.1")]), RULE) == []
    finally:
        host.close()
