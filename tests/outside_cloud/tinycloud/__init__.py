"""tinycloud: a cloud that lives in this process, to show what the package of a cloud holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloud_controller.clouds.descriptor import CloudDescriptor
from tinycloud.annotations import CATALOGUE, CLASS

if TYPE_CHECKING:
    from tinycloud.cloud import Tiny


def _from_config(text: str) -> Tiny:
    from tinycloud.cloud import Tiny

    return Tiny.from_config(text)


CLOUD = CloudDescriptor(
    name="tiny",
    from_config=_from_config,
    provider_id_scheme="tiny",
    catalogue=CATALOGUE,
    load_balancer_classes=frozenset({CLASS}),
    rights=lambda controllers: sorted(f"tiny:{controller}" for controller in controllers),
    keeps_checkpoint=True,
    not_offered=dict.fromkeys(("route", "volume"), "tinycloud has none"),
)
