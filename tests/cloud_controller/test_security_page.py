"""docs/security.md names the tests that prove it: each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/security.md").read_text()
NAMED = sorted(set(re.findall(r"`((?:\w+/)*test_\w+\.py|tests/[\w/]+)(?:::(\w+))?`", PAGE)))


@pytest.mark.parametrize(("place", "test"), NAMED)
def test_every_test_that_the_security_page_names_exists(place: str, test: str) -> None:
    path = ROOT / place if place.startswith("tests/") else ROOT / "tests/cloud_controller" / place

    assert path.exists()
    assert not test or f"def {test}(" in path.read_text()
