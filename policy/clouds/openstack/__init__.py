"""The meaning of OpenStack's annotations for the rules."""

from __future__ import annotations

from cloud_controller.clouds.openstack.octavia.annotations import CATALOGUE
from policy.clouds.interface import Balancers, Billed, Infrastructure, Mark, Meaning, PolicyCloud, Signs
from policy.clouds.openstack.components import COMPONENTS
from policy.clouds.openstack.config import check
from policy.clouds.openstack.egress import limits_egress


def _of(argument: str) -> str:
    return CATALOGUE.by_argument[argument].name


_SERVERS = "openstack:compute/instance:Instance"
_NOTES = {
    "lb-service-check-health": '`enable-health-monitor: "false"`.',
    "lb-service-share-without-clash": "`load-balancer-id` names the load balancer.",
    "ccm-avoid-access-key": "there are no roles for a CCM; it has an application credential.",
    "ccm-cloud-config-valid": "the parser takes the cloud.conf of openstack-cloud-controller-manager.",
}

CLOUD = PolicyCloud(
    name="openstack",
    signs=Signs(types=("openstack:",), called="openstack"),
    catalogue=CATALOGUE,
    infrastructure=Infrastructure(
        control_planes={}, machines={_SERVERS: ()}, networks={"openstack:networking/subnet:Subnet": ("cidr",)}
    ),
    check_config=check,
    internal=(Mark(_of("internal"), ("true",)),),
    unchecked=(Mark(_of("enable_health_monitor"), ("false",)),),
    limits_egress=limits_egress,
    components=COMPONENTS,
    shares=(_of("id"),),
    balancers=Balancers(
        ends_tls=lambda asked: "default_tls_container_ref" in asked.settings.given, kind=lambda _: "octavia"
    ),
    notes=_NOTES,
    meaning=Meaning(
        billed={
            _SERVERS: Billed("node", ("flavorName",)),
            "openstack:loadbalancer/loadBalancer:LoadBalancer": Billed("load balancer", ("flavorId",)),
            "openstack:networking/floatingIp:FloatingIp": Billed("address"),
        }
    ),
)
