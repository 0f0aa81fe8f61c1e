"""One run of one scenario on AWS: what people do to Services and nodes, and what came out."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.aws.account import Machine
from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, condition, has_taint, pod_cidrs
from cloud_controller.kube import NODES, SERVICES, Kube, NotFoundError, Object, PatchType, name
from tests.crash.aws_environment import SETTINGS, AwsEnvironment, Kind
from tests.crash.daemon import Json, until
from tests.crash.in_words import node_in_words, service_in_words
from tests.crash.scenarios import SPACE
from tests.crash.services import create_service
from tests.words import said

_PREFIX = "service.beta.kubernetes.io/aws-load-balancer-"
"""Of the annotations that people set."""


@dataclass
class AwsRun:
    """The objects that it made, under names that nobody had before."""

    environment: AwsEnvironment
    machines: list[Machine] = field(default_factory=list)
    services: list[str] = field(default_factory=list)

    @property
    def kube(self) -> Kube:
        """The API server, past the proxies."""
        return self.environment.kube

    # ------------------------------------------------------------------------------------------------ what people do

    def service(
        self,
        *ports: Json,
        kind: Kind = "network",
        settings: Mapping[str, str] | None = None,
        **spec: object,
    ) -> str:
        """Make a Service for a load balancer with these settings (annotations without their prefix); its name."""
        made = f"web-{next(self.environment.names)}"
        annotations = _annotations({**SETTINGS[kind], **(settings or {})})
        body = {
            "metadata": {"name": made, "namespace": SPACE, "annotations": annotations},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [*ports], **spec},
        }
        create_service(self.kube, body)
        self.services.append(made)
        return made

    def change(self, *, settings: Mapping[str, str | None] | None = None, **spec: object) -> None:
        """Change annotations (None: without it from now on) and spec of the first Service."""
        patch = {"metadata": {"annotations": _annotations(settings or {})}, "spec": spec}
        self.kube.patch(SERVICES, self.services[0], patch, SPACE, type=PatchType.MERGE)

    def delete_service(self) -> None:
        """Ask for the first Service's end."""
        self.kube.delete(SERVICES, self.services[0], SPACE)

    def node(self, *, pod_cidr: bool = True) -> Machine:
        """A new machine and its node, which a kubelet would have registered."""
        machine = self.environment.machine()
        self.machines.append(machine)
        self.environment.register(machine.name, machine.provider_id, pod_cidr=pod_cidr)
        return machine

    # -------------------------------------------------------------------------------------------------- what came out

    def get_service(self, which: int = 0) -> Object | None:
        """The Service, or None once it is gone."""
        try:
            return self.kube.get(SERVICES, self.services[which], SPACE)
        except NotFoundError:
            return None

    def get_node(self, machine: Machine) -> Object | None:
        """The machine's node, or None."""
        try:
            return self.kube.get(NODES, machine.name)
        except NotFoundError:
            return None

    def initialised(self, machine: Machine) -> bool:
        """Whether its node is done: no taint, and a route that is told where it has a pod range."""
        node = self.get_node(machine)
        if node is None or has_taint(node, UNINITIALIZED_TAINT):
            return False
        network = condition(node, "NetworkUnavailable")
        return not pod_cidrs(node) or (network is not None and network["status"] == "False")

    def ready(self) -> bool:
        """Whether all nodes are done."""
        return all(map(self.initialised, self.machines))

    def routes_to(self, machine: Machine) -> int:
        """How many routes lead to the machine."""
        return [*self.environment.routes().values()].count(machine.id)

    def load_balancers(self) -> list[Json]:
        """Those that there are, in words."""
        found: list[Json] = self.environment.left()["load_balancers"]
        return found

    def serves(self, *ports: str, kind: Kind = "network", of: int = 0) -> bool:
        """Whether the Service's status names a load balancer of this kind with exactly these listeners ("80 TCP")."""
        service = self.get_service(of)
        if service is None or not (service.get("status", {}).get("loadBalancer") or {}).get("ingress"):
            return False  # All that there is in a cloud may take dozens of calls, which the daemon would wait for.
        # A classic load balancer's listeners are told without their protocol, which is TCP.
        told = {each.removesuffix(" TCP") if kind == "classic" else each for each in ports}
        uid = service["metadata"]["uid"]
        found = [lb for lb in self.load_balancers() if uid in lb["tags"].values()]
        return [(lb["type"], {*lb["listeners"]}) for lb in found] == [(kind, told)]

    def targets_are(self, wanted: set[int]) -> bool:
        """Whether there are load balancers, and everything that they send to is exactly these machines."""
        ids = {self.machines[index].id for index in wanted}
        balancers = self.load_balancers()
        return bool(balancers) and all(
            {target.split()[0] for target in targets} == ids for lb in balancers for targets in self.targets(lb)
        )

    def targets(self, lb: Json) -> Sequence[Sequence[str]]:
        """What the load balancer, or each listener of it, sends to: machines, each with its port."""
        if lb["type"] == "classic":
            return [lb["instances"]]
        return [listener["target_group"]["targets"] for listener in lb["listeners"].values()]

    def snapshot(self) -> Json:
        """See `trial.Run.snapshot`."""
        words = self._words()
        services = [each for each in self.kube.list(SERVICES, SPACE).items if name(each) in self.services]
        found = {
            "load balancing": [self.environment.left()],
            "routes": [self.environment.routes()],
            "services": [service_in_words(each) for each in services],
            "nodes": [node_in_words(each) for each in self.kube.list(NODES).items],
        }
        return {kind: sorted(said(objects, words), key=str) for kind, objects in found.items()}

    # --------------------------------------------------------------------------------------------------- the end of it

    def clean(self) -> None:
        """See `trial.Run.clean`."""
        for service in self.services:
            with contextlib.suppress(NotFoundError):
                self.kube.delete(SERVICES, service, SPACE)
        until(lambda: not self._present_services(), "the Services are gone, and their finalizers")
        left = self.environment.left()
        assert not any(left.values()), f"left behind: {left}"
        self._end_machines()
        until(lambda: not self.environment.routes(), "no route is left")

    def force(self) -> None:
        """See `trial.Run.force`."""
        for service in self._present_services():
            with contextlib.suppress(NotFoundError):
                patch = {"metadata": {"finalizers": None}}
                self.kube.patch(SERVICES, service, patch, SPACE, type=PatchType.MERGE)
                self.kube.delete(SERVICES, service, SPACE)
        self.environment.remove_load_balancing()
        self._end_machines()
        self.environment.remove_routes()

    # ------------------------------------------------------------------------------------------------------- helpers

    def _present_services(self) -> list[str]:
        present = {name(service) for service in self.kube.list(SERVICES, SPACE).items}
        return [service for service in self.services if service in present]

    def _end_machines(self) -> None:
        for machine in self.machines:
            self.environment.end_machine(machine)
            with contextlib.suppress(NotFoundError):
                self.kube.delete(NODES, machine.name)

    def _words(self) -> dict[str, str]:
        """What stands for the names and numbers of this run."""
        words = {made: f"SERVICE-{index}" for index, made in enumerate(self.services)}
        # Names of load balancers are of the Service's, cut short, and a digest.
        short = {made.replace("-", ""): word for made, word in words.items()}
        words |= {lb: f"LB-OF-{short.get(lb.split('-')[2])}" for lb in self.environment.load_balancer_names()}
        for service in self.kube.list(SERVICES, SPACE).items:
            if name(service) in words:
                words[service["metadata"]["uid"]] = f"UID-OF-{words[name(service)]}"
                ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or []
                words |= {entry["hostname"]: f"HOST-OF-{words[name(service)]}" for entry in ingress}
        for index, machine in enumerate(self.machines):
            words |= {machine.name: f"NODE-{index}", machine.id: f"MACHINE-{index}"}
            words |= {machine.address: f"ADDRESS-{index}", machine.name.partition(".")[0]: f"NAME-{index}"}
            if (node := self.get_node(machine)) is not None:
                words |= dict.fromkeys(pod_cidrs(node), f"PODS-{index}")
        return words


def _annotations(settings: Mapping[str, str | None]) -> dict[str, str | None]:
    return {f"{_PREFIX}{setting}": value for setting, value in settings.items()}
