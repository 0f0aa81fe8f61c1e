"""Batches: everything once, in order, no batch larger than a call takes."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.common.batches import batches


@pytest.mark.parametrize(
    ("count", "expected"), [(0, []), (1, ["a"]), (3, ["abc"]), (4, ["abc", "d"]), (7, ["abc", "def", "g"])]
)
def test_no_batch_holds_more_than_a_call_takes(count: int, expected: list[str]) -> None:
    assert [*batches("abcdefg"[:count], 3)] == expected
