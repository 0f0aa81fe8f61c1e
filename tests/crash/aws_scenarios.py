"""As `scenarios`, on AWS: changes to Services, nodes and routes, and their ends."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.aws.account import Machine
from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, condition, has_taint, pod_cidrs
from cloud_controller.kube import NODES, SERVICES, Kube, NotFoundError, Object, PatchType, name
from tests.crash.aws_environment import AwsEnvironment
from tests.crash.daemon import Json, until
from tests.crash.in_words import node_in_words, service_in_words
from tests.crash.scenarios import DNS, HTTP, HTTPS, SPACE, port
from tests.crash.services import create_service
from tests.crash.trial import Scenario
from tests.words import said

PREFIX = "service.beta.kubernetes.io/aws-load-balancer-"
NETWORK = {"type": "nlb"}
CLASSIC: dict[str, str] = {}


@dataclass
class AwsRun:
    """One run of one scenario: the objects that it made, under names that nobody had before."""

    environment: AwsEnvironment
    machines: list[Machine] = field(default_factory=list)
    services: list[str] = field(default_factory=list)

    @property
    def kube(self) -> Kube:
        """The API server, past the proxies."""
        return self.environment.kube

    # ------------------------------------------------------------------------------------------------ what people do

    def service(self, *ports: Json, settings: Mapping[str, str], **spec: object) -> str:
        """Make a Service of type LoadBalancer with these settings (annotations without their prefix); its name."""
        made = f"web-{next(self.environment.names)}"
        metadata = {"name": made, "namespace": SPACE, "annotations": _annotations(settings)}
        body = {
            "metadata": metadata,
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
        """A new instance and its node, which a kubelet would have registered."""
        machine = self.environment.machine()
        self.machines.append(machine)
        self.environment.register(machine, pod_cidr=pod_cidr)
        return machine

    # -------------------------------------------------------------------------------------------------- what came out

    def serves(self, *ports: str, type: str = "network", of: int = 0) -> bool:
        """Whether the Service's status names a load balancer of this type with exactly these listeners ("80 TCP")."""
        service = self.get_service(of)
        if service is None or not (service.get("status", {}).get("loadBalancer") or {}).get("ingress"):
            return False  # All that there is in AWS takes dozens of calls to tell, which the daemon would wait for.
        uid = service["metadata"]["uid"]
        found = [lb for lb in self.load_balancers() if uid in lb["tags"].values()]
        return [(lb["type"], {*lb["listeners"]}) for lb in found] == [(type, {*ports})]

    def targets_are(self, wanted: set[int]) -> bool:
        """Whether there are load balancers, and everything that they send to is exactly these machines."""
        ids = {self.machines[index].id for index in wanted}
        balancers = self.load_balancers()
        return bool(balancers) and all(
            {target.split()[0] for target in targets} == ids for lb in balancers for targets in _targets(lb)
        )

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

    def routes_to(self, machine: Machine) -> int:
        """How many routes lead to the machine."""
        return [*self.environment.routes().values()].count(machine.id)

    def nothing_left(self) -> bool:
        """Whether all that was made for load balancers is gone."""
        left = self.environment.left()
        return not any(left.values())

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
        assert self.nothing_left(), f"left behind: {self.environment.left()}"
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

    def load_balancers(self) -> list[Json]:
        """Those that there are, in words."""
        found: list[Json] = self.environment.left()["load_balancers"]
        return found

    def _present_services(self) -> list[str]:
        present = {name(service) for service in self.kube.list(SERVICES, SPACE).items}
        return [service for service in self.services if service in present]

    def _end_machines(self) -> None:
        for machine in self.machines:
            self.environment.account.ec2.terminate_instances(InstanceIds=[machine.id])
            with contextlib.suppress(NotFoundError):
                self.kube.delete(NODES, machine.name)

    def _words(self) -> dict[str, str]:
        """What stands for the names and numbers of this run."""
        words = {made: f"SERVICE-{index}" for index, made in enumerate(self.services)}
        # Of the Service's name, cut short, and a digest.
        short = {made.replace("-", ""): index for index, made in enumerate(self.services)}
        for lb in self.environment.load_balancer_names():
            words[lb] = f"LB-OF-SERVICE-{short.get(lb.split('-')[2])}"
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
    return {f"{PREFIX}{setting}": value for setting, value in settings.items()}


