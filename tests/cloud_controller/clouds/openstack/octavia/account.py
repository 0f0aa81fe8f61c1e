"""A project of the real services for load balancers: a network of nodes behind a router to an external network."""

from __future__ import annotations

import time
from typing import Any

from cloud_controller.clouds.openstack.cloud import OpenStack
from cloud_controller.clouds.openstack.octavia.options import LoadBalancerOptions, Networks
from local.openstack.api import Object
from local.openstack.peer import Peer
from local.openstack.project import Project
from tests.cloud_controller.clouds.openstack.site import Site

_DEADLINE = 60.0


def public_network(peer: Peer, gold: str, silver: str) -> str:
    """The ID of a new external network with a subnet of each range, tagged as the range's parameter is named."""
    network, subnets = Project(peer).network("public", gold, silver, external=True)
    for subnet, tag in zip(subnets, ("gold", "silver"), strict=True):
        peer.admin.put("network", f"subnets/{subnet['id']}/tags", {"tags": [tag, "v4"]})
    return str(network["id"])


class OctaviaAccount:
    """See `Account`. What the test itself does bypasses the proxy."""

    def __init__(self, site: Site, public: str) -> None:
        """`public`: the ID of the external network."""
        self.site = site
        self.api = site.project.api
        self.public = public
        self.network, (self.subnet,) = site.project.network("nodes", "10.1.0.0/16")
        self.router = site.project.router(self.subnet, external=public)

    def new_cloud(self, **options: Any) -> OpenStack:
        """See `Account`; `options` replace those of the cloud config's section [LoadBalancer]."""
        return self.site.cloud(load_balancers=self.options(**options))

    def options(self, **options: Any) -> LoadBalancerOptions:
        """The section [LoadBalancer] of the cloud config."""
        options.setdefault("networks", Networks(floating_network_id=self.public, subnet_id=self.subnet["id"]))
        return LoadBalancerOptions(**options)

    def settle(self) -> None:
        """Wait until Octavia has finished."""
        deadline = time.monotonic() + _DEADLINE
        while any(lb["provisioning_status"].startswith("PENDING") for lb in self.load_balancers()):
            assert time.monotonic() < deadline, "Octavia does not finish"
            time.sleep(0.1)

    def load_balancers(self) -> list[Object]:
        """All of the project."""
        return list(self.api.get("load-balancer", "lbaas/loadbalancers")["loadbalancers"])

    def parts(self, kind: str) -> list[Object]:
        """Listeners, pools or health monitors, in the order of their names."""
        return sorted(self.api.get("load-balancer", f"lbaas/{kind}")[kind], key=lambda each: str(each["name"]))

    def members(self, pool: Object) -> list[Object]:
        """The members of a pool, by address."""
        found = self.api.get("load-balancer", f"lbaas/pools/{pool['id']}/members")["members"]
        return sorted(found, key=lambda each: str(each["address"]))

    def floating_ips(self) -> list[Object]:
        """All of the project."""
        return list(self.api.get("network", "floatingips")["floatingips"])

    def floating_ip(self) -> Object:
        """A new floating IP that the controller did not make."""
        body = {"floatingip": {"floating_network_id": self.public}}
        made: Object = self.api.post("network", "floatingips", body)["floatingip"]
        return made
