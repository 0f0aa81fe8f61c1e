"""docs/engine.md names the tests that prove it: each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PAGE = (ROOT / "docs/engine.md").read_text()
NAMED = sorted(set(re.findall(r"`((?:\.\./)?(?:\w+/)*test_\w+\.py|\.\./(?:\w+/)+)`", PAGE)))


@pytest.mark.parametrize("place", NAMED)
def test_every_test_that_the_engine_page_names_exists(place: str) -> None:
    assert ((ROOT if place.startswith("tests/") else HERE) / place).exists()