def _targets(lb: Json) -> Sequence[Sequence[str]]:
    if lb["type"] == "classic":
        return [lb["instances"]]
    return [listener["target_group"]["targets"] for listener in lb["listeners"].values()]


# ---------------------------------------------------------------------------------------------------------- scenarios


def _a_node(run: AwsRun) -> None:
    run.node()


def _ready(run: AwsRun) -> bool:
    return all(run.initialised(machine) for machine in run.machines)


def _network(run: AwsRun) -> None:
    run.node()
    run.service(HTTP, HTTPS, DNS, settings=NETWORK)


def _network_serves(run: AwsRun) -> bool:
    return _ready(run) and run.serves("8080 TCP", "8443 TCP", "5353 UDP") and run.targets_are({0})


def _with_tls(run: AwsRun) -> None:
    # It is not changed: moto changes no listener that ends TLS.
    run.node()
    tls = {"ssl-cert": run.environment.certificate, "ssl-ports": "8443"}
    run.service(HTTP, HTTPS, DNS, settings={**NETWORK, **tls})


def _with_tls_serves(run: AwsRun) -> bool:
    return _network_serves(run) and run.load_balancers()[0]["listeners"]["8443 TCP"]["protocol"] == "TLS"


def _attributes_and_checks_are_changed(run: AwsRun) -> bool:
    (lb,) = run.load_balancers()
    return (
        all(each["target_group"]["health_check"]["interval"] == 10 for each in lb["listeners"].values())
        and lb["attributes"]["load_balancing.cross_zone.enabled"] == "true"
    )


def _classic(run: AwsRun) -> None:
    run.node()
    run.service(HTTP, HTTPS, settings=CLASSIC)


def _classic_serves(run: AwsRun) -> bool:
    return _ready(run) and run.serves("8080", "8443", type="classic") and run.targets_are({0})


def _tls_to_tls(run: AwsRun) -> dict[str, str | None]:
    # To instances, too: moto tells no other protocol than the listener's own, so that the daemon would change one that
    # ends TLS over and over.
    tls = {"ssl-cert": run.environment.certificate, "ssl-ports": "8443", "backend-protocol": "ssl"}
    return {**tls, "connection-idle-timeout": "300"}


def _both(run: AwsRun) -> None:
    run.node()
    run.service(HTTP, settings=NETWORK)
    run.service(HTTPS, settings=CLASSIC)


def _both_serve(run: AwsRun) -> bool:
    return (
        _ready(run)
        and run.serves("8080 TCP")
        and run.serves("8443", type="classic", of=1)
        and run.targets_are({*range(len(run.machines))})
    )


def _two_nodes(run: AwsRun) -> None:
    _both(run)
    run.node()


def _node_is_out(run: AwsRun) -> bool:
    machine = run.machines[-1]
    return run.get_node(machine) is None and not run.routes_to(machine) and run.targets_are({0})


