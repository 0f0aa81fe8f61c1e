"""The names of series that differ from cloud to cloud, for what exports them and for what asks for them."""

from __future__ import annotations

import re


def api_prefix(provider: str) -> str:
    """What the names of the two series of this cloud's API start with."""
    return f"cloudprovider_{re.sub('[^a-zA-Z0-9_]', '_', provider)}_api_request"
