"""Whether a cloud config of mycloud is valid."""

from __future__ import annotations

from cloud_controller.clouds.mycloud.config import parse


def check(text: str) -> None:
    """Raises InvalidConfiguration. The file of `token-file` is in the CCM's pods, not here."""
    parse(text, token_of=str)
