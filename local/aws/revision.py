"""The revision of the simulated AWS."""

from __future__ import annotations

from pathlib import Path

import moto

from local import revision as revisions


def revision() -> str:
    """That of the API's modules and moto's version."""
    return revisions.of(Path(__file__).parent, version=moto.__version__)
