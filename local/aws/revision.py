"""Which code an API runs: a site that was brought up before the project was updated still runs the old one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import moto

_HERE = Path(__file__).parent


def revision() -> str:
    """Sixteen hex digits of the API's modules and of moto's version."""
    digest = hashlib.sha256(moto.__version__.encode())
    for module in sorted(_HERE.glob("*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()[:16]
