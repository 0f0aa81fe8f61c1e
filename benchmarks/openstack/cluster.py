"""A cluster in a project of the real services, for the benchmarks."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_network
from itertools import islice
from pathlib import Path

from benchmarks.cluster import Cluster as KubernetesCluster
from benchmarks.cluster import control_plane, node
from benchmarks.counts import Counted, Tally
from benchmarks.daemons import Daemon, Files, ours, running
from cloud_controller.kube import NODES, Object
from local.http_messages import Answer, Request
from local.openstack.configs import PASSWORD
from local.openstack.peer import Peer, shared
from local.openstack.project import Project
from local.openstack.proxy import Proxy, operation_of

PODS = "10.244.0.0/16"
_NODES = "10.5.0.0/16"
_MODULE = ("-m", "benchmarks.openstack.patient")


class CountingProxy(Proxy):
    """The proxy with the tally of the benchmarks."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        super().__init__(ports)
        self._tally = Tally()

    def answer(self, request: Request) -> Answer:
        """See `Proxy.answer`."""
        self._tally.begin()
        try:
            return super().answer(request)
        finally:
            self._tally.end(operation_of(request))

    def counted(self) -> Counted:
        """All calls so far."""
        return self._tally.counted()


class Cluster(KubernetesCluster):
    """One cluster in one project."""

    def __init__(self, kubeconfig: str, peer: Peer, proxy: CountingProxy, folder: Path, *, routed: bool) -> None:
        """`routed`: with a network and a router, so that nodes have ports."""
        self._peer = peer
        self._proxy = proxy
        self.project = Project(peer)
        self._network = self.project.network("nodes", _NODES) if routed else None
        public = self.project.network("public", "203.0.113.0/24", external=True)[0]["id"] if routed else ""
        self.router = self.project.router(*self._network[1], external=public) if self._network else ""
        lines = [
            "[Global]",
            "cluster-id = benchmark",
            f"auth-url = {proxy.auth_url}",
            f"username = {self.project.name}",
        ]
        lines += [f"password = {PASSWORD}", f"tenant-id = {self.project.id}", "domain-id = default"]
        lines += ["[Route]", f"router-id = {self.router}"] if routed else []
        lines += ["[LoadBalancer]", f"floating-network-id = {public}"] if routed else []
        self._files = Files.in_folder(folder, "\n".join(lines) + "\n", kubeconfig)
        super().__init__(kubeconfig)

    def add_nodes(self, count: int) -> None:
        """Add running servers, and a node for each as its kubelet would register it; with a pod range if routed."""
        names = [_name(number) for number in range(count)]
        pods = [str(each) for each, _ in zip(ip_network(PODS).subnets(new_prefix=24), names, strict=False)]
        if self._network is None:
            for name, address in zip(names, ip_network(_NODES).hosts(), strict=False):
                self._boot(name, str(address))
            self.register([node(name, None, {}, initialised=False) for name in names])
            return
        for name in names:
            self.project.server(name, self._network)
        ranges = [{"podCIDR": cidr, "podCIDRs": [cidr]} for cidr in pods]
        self.register([node(name, None, of, initialised=False) for name, of in zip(names, ranges, strict=True)])

    def add_backends(self, *numbers: int) -> None:
        """Add nodes as another controller has initialised them: Nova is not asked for them."""
        hosts = [*islice(ip_network(_NODES).hosts(), 10, 11 + max(numbers))]
        specs = {each: {"providerID": f"openstack:///{uuid.uuid4()}"} for each in numbers}
        self.register([node(_name(each), str(hosts[each]), spec, initialised=True) for each, spec in specs.items()])

    def remove_backend(self, number: int) -> None:
        """Delete such a node."""
        self.kube.delete(NODES, _name(number))

    def full_reads(self) -> int:
        """How often the listeners of all load balancers were listed so far."""
        return self._proxy.counted().calls.get("GET load-balancer /v2/lbaas/listeners", 0)

    def parts(self, kind: str) -> list[Object]:
        """The project's load balancers, listeners or pools."""
        found: list[Object] = self.project.api.get("load-balancer", f"lbaas/{kind}")[kind]
        return found

    def floating_ips(self) -> list[Object]:
        """The project's."""
        found: list[Object] = self.project.api.get("network", "floatingips")["floatingips"]
        return found

    def routes(self) -> int:
        """How many the router has."""
        router = self.project.api.get("network", f"routers/{self.router}")["router"]
        return len(router["routes"])

    @contextmanager
    def daemon(self, controllers: Sequence[str], *flags: str) -> Iterator[Daemon]:
        """Our controller, until the block ends."""
        routes = f"--cluster-cidr={PODS}" if "route" in controllers else "--configure-cloud-routes=false"
        arguments = ours("openstack", self._files, controllers, [routes, *flags], _MODULE)
        with running(arguments, os.environ, self._proxy, self._files.log) as daemon:
            yield daemon

    def _boot(self, name: str, address: str) -> None:
        """A server that Neutron knows nothing of: only Nova is asked for nodes."""
        ip = {"cidr": _NODES, "address": address}
        interface = {"network_id": str(uuid.uuid4()), "network": "nodes", "port_id": str(uuid.uuid4()), "ips": [ip]}
        wanted = {"name": name, "project_id": self.project.id, "user_id": self.project.user_id}
        mac = {"mac": "fa:16:3e:00:00:01"}
        self._peer.admin.post("compute-peer", "servers", {**wanted, "interfaces": [interface | mac]})


def _name(number: int) -> str:
    return f"node-{number:05}"


@contextmanager
def cluster(*, routed: bool = False) -> Iterator[Cluster]:
    """An empty cluster in an empty project."""
    with (
        control_plane() as (folder, kubeconfig),
        shared(folder / "openstack", print) as peer,
        CountingProxy(peer.ports).serving() as proxy,
    ):
        made = Cluster(kubeconfig, peer, proxy, folder, routed=routed)
        try:
            yield made
        finally:
            made.close()
