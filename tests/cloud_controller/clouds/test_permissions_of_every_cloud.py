"""No cloud can be added whose table of rights is not held to what its code calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloud_controller import clouds


@pytest.mark.parametrize("name", clouds.names())
def test_a_cloud_has_tests_that_hold_its_rights_to_its_calls(name: str) -> None:
    assert (Path(__file__).parent / name / f"test_{name}_permissions.py").exists()
