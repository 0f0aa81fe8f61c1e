"""The annotations by which a Service configures its network load balancer (NLB).

They are those of Alibaba Cloud's own controller, under both prefixes. Ranges and defaults are NLB's, which differ from
CLB's. The entries are in the modules joined here.
"""

from __future__ import annotations

from cloud_controller.clouds.alicloud.annotation_entries import LEGACY_PREFIX, PREFIX, READINESS_GATE
from cloud_controller.clouds.alicloud.nlb.annotations_of_listeners import LISTENERS
from cloud_controller.clouds.alicloud.nlb.annotations_of_load_balancers import BACKEND_TYPE, LOAD_BALANCERS
from cloud_controller.clouds.alicloud.nlb.annotations_of_server_groups import SERVER_GROUPS
from cloud_controller.clouds.alicloud.nlb.refusals import NAMINGS, REFUSALS
from cloud_controller.load_balancers.catalogue import Catalogue

CLASSES = ("alibabacloud.com/nlb", "cloud-controller/nlb")
"""The values of `spec.loadBalancerClass` that select this kind."""

NLB = Catalogue(
    cloud="alicloud",
    prefixes=(PREFIX, LEGACY_PREFIX),
    entries=(*LOAD_BALANCERS, *LISTENERS, BACKEND_TYPE, *SERVER_GROUPS, READINESS_GATE),
    kind="NLB",
    classes=CLASSES,
    # Charts leave annotations empty, and Alibaba Cloud's own controller ignores those.
    empty_is_unset=True,
    refusals=REFUSALS,
    namings=NAMINGS,
)


def field(argument: str) -> str:
    """How an error names the annotation of this argument."""
    return f"annotation {NLB.by_argument[argument].name}"
