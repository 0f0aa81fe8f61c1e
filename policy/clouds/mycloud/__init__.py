"""The meaning of mycloud's annotations for the rules."""

from __future__ import annotations

from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from policy.clouds.interface import Balancers, Infrastructure, Mark, PolicyCloud, Signs
from policy.clouds.mycloud.components import COMPONENTS
from policy.clouds.mycloud.config import check
from policy.clouds.mycloud.meaning import MEANING


def _of(argument: str) -> str:
    return CATALOGUE.by_argument[argument].name


NOTES = {
    "lb-service-check-health": "`dlb-health-check-protocol: NONE`.",
    "lb-service-limit-sources": "`dlb-id`: the reused load balancer keeps its own ranges.",
    "lb-service-share-without-clash": "`dlb-id` names the load balancer.",
    "ccm-avoid-access-key": "there are no roles for a CCM.",
    "ccm-use-internal-endpoints": "its API has one address, which is the network's own.",
}

CLOUD = PolicyCloud(
    name="mycloud",
    # It has no controllers but ours.
    signs=Signs(types=("pulumi-python:dynamic/mycloud:",), called="mycloud", ccm_classes=()),
    catalogue=CATALOGUE,
    infrastructure=Infrastructure(
        # It gives them the version and all ranges itself.
        control_planes={"pulumi-python:dynamic/mycloud:Cluster": ""},
        machines={"pulumi-python:dynamic/mycloud:Machine": ()},
    ),
    check_config=check,
    internal=(Mark(_of("scheme"), ("internal",)),),
    # Its own ranges decide, and the cloud refuses any that the Service brings.
    limited_elsewhere=(Mark(_of("id")),),
    unchecked=(Mark(_of("health_check_protocol"), ("none",)),),
    components=COMPONENTS,
    shares=(_of("id"),),
    check_ports=(_of("health_check_port"),),
    by_pod=(Mark(_of("backend_type"), ("pod-ip",)),),
    # docs/mycloud-api.md, Objects; it limits no addresses.
    balancers=Balancers(kind=lambda _: "dlb", quotas={"dlb": 1000, "listeners of dlb": 50}),
    notes=NOTES,
    meaning=MEANING,
)
