"""The annotations by which a Service configures its classic load balancer (CLB).

They are those of Alibaba Cloud's own controller, under both prefixes. Ranges and defaults are CLB's, which differ from
NLB's. The entries are in the modules joined here.
"""

from __future__ import annotations

from cloud_controller.clouds.alicloud.annotation_entries import LEGACY_PREFIX, PREFIX, READINESS_GATE
from cloud_controller.clouds.alicloud.clb.annotations_of_listeners import HEALTH_CHECKS, LISTENERS
from cloud_controller.clouds.alicloud.clb.annotations_of_load_balancers import BACKENDS, LOAD_BALANCERS
from cloud_controller.clouds.alicloud.clb.refusals import NAMINGS, REFUSALS
from cloud_controller.load_balancers.catalogue import Catalogue

CLASS = "cloud-controller/clb"

CLB = Catalogue(
    cloud="alicloud",
    prefixes=(PREFIX, LEGACY_PREFIX),
    entries=(*LOAD_BALANCERS, *LISTENERS, *HEALTH_CHECKS, *BACKENDS, READINESS_GATE),
    kind="CLB",
    classes=(None, CLASS),
    # Charts leave annotations empty, and Alibaba Cloud's own controller ignores those.
    empty_is_unset=True,
    refusals=REFUSALS,
    namings=NAMINGS,
)


def field(argument: str) -> str:
    """How an error names the annotation of this argument."""
    return f"annotation {CLB.by_argument[argument].name}"
