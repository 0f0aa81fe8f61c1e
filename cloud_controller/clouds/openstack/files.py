"""Reads the files that a cloud config names."""

from __future__ import annotations

from pathlib import Path

from cloud_controller.cloud_errors import InvalidConfiguration


def read_file(key: str, path: str) -> str:
    """The text of the file that this key of [Global] names. Raises InvalidConfiguration."""
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InvalidConfiguration(f"cloud config: [Global] {key}", f"{path} cannot be read: {why}") from None
