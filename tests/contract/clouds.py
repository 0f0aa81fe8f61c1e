"""The clouds of the suite: each module `of_NAME.py` beside this one.

A module has `running(request)`, which yields a `Harness`, `OFFERS`, the parts of the interface that the cloud has, and
`MARKS` of its tests: `integration`, unless it starts nothing; `nightly` for a cloud that is slow.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

NAMES = sorted(path.stem.removeprefix("of_") for path in Path(__file__).parent.glob("of_*.py"))


def of(name: str) -> Any:
    """The module of this cloud."""
    return importlib.import_module(f"tests.contract.of_{name}")
