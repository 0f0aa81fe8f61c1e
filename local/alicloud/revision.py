"""The revision of the stand-in of Alibaba Cloud."""

from __future__ import annotations

from pathlib import Path

from local import revision as revisions
from local import standin


def revision() -> str:
    """That of the stand-in's modules and of its base."""
    return revisions.of(Path(__file__).parent, Path(standin.__file__).parent)
