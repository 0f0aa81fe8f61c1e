"""What a server's host may be called: pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_LONGEST = 63
_SHOWN = "OS-EXT-SRV-ATTR:hostname"


def host_names(server: Mapping[str, Any]) -> Iterator[str]:
    """The server's name, which an installer may have given its kubelet, and the host name that Nova gave it.

    Nova shows the host name to administrators, and from microversion 2.90 on to all.
    """
    yield str(server["name"])
    yield str(server.get(_SHOWN) or _made_of(str(server["name"])) or f"Server-{server['id']}")


def _made_of(name: str) -> str:
    """The host name that Nova makes of a name (`nova.utils.sanitize_hostname`); "" if nothing of it is left."""
    latin = name.encode("latin-1", "ignore").decode("latin-1")[:_LONGEST]
    return re.sub(r"[^\w-]+", "", re.sub(r"[ _.]", "-", latin)).lower().strip("-")
