"""The meaning of OpenStack's annotations for the rules."""

from __future__ import annotations

from cloud_controller.clouds.openstack.octavia.annotations import CATALOGUE
from policy.clouds.interface import Balancers, Mark, PolicyCloud, Signs

_SHARED = "loadbalancer.openstack.org/load-balancer-id"

CLOUD = PolicyCloud(
    name="openstack",
    signs=Signs(types=("openstack:",), called="openstack"),
    catalogue=CATALOGUE,
    internal=(Mark("service.beta.kubernetes.io/openstack-internal-load-balancer", ("true",)),),
    unchecked=(Mark("loadbalancer.openstack.org/enable-health-monitor", ("false",)),),
    shares=(_SHARED,),
    balancers=Balancers(ends_tls=lambda asked: "default_tls_container_ref" in asked.settings.given),
    notes={"lb-service-share-without-clash": f"`{_SHARED}` names the load balancer."},
)
