"""Loads a certificate and key into a TLS context without a file that others could read.

`ssl` only reads files. On Linux, an anonymous in-memory file works with a read-only root filesystem.
"""

from __future__ import annotations

import os
import ssl
import sys
import tempfile
from pathlib import Path

NO_PASSWORD = ""
"""Without it, OpenSSL would wait for somebody to type an encrypted key's password."""


def load(context: ssl.SSLContext, pair: bytes) -> None:
    """Load a PEM certificate and key. Raises ssl.SSLError if they are invalid, or the key is encrypted."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("certificate")
        with os.fdopen(descriptor, "wb") as file:
            file.write(pair)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=NO_PASSWORD)
        return
    # The file exists only during the call.
    with tempfile.TemporaryDirectory(prefix="certificate-") as directory:
        path = Path(directory, "pair.pem")
        with open(path, "xb", opener=_private) as file:
            file.write(pair)
        context.load_cert_chain(path, password=NO_PASSWORD)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
