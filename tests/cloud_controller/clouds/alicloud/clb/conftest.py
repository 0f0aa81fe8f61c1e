"""The account of the tests of CLB."""

from __future__ import annotations

import pytest

from tests.cloud_controller.clouds.alicloud.clb.balancing import Balancing


@pytest.fixture
def account() -> Balancing:
    """A fresh account."""
    return Balancing()
