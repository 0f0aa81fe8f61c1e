"""Checks that a secret can be sent in an HTTP header, without an HTTP library. Hides it from logs."""

from __future__ import annotations

from cloud_controller import logs
from cloud_controller.cloud_errors import InvalidConfiguration


def sendable(field: str, secret: str) -> str:
    """The secret, hidden from logs from now on. Raises InvalidConfiguration if no HTTP header can hold it."""
    if not (secret.isascii() and secret.isprintable() and " " not in secret):
        # Refused here because the HTTP library's own error would quote it.
        raise InvalidConfiguration(field, "not valid in an HTTP header", "one line of printable ASCII without spaces")
    logs.hide(secret)
    return secret