AWS_SCENARIOS: Sequence[Scenario[AwsRun]] = (
    Scenario(
        "network load balancer",
        _a_node,
        _ready,
        lambda run: run.service(HTTP, DNS, settings=NETWORK),
        lambda run: run.serves("8080 TCP", "5353 UDP") and run.targets_are({0}),
    ),
    Scenario(
        "classic load balancer",
        _a_node,
        _ready,
        lambda run: run.service(HTTP, HTTPS, settings=CLASSIC),
        lambda run: run.serves("8080", "8443", type="classic") and run.targets_are({0}),
    ),
    Scenario(
        "port of a network load balancer changed",
        _network,
        _network_serves,
        lambda run: run.change(ports=[HTTP, port(9443, 31944), DNS]),
        lambda run: run.serves("8080 TCP", "9443 TCP", "5353 UDP"),
    ),
    Scenario(
        "attributes and health checks of a network load balancer with TLS changed",
        _with_tls,
        _with_tls_serves,
        lambda run: run.change(settings={"healthcheck-interval": "10", "cross-zone-load-balancing-enabled": "true"}),
        _attributes_and_checks_are_changed,
    ),
    Scenario(
        "source ranges of a network load balancer changed",
        _network,
        _network_serves,
        lambda run: run.change(loadBalancerSourceRanges=["10.0.0.0/8", "192.0.2.0/24"]),
        lambda run: "192.0.2.0/24" in str(run.environment.left()),
    ),
    Scenario(
        "listeners of a classic load balancer changed",
        _classic,
        _classic_serves,
        lambda run: run.change(settings=_tls_to_tls(run), ports=[HTTPS, port(9090, 31090)]),
        lambda run: run.serves("8443", "9090", type="classic"),
    ),
    Scenario(
        "classic instead of network load balancer",
        lambda run: (run.node(), run.service(HTTP, HTTPS, settings=NETWORK)),
        lambda run: _ready(run) and run.serves("8080 TCP", "8443 TCP") and run.targets_are({0}),
        lambda run: run.change(settings={"type": None}),
        lambda run: run.serves("8080", "8443", type="classic") and run.targets_are({0}),
    ),
    Scenario(
        "network instead of classic load balancer",
        _classic,
        _classic_serves,
        lambda run: run.change(settings=NETWORK),
        lambda run: run.serves("8080 TCP", "8443 TCP") and run.targets_are({0}),
    ),
    Scenario(
        "internal instead of internet-facing",
        lambda run: (run.node(), run.service(HTTP, settings=NETWORK)),
        lambda run: _ready(run) and run.serves("8080 TCP") and run.targets_are({0}),
        lambda run: run.change(settings={"internal": "true"}),
        lambda run: run.serves("8080 TCP") and "'internal'" in str(run.environment.left()),
    ),
    Scenario(
        "network load balancer deleted",
        _network,
        _network_serves,
        lambda run: run.delete_service(),
        lambda run: run.get_service() is None,
    ),
    Scenario(
        "classic load balancer deleted",
        _classic,
        _classic_serves,
        lambda run: run.delete_service(),
        lambda run: run.get_service() is None,
    ),
    Scenario(
        "first of two deleted",
        _both,
        _both_serve,
        lambda run: run.delete_service(),
        lambda run: run.get_service() is None,
    ),
    Scenario("node added", _both, _both_serve, lambda run: run.node(), _both_serve),
    Scenario(
        "node removed", _two_nodes, _both_serve, lambda run: run.environment.terminate(run.machines[-1]), _node_is_out
    ),
    Scenario(
        # AWS itself takes an instance that is terminated out of target groups, but not one that runs on.
        "node removed, its instance runs on",
        _two_nodes,
        _both_serve,
        lambda run: run.kube.delete(NODES, run.machines[-1].name),
        _node_is_out,
    ),
    Scenario(
        "route created",
        lambda run: run.node(pod_cidr=False),
        lambda run: run.initialised(run.machines[0]),
        lambda run: run.environment.give_pod_cidr(run.machines[0]),
        lambda run: run.initialised(run.machines[0]) and run.routes_to(run.machines[0]) == 1,
    ),
    Scenario(
        "route deleted",
        _a_node,
        lambda run: _ready(run) and run.routes_to(run.machines[0]) == 1,
        lambda run: run.kube.delete(NODES, run.machines[0].name),
        lambda run: not run.routes_to(run.machines[0]),
    ),
)
