"""AWS: importing this registers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloud_controller.clouds import register

if TYPE_CHECKING:
    from cloud_controller.clouds.aws.cloud import Aws


@register("aws", manifest_parts="cloud_controller.clouds.aws.manifest_parts")
def from_config(text: str) -> Aws:
    """AWS from the text of a cloud config. Raises InvalidConfiguration."""
    # Imported late: programs and policies read this package's catalogue alone, and need no boto3 for it.
    from cloud_controller.clouds.aws.cloud import Aws
    from cloud_controller.clouds.aws.config import parse

    return Aws(parse(text))
