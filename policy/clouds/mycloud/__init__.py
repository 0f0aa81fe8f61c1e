"""The meaning of mycloud's annotations for the rules."""

from __future__ import annotations

from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from policy.clouds.interface import Mark, PolicyCloud
from policy.clouds.mycloud.components import COMPONENTS
from policy.clouds.mycloud.config import check
from policy.clouds.mycloud.meaning import MEANING


def _of(argument: str) -> str:
    return CATALOGUE.by_argument[argument].name


CLOUD = PolicyCloud(
    name="mycloud",
    check_config=check,
    internal=(Mark(_of("scheme"), ("internal",)),),
    # Its own ranges decide, and the cloud refuses any that the Service brings.
    limited_elsewhere=(Mark(_of("id")),),
    unchecked=(Mark(_of("health_check_protocol"), ("none",)),),
    components=COMPONENTS,
    meaning=MEANING,
)
