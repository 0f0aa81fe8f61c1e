"""The versions of Alibaba Cloud's own controller and of Kubernetes that its matrix knows."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.alicloud.versions import IMAGE, judge


@pytest.mark.parametrize(
    ("ccm", "kubernetes"),
    [
        ("v2.12.4", "1.32"),
        ("v2.12.4", "1.32.1-aliyun.1"),
        ("v2.12.1", "1.31"),
        ("v2.9.1", "1.22"),
        ("v2.11.7", "1.30"),  # a patch version of the minor version that is recommended for it
    ],
)
def test_versions_of_a_row_fit(ccm: str, kubernetes: str) -> None:
    assert judge(ccm, kubernetes).kind == "fits"


@pytest.mark.parametrize(
    ("ccm", "kubernetes", "why"),
    [
        ("v2.12.1", "1.32", "v2.12.1 is for Kubernetes 1.24 to 1.31, not 1.32; the matrix has v2.12.x for it"),
        ("v2.9.1", "1.31", "v2.9.1 is for Kubernetes 1.22 to 1.29, not 1.31; the matrix has v2.12.x for it"),
        ("v2.12.4", "1.22", "v2.12.4 is for Kubernetes 1.24 to 1.32, not 1.22"),
    ],
)
def test_a_version_outside_of_its_row_is_wrong(ccm: str, kubernetes: str, why: str) -> None:
    assert (judge(ccm, kubernetes).kind, judge(ccm, kubernetes).why) == ("wrong", why)


NEWEST = "the newest known row is v2.12.4 (2025-12) for Kubernetes 1.24 to 1.32"


@pytest.mark.parametrize(
    ("ccm", "kubernetes", "why"),
    [
        ("v2.12.4", "1.34", f"the matrix does not have Kubernetes 1.34; {NEWEST}"),
        ("v2.13.0", "1.32", f"the matrix does not have v2.13.0; {NEWEST}"),
        ("v2.11.7", "1.32", f"the matrix does not have v2.11.7; {NEWEST}"),
        ("v2.12.4", "latest", "'latest' is not a version such as 1.32"),
    ],
)
def test_what_no_row_says_is_unknown_and_does_not_pass(ccm: str, kubernetes: str, why: str) -> None:
    assert (judge(ccm, kubernetes).kind, judge(ccm, kubernetes).why) == ("unknown", why)


@pytest.mark.parametrize(
    "repository",
    [
        "registry.cn-hangzhou.aliyuncs.com/acs/cloud-controller-manager-amd64",
        "registry-cn-hangzhou.ack.aliyuncs.com/acs/cloud-controller-manager-amd64",
    ],
)
def test_the_controllers_image_is_known_in_every_registry(repository: str) -> None:
    assert IMAGE.fullmatch(repository)
    assert not IMAGE.fullmatch("registry.example/cloud-controller")
