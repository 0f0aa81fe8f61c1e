"""A test that docs/testing.md shows from a file is in that file, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHOWN = re.findall(r"`(tests/\S+\.py)`:\n\n```python\n(.*?)```", (ROOT / "docs/testing.md").read_text(), re.DOTALL)


@pytest.mark.parametrize(("path", "code"), SHOWN, ids=[path for path, _ in SHOWN])
def test_a_test_that_the_page_shows_is_in_the_file_that_it_names(path: str, code: str) -> None:
    assert code in (ROOT / path).read_text()
