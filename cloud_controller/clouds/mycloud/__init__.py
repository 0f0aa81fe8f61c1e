"""mycloud, the private cloud: importing this registers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloud_controller.clouds import register

if TYPE_CHECKING:
    from cloud_controller.clouds.mycloud.cloud import MyCloud


@register("mycloud", manifest_parts="cloud_controller.clouds.mycloud.manifest_parts")
def from_config(text: str) -> MyCloud:
    """mycloud from the text of a cloud config. Raises InvalidConfiguration."""
    # Imported late: programs and policies read this package's catalogue alone, and need no HTTP client for it.
    from cloud_controller.clouds.mycloud.cloud import MyCloud
    from cloud_controller.clouds.mycloud.config import parse

    return MyCloud(parse(text))
