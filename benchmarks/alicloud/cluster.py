"""A cluster on a simulated account of Alibaba Cloud, for the benchmarks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from itertools import islice
from pathlib import Path

from benchmarks.alicloud.account import ZONES, Account, Machine
from benchmarks.cluster import POD_CIDR, control_plane, node
from benchmarks.cluster import Cluster as KubernetesCluster
from benchmarks.daemons import Daemon, Files, ours, running
from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.kube import Object
from local.alicloud.clb_balancers import GROUP as CLB_GROUP
from local.alicloud.nlb_jobs import GROUP as NLB_GROUP

LATENCY = 0.05
"""Seconds before each call is carried out: the cloud is not on this machine."""
_NO_ROUTES = "--configure-cloud-routes=false"
_ROUTES = f"--cluster-cidr={POD_CIDR}"
_KEYS = ("ALIBABA_CLOUD_", "ALICLOUD_")


@dataclass(frozen=True, slots=True)
class Kinds:
    """How many Services have a classic and a network load balancer."""

    clb: int = 0
    nlb: int = 0

    @property
    def both(self) -> int:
        """All of them."""
        return self.clb + self.nlb


class Cluster(KubernetesCluster):
    """One cluster on one simulated account."""

    def __init__(self, kubeconfig: str, account: Account, cloud_config: str, folder: Path) -> None:
        self.account = account
        self._files = Files.in_folder(folder, cloud_config, kubeconfig)
        self._pod_networks = ip_network(POD_CIDR).subnets(new_prefix=28)
        super().__init__(kubeconfig)

    def add_nodes(self, count: int, *, initialised: bool, with_pods: bool = False) -> list[Machine]:
        """Add running machines, and a node for each, as its kubelet would register it. `with_pods`: with a pod CIDR."""
        added = self.account.add_machines(count)
        cidrs = [str(each) for each in islice(self._pod_networks, count)] if with_pods else [None] * count
        self.register([_node(each, cidr, initialised) for each, cidr in zip(added, cidrs, strict=True)])
        return added

    @contextmanager
    def daemon(self, controllers: Sequence[str], *flags: str) -> Iterator[Daemon]:
        """Our controller, until the block ends."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(_KEYS)}
        routes = _ROUTES if "route" in controllers else _NO_ROUTES
        arguments = ours("alicloud", self._files, controllers, [routes, *flags])
        with running(arguments, environment, self.account.cloud, self._files.log) as daemon:
            yield daemon

    def members(self) -> set[int]:
        """The numbers of backends that server groups of both kinds have."""
        classic = {len(each["backends"]) for each in self.account.objects(CLB_GROUP)}
        return classic | {len(each["servers"]) for each in self.account.objects(NLB_GROUP)}


@contextmanager
def cluster() -> Iterator[Cluster]:
    """An empty cluster on an empty account; everything is deleted at the end."""
    account = Account(LATENCY)
    with control_plane() as (folder, kubeconfig), account.served() as cloud_config:
        made = Cluster(kubeconfig, account, cloud_config, folder)
        try:
            yield made
        finally:
            made.close()


def services(account: Account, kinds: Kinds) -> list[Object]:
    """Services with one TCP port each, as in the peer's recordings."""
    zone_maps = ",".join(f"{zone}:{vswitch}" for zone, vswitch in zip(ZONES, account.vswitches, strict=True))
    network = {f"{PREFIX}zone-maps": zone_maps}
    return [
        *(_service(f"clb-{number:05}", {}, {}) for number in range(kinds.clb)),
        *(
            _service(f"nlb-{number:05}", network, {"loadBalancerClass": "alibabacloud.com/nlb"})
            for number in range(kinds.nlb)
        ),
    ]


def _service(name: str, annotations: dict[str, str], spec: dict[str, str]) -> Object:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"type": "LoadBalancer", "selector": {"app": "none"}, "ports": ports, **spec},
    }


def _node(machine: Machine, pod_cidr: str | None, initialised: bool) -> Object:
    pods = {} if pod_cidr is None else {"podCIDR": pod_cidr, "podCIDRs": [pod_cidr]}
    return node(machine.name, machine.address, {"providerID": machine.provider_id, **pods}, initialised=initialised)
