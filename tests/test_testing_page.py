"""docs/testing.md shows tests as they are in the suite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHOWN = re.findall(r"```python\n(def (test_\w+)\(.*?)```", (ROOT / "docs/testing.md").read_text(), re.DOTALL)


@pytest.mark.parametrize(("code", "name"), SHOWN, ids=[name for _, name in SHOWN])
def test_a_test_that_the_page_shows_is_in_the_suite(code: str, name: str) -> None:
    files = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]

    assert any(code in text for text in files if f"def {name}(" in text)
