"""The stand-in's account and a cluster in it, for tests of classic load balancers."""

from __future__ import annotations

from typing import Any

from local.alicloud import machines
from local.alicloud.account import REGION
from local.alicloud.clb_acls import add_acl
from local.alicloud.clb_certificates import add_certificate
from tests.cloud_controller.clouds.alicloud.account import Account
from tests.cloud_controller.cluster import Cluster

NODES = 3


class Balancing(Account):
    """An account with certificates, access control lists and vSwitches that Services may name."""

    def __init__(self) -> None:
        super().__init__()
        with self.standin.changing() as world:
            self.vswitches = [self.vswitch, machines.add_vswitch(world, "vpc-cluster", f"{REGION}-k", "192.168.1.0/24")]
            for name in ("cert-1", "cert-2", "cert-a", "cert-b"):
                add_certificate(world, name)
            self.acls = [add_acl(world) for _ in range(2)]

    def new_cloud(self, **config: Any) -> Any:
        """The cloud as a new process sees it."""
        return self.cloud(**{"vswitch_id": self.vswitch, **config})

    def settle(self) -> None:
        """Nothing: the stand-in's CLB does everything at once."""

    def cluster(self, nodes: int = NODES) -> Cluster:
        """A cluster with so many nodes of the account."""
        found = Cluster()
        for number in range(1, nodes + 1):
            self.add_node(found, f"n{number}")
        return found

    def add_node(self, cluster: Cluster, name: str, **labels: str) -> str:
        """A node of a new machine; returns the machine's ID."""
        machine = self.machine(name)
        (interface,) = (each for each in self.objects(machines.ENI) if each["instance"] == machine)
        cluster.put_node(name, f"{REGION}.{machine}", interface["addresses"][0], labels=labels)
        return machine
