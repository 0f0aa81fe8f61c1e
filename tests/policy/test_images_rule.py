"""Rule `ccm-workload-pin-image`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cloud_stacks.policies.host import PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import CONTAINER, ccm, exemption, of, patch, start

RULE = "ccm-workload-pin-image"
IMAGE = "registry.example:5000/team/cloud-controller"
DIGEST = f"sha256:{'0123456789abcdef' * 4}"


@pytest.mark.parametrize(
    "image",
    [
        f"{IMAGE}:v1.36.0",
        f"{IMAGE}:1.36.0",
        f"{IMAGE}:v2.9.1-provider.2",
        f"{IMAGE}:v1.36.0-rc.1",
        f"{IMAGE}:1.36.0rc1",
        f"{IMAGE}@{DIGEST}",
        f"{IMAGE}:latest@{DIGEST}",
    ],
)
def test_a_full_version_or_a_digest_pins_an_image(pack: PolicyHost, image: str) -> None:
    assert of(pack.analyze(ccm(container={"image": image})), RULE) == []


@pytest.mark.parametrize(
    "tag",
    [
        "1.2.3-latest",
        "1.2.3-latest-amd64",
        "v1.36.0-dev",
        "1.2.3_nightly",
        "latest",
        "main",
        "stable",
        "dev",
        "v1",
        "1",
        "v1.36",
        "v1.36.x",
        "2024-05-01",
    ],
)
def test_a_tag_that_moves_is_reported(pack: PolicyHost, tag: str) -> None:
    [finding] = pack.analyze(ccm(container={"image": f"{IMAGE}:{tag}"}))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "medium")
    assert finding.message == "container manager: the image's tag is not a full version"


@pytest.mark.parametrize("image", [IMAGE, "cloud-controller", f"{IMAGE}@sha256:"])
def test_an_image_without_tag_or_digest_is_reported(pack: PolicyHost, image: str) -> None:
    [finding] = pack.analyze(ccm(container={"image": image}))

    assert finding.message == "container manager: the image has neither a tag nor a digest"


def test_all_containers_of_a_ccm_are_judged_init_containers_too(pack: PolicyHost) -> None:
    proxy, wait, pinned = (
        {**CONTAINER, "name": name, "image": image}
        for name, image in (("proxy", "proxy:v1"), ("wait", "tools"), ("pinned", "tools:1.0.0"))
    )

    [finding] = pack.analyze(ccm(containers=[CONTAINER, proxy], initContainers=[wait, pinned]))

    assert finding.message == (
        "container proxy: the image's tag is not a full version; "
        "container wait: the image has neither a tag nor a digest"
    )


def test_tags_that_the_settings_call_fixed_pass(pack: PolicyHost) -> None:
    assert of(pack.analyze(ccm(container={"image": f"{IMAGE}:build-17"})), RULE) == []
    assert of(pack.analyze(ccm(container={"image": f"{IMAGE}:build-17-latest"})), RULE) == ["advisory"]


def test_a_patch_may_leave_the_image_to_others_but_not_set_one_that_moves(pack: PolicyHost) -> None:
    assert of(pack.analyze(patch(ccm(containers=[{"name": "cloud-controller-manager"}]))), RULE) == []
    assert of(pack.analyze(patch(ccm(container={"image": f"{IMAGE}:latest"}))), RULE) == ["advisory"]


def test_an_unknown_image_is_not_evaluated_but_the_others_are(pack: PolicyHost) -> None:
    sidecars = [{"name": "a", "image": UNKNOWN}, {"name": "b", "image": "proxy"}]

    assert sorted(of(pack.analyze(ccm(containers=[CONTAINER, *sidecars])), RULE)) == ["advisory", "not-evaluated"]


def test_unknown_init_containers_of_a_ccm_are_not_evaluated(pack: PolicyHost) -> None:
    other = {"name": "web", "image": "registry.example/web"}

    assert of(pack.analyze(ccm(initContainers=UNKNOWN)), RULE) == ["not-evaluated"]
    assert of(pack.analyze(ccm(containers=[other], initContainers=UNKNOWN)), RULE) == []


def test_a_pinned_image_of_an_unknown_workload_passes(pack: PolicyHost) -> None:
    unsure = {"name": "a", "image": f"registry.example/web@{DIGEST}", "command": UNKNOWN}

    assert of(pack.analyze(ccm(containers=[unsure])), RULE) == []


@pytest.fixture
def pack_for_all() -> Iterator[PolicyHost]:
    host = start({RULE: {"allWorkloads": True, "exempt": [exemption("kube-system/web")]}})
    yield host
    host.close()


def test_all_workloads_applies_the_image_rule_to_every_workload(pack: PolicyHost, pack_for_all: PolicyHost) -> None:
    other = ccm(containers=[{"name": "web", "image": "registry.example/web"}], name="other", kind="Deployment")
    exempt = ccm(containers=[{"name": "web", "image": "registry.example/web"}], name="web", kind="Deployment")

    assert of(pack.analyze(other), RULE) == []
    assert of(pack_for_all.analyze(other), RULE) == ["advisory"]
    assert of(pack_for_all.analyze(exempt), RULE) == []
