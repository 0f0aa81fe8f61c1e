"""How a certificate and its key get into a TLS context without standing in a file that others could find.

`ssl` reads files only. On Linux the file has no name and no place on a disk, so that it works with a read-only root.
"""

from __future__ import annotations

import os
import ssl
import sys
import tempfile
from pathlib import Path


def load(context: ssl.SSLContext, pair: bytes) -> None:
    """Load certificate and key, both as PEM. Raises ssl.SSLError where they are none."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("certificate")
        with os.fdopen(descriptor, "wb") as file:
            file.write(pair)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        return
    # It lives no longer than the call.
    with tempfile.TemporaryDirectory(prefix="certificate-") as directory:
        path = Path(directory, "pair.pem")
        with open(path, "xb", opener=_private) as file:
            file.write(pair)
        context.load_cert_chain(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
