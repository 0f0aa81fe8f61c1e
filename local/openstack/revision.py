"""The revision of a site's OpenStack."""

from __future__ import annotations

from pathlib import Path

from local import revision as revisions

_HERE = Path(__file__).parent


def revision() -> str:
    """That of this folder's modules and of what runs in the services."""
    return revisions.of(_HERE, _HERE / "services")
