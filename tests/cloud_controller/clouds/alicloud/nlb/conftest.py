"""The account of the tests of NLB."""

from __future__ import annotations

import pytest

from tests.cloud_controller.clouds.alicloud.nlb.balancing import NlbAccount


@pytest.fixture
def account() -> NlbAccount:
    """A fresh account."""
    return NlbAccount()
