"""A cluster on a simulated account of AWS, for the benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.aws import peer
from benchmarks.aws.account import CLUSTER_ID, REGION, ZONES, Account, Machine
from benchmarks.aws.daemons import PEER, Who, command, running
from benchmarks.aws.moto import Simulator, simulator
from benchmarks.cluster import Cluster as KubernetesCluster
from benchmarks.cluster import control_plane, node
from benchmarks.daemons import Daemon, Files

_OVERRIDES = {"ec2": "EC2", "elb": "Elastic Load Balancing", "elbv2": "Elastic Load Balancing v2", "sts": "STS"}
"""The Go SDK's names of the services whose endpoints are set."""


class Cluster(KubernetesCluster):
    """One cluster on one simulated account."""

    def __init__(self, kubeconfig: str, simulated: Simulator, folder: Path, config: Mapping[str, str]) -> None:
        self.simulator = simulated
        self.account = Account(simulated.direct)
        self._files = Files.in_folder(folder, cloud_config(simulated.endpoint, self.account, config), kubeconfig)
        super().__init__(kubeconfig)

    def add_nodes(self, count: int, *, initialised: bool, public: bool = False) -> list[Machine]:
        """Add running machines, and a node for each, Ready, with its provider ID, as its kubelet would register it."""
        machines = self.account.add_machines(count, public=public)
        self.register(
            [
                node(each.name, each.address, {"providerID": each.provider_id}, initialised=initialised)
                for each in machines
            ]
        )
        return machines

    @contextmanager
    def daemon(self, who: Who, controllers: Sequence[str], *flags: str, haste: int = 1) -> Iterator[Daemon]:
        """One of the controllers, until the block ends. `haste`: how many times as fast the clock of our caches is."""
        binary = (
            peer.CONTROLLER.binary(lambda line: print(line, file=sys.stderr, flush=True)) if who == PEER else Path()
        )
        arguments = command(who, binary, self._files, controllers, flags, haste)
        with running(arguments, self.simulator, self._files.log) as daemon:
            yield daemon


def cloud_config(endpoint: str, account: Account, config: Mapping[str, str]) -> str:
    """The cloud.conf, the same file for both: complete, so that no metadata service is needed."""
    settings = {
        "Region": REGION,
        "Zone": ZONES[0],
        "VPC": account.vpc,
        # The peer assumes that it runs outside AWS only if a subnet is named, too.
        "SubnetID": account.public[0],
        "KubernetesClusterID": CLUSTER_ID,
        **config,
    }
    lines = ["[Global]", *(f"{key} = {value}" for key, value in settings.items())]
    for name, service in _OVERRIDES.items():
        lines += [
            f'[ServiceOverride "{name}"]',
            f"Service = {service}",
            f"Region = {REGION}",
            f"URL = {endpoint}",
            f"SigningRegion = {REGION}",
            f"SigningName = {'elasticloadbalancing' if name.startswith('elb') else name}",
        ]
    return "\n".join(lines) + "\n"


@contextmanager
def cluster(latency: float = 0.0, config: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """An empty cluster on an empty account; everything is deleted at the end. `config`: more of [Global]."""
    with control_plane() as (folder, kubeconfig), simulator(folder, latency) as simulated:
        made = Cluster(kubeconfig, simulated, folder, config or {})
        try:
            yield made
        finally:
            made.close()
