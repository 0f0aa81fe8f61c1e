"""The revision of mycloud's API."""

from __future__ import annotations

from pathlib import Path

from local import revision as revisions

_HERE = Path(__file__).parent


def revision() -> str:
    """That of the API's modules; machines and the data plane are separate processes."""
    return revisions.of(_HERE, _HERE / "endpoints", _HERE / "models")
