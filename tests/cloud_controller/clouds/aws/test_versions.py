"""The version matrix of AWS's own controller: what fits, what is wrong, and what nobody has written down yet."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.aws.versions import MATRIX, NEWEST, judge


@pytest.mark.parametrize(("kubernetes", "ccm"), sorted(MATRIX.items()))
def test_every_row_of_the_matrix_fits(kubernetes: str, ccm: str) -> None:
    assert judge(ccm, kubernetes).kind == "fits"


def test_patches_do_not_matter() -> None:
    assert judge("v1.32.7", "v1.32.11").kind == "fits"


def test_another_minor_version_is_wrong_and_the_right_one_is_named() -> None:
    verdict = judge("v1.30.5", "1.32")

    assert verdict.kind == "wrong"
    assert "v1.30.5 is for Kubernetes 1.30, not 1.32; the matrix has v1.32.8 for it" in verdict.why


def test_what_is_newer_than_the_matrix_is_unknown_and_no_pass() -> None:
    verdict = judge("v1.99.0", "1.99")

    assert verdict.kind == "unknown"
    assert f"the newest known row is Kubernetes {NEWEST} with {MATRIX[NEWEST]}" in verdict.why


def test_the_matrix_has_every_minor_version_up_to_1_37() -> None:
    assert {f"1.{minor}" for minor in range(28, 38)} == MATRIX.keys()


@pytest.mark.parametrize(("ccm", "kubernetes"), [("latest", "1.32"), ("v1.32.0", "newest"), ("v2.0.0", "1.32")])
def test_what_is_no_version_is_unknown(ccm: str, kubernetes: str) -> None:
    assert judge(ccm, kubernetes).kind == "unknown"
