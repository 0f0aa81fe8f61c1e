"""Reads the files that a cloud config names."""

from __future__ import annotations

from pathlib import Path

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.openstack.clouds_yaml import Cloud, cloud


def read_cloud(path: str, name: str) -> Cloud:
    """The cloud of this name in a clouds.yaml. Raises InvalidConfiguration."""
    return cloud(read_file("clouds-file", path), name)


def read_file(key: str, path: str) -> str:
    """The text of the file that this key of [Global] names. Raises InvalidConfiguration."""
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InvalidConfiguration(f"cloud config: [Global] {key}", f"{path} cannot be read: {why}") from None
