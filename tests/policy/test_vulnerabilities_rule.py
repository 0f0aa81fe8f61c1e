"""Rule `cluster-version-avoid-vulnerabilities`."""

from __future__ import annotations

from datetime import date

import pytest

from cloud_controller import known_versions
from cloud_controller.known_versions import affects
from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from policy import data
from tests.policy.cluster_objects import KUBEADM, eks, machine
from tests.policy_objects import EXEMPT, ccm, of

RULE = "cluster-version-avoid-vulnerabilities"
ENTRY = {"introduced": "1.30.0", "fixed": ["1.31.12", "1.32.8"]}
VSPHERE = "registry.example/cloud-provider-vsphere/cpi/release/manager"


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ("1.29.9", False),
        ("1.30.14", True),
        ("1.31.11", True),
        ("v1.31.12", False),
        ("1.32.7", True),
        ("1.32.8", False),
        ("1.33.0", False),
        ("1.32", False),
        ("1.32.1-vendor.1", False),
    ],
)
def test_a_version_is_affected_until_the_patch_of_its_minor_version(version: str, affected: bool) -> None:
    assert affects(ENTRY, version) is affected


@pytest.mark.parametrize("entry", known_versions.load("vulnerabilities")["entries"], ids=lambda entry: str(entry["id"]))
def test_each_entry_says_which_versions_are_affected(entry: dict[str, list[str]]) -> None:
    if "fixed" in entry:
        assert not any(affects(entry, version) for version in entry["fixed"])
    else:
        assert all(affects(entry, version) for version in entry["versions"])


@pytest.mark.parametrize("name", ["limits", "upgrades"])
def test_each_file_of_dated_facts_has_its_day(name: str) -> None:
    assert date.fromisoformat(data.load(name)["as_of"])


@pytest.mark.parametrize("name", known_versions.FILES)
def test_each_file_of_versions_has_its_day(name: str) -> None:
    assert known_versions.as_of(name)


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ([machine(KUBEADM.replace("1.36.1", "1.33.5"))], "Kubernetes 1.33.5 has CVE-2025-13281"),
        ([ccm(container={"image": f"{VSPHERE}:v1.28.0", "command": ["vsphere-ccm"]})], "1.28.0 has CVE-2023-44487"),
    ],
    ids=["cluster", "CCM"],
)
def test_a_version_with_a_known_vulnerability_is_reported(
    pack: PolicyHost, resources: list[AnalyzedResource], said: str
) -> None:
    messages = [each.message for each in pack.analyze_stack(resources) if each.policy == RULE]

    assert len(messages) == 1
    assert said in messages[0]


@pytest.mark.parametrize(
    "resources",
    [
        [machine(KUBEADM)],
        [eks("1.33")],
        [ccm(container={"image": f"{VSPHERE}:v1.36.0"})],
        [ccm(container={"image": f"{VSPHERE}:v1.28.0"}, name=EXEMPT)],
        [ccm()],
    ],
    ids=["mended", "the cloud's patches", "another version", "exempt", "no version"],
)
def test_other_versions_pass(pack: PolicyHost, resources: list[AnalyzedResource]) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_an_unknown_version_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([eks(UNKNOWN)]), RULE) == ["not-evaluated"]
