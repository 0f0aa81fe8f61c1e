"""A project of the real services for load balancers, and the networks that such projects share."""

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


class SharedNetworks:
    """A network of nodes with two subnets behind a router to an external one, for all projects that are let in.

    A router costs Neutron as much as the load balancer of a small test costs Octavia.
    """

    def __init__(self, peer: Peer, gold: str, silver: str) -> None:
        """`gold`, `silver`: ranges of the external network's subnets, which have these tags."""
        self._owner = Project(peer)
        peer.admin.put("network", f"quotas/{self._owner.id}", {"quota": {"rbac_policy": -1}})
        public, subnets = self._owner.network("public", gold, silver, external=True)
        for subnet, tag in zip(subnets, ("gold", "silver"), strict=True):
            peer.admin.put("network", f"subnets/{subnet['id']}/tags", {"tags": [tag, "v4"]})
        self.public: str = public["id"]
        self.nodes, (self.subnet, self.other) = self._owner.network("nodes", "10.1.0.0/16", "10.9.0.0/16")
        self.router = self._owner.router(self.subnet, self.other, external=self.public)

    def let_in(self, project: Project) -> None:
        """Show the project the network of nodes; it may use it, but for what is its owner's, as port security is."""
        given = {"object_type": "network", "object_id": self.nodes["id"], "action": "access_as_shared"}
        self._owner.api.post("network", "rbac-policies", {"rbac_policy": {**given, "target_tenant": project.id}})


class OctaviaAccount:
    """See `Account`. What the test itself does bypasses the proxy."""

    def __init__(self, site: Site, networks: SharedNetworks) -> None:
        networks.let_in(site.project)
        self.site = site
        self.api = site.project.api
        self.networks = networks

    def new_cloud(self, **options: Any) -> OpenStack:
        """See `Account`; `options` replace those of the cloud config's section [LoadBalancer]."""
        return self.site.cloud(load_balancers=self.options(**options))

    def options(self, **options: Any) -> LoadBalancerOptions:
        """The section [LoadBalancer] of the cloud config."""
        options.setdefault("networks", Networks(self.networks.public, subnet_id=self.networks.subnet["id"]))
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
        body = {"floatingip": {"floating_network_id": self.networks.public}}
        made: Object = self.api.post("network", "floatingips", body)["floatingip"]
        return made
