"""What is done to a cluster while the manager is killed or loses answers: a table of changes and their ends."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cloud_controller.cloud import NotFound
from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, condition, has_taint, pod_cidrs
from cloud_controller.controllers.service.address_changes import ANNOTATION, CONDITION
from cloud_controller.kube import NODES, SERVICES, Kube, NotFoundError, Object, PatchType, name
from cloud_controller.load_balancers.model import PRESERVED_TAG
from cloud_controller.load_balancers.sharing import SHARED_WITH_TAG
from tests.crash.daemon import PATIENCE
from tests.crash.environment import Environment, Json, until
from tests.crash.in_words import kept, node_in_words, service_in_words
from tests.crash.services import create_service
from tests.crash.trial import Scenario
from tests.words import said

SPACE = "default"
THEIRS = 7777
"""A port of a load balancer that is somebody's already."""
USE = "service.beta.kubernetes.io/dlb-id"
FORCE = "service.beta.kubernetes.io/dlb-force-override-listeners"
MAX_QPS = "service.beta.kubernetes.io/dlb-listener-maxqps"
SCHEME = "service.beta.kubernetes.io/dlb-scheme"
PRESERVE = "service.beta.kubernetes.io/dlb-preserve-on-delete"


@dataclass
class Run:
    """One run of one scenario: the objects that it made, under names that nobody had before."""

    environment: Environment
    machines: list[Json] = field(default_factory=list)
    services: list[str] = field(default_factory=list)
    uids: dict[str, str] = field(default_factory=dict)
    """The names of the Services by UID, for load balancers may outlive them."""
    given: list[str] = field(default_factory=list)
    """Load balancers that people made, and that are theirs."""

    @property
    def kube(self) -> Kube:
        """The API server, past the proxies."""
        return self.environment.kube

    # ------------------------------------------------------------------------------------------------ what people do

    def service(self, *ports: Json, annotations: Mapping[str, str] | None = None, **spec: Any) -> str:
        """Make a Service of type LoadBalancer; its name."""
        made = f"web-{next(self.environment.names)}"
        body = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": made, "namespace": SPACE, "annotations": dict(annotations or {})},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [*ports], **spec},
        }
        create_service(self.kube, body)
        self.services.append(made)
        self.uids[self.kube.get(SERVICES, made, SPACE)["metadata"]["uid"]] = made
        return made

    def change_ports(self, *ports: Json) -> None:
        """Give the Service these ports instead of all that it has."""
        patch = {"spec": {"ports": [*ports]}}
        self.kube.patch(SERVICES, self.services[0], patch, SPACE, type=PatchType.MERGE)

    def annotate(self, **annotations: str) -> None:
        """Set these annotations of the Service."""
        patch = {"metadata": {"annotations": annotations}}
        self.kube.patch(SERVICES, self.services[0], patch, SPACE, type=PatchType.MERGE)

    def acknowledge(self) -> None:
        """Acknowledge the change of the Service's address that is held."""
        digest = _digest(self.get_service() or {})
        assert digest is not None
        self.annotate(**{ANNOTATION: digest})

    def delete_service(self, which: int = 0) -> None:
        """Ask for the Service's end."""
        self.kube.delete(SERVICES, self.services[which], SPACE)

    def node(self, *, pod_cidr: bool = True) -> Json:
        """A new machine and its node, which a kubelet would have registered."""
        machine = self.environment.machine()
        self.machines.append(machine)
        self.environment.register(machine["name"], pod_cidr=pod_cidr)
        return machine

    def give_load_balancer(self) -> str:
        """A load balancer of somebody's, with a listener of its own; its id."""
        body = {
            "name": "given",
            "network_id": self.environment.network["id"],
            "tags": {SHARED_WITH_TAG: "any"},
            "backend_sets": [{"name": "theirs"}],
            "listeners": [{"protocol": "TCP", "port": THEIRS, "backend_set": "theirs"}],
        }
        made = self.environment.cloud.create("load_balancers", body)
        self.environment.cloud.wait_for_state("load_balancers", made["id"], ["available"], PATIENCE)
        self.given.append(made["id"])
        return str(made["id"])

    # -------------------------------------------------------------------------------------------------- what came out

    def serves(self, *ports: int, of: int = 0) -> bool:
        """Whether the Service's status names a load balancer that is open on exactly these ports."""
        service = self.get_service(of)
        ingress = ((service or {}).get("status", {}).get("loadBalancer") or {}).get("ingress") or []
        open_at = {
            lb["address"]: {listener["port"] for listener in lb["listeners"]}
            for lb in self.environment.load_balancers()
            if lb["state"] == "available"
        }
        return [open_at.get(entry.get("ip")) for entry in ingress] == [set(ports)]

    def get_service(self, which: int = 0) -> Object | None:
        """The Service, or None once it is gone."""
        try:
            return self.kube.get(SERVICES, self.services[which], SPACE)
        except NotFoundError:
            return None

    def holds_address(self) -> bool:
        """Whether the Service's condition tells of a change of its address that is held."""
        return CONDITION in str((self.get_service() or {}).get("status"))

    def gone(self, which: int = 0) -> bool:
        """Whether the Service does not exist any more."""
        return self.get_service(which) is None

    def initialised(self, machine: Json) -> bool:
        """Whether its node is done: no taint, and a route that is told where it has a pod range."""
        node = self.get_node(machine)
        if node is None or has_taint(node, UNINITIALIZED_TAINT):
            return False
        network = condition(node, "NetworkUnavailable")
        return not pod_cidrs(node) or (network is not None and network["status"] == "False")

    def get_node(self, machine: Json) -> Object | None:
        """The machine's node, or None."""
        try:
            return self.kube.get(NODES, machine["name"])
        except NotFoundError:
            return None

    def members_are(self, wanted: set[int]) -> bool:
        """Whether there are load balancers, and each of their backend sets sends to at least these machines."""
        ids = {self.machines[index]["id"] for index in wanted}
        pools = [pool for lb in self.environment.load_balancers() for pool in lb["backend_sets"]]
        return bool(pools) and all(ids <= {backend["machine_id"] for backend in pool["backends"]} for pool in pools)

    def members(self) -> set[str]:
        """The machines that any load balancer sends to."""
        return {
            backend["machine_id"]
            for lb in self.environment.load_balancers()
            for pool in lb["backend_sets"]
            for backend in pool["backends"]
        }

    def routes_to(self, machine: Json) -> int:
        """How many routes lead to the machine."""
        return sum(route["next_hop_machine_id"] == machine["id"] for route in self.environment.routes())

    def snapshot(self) -> Json:
        """Everything in cloud and cluster that matters, in words that are the same for every run."""
        words = self._words()
        machines = self.environment.cloud.list("machines", ids=[machine["id"] for machine in self.machines])
        found = {
            "load balancers": [_lb(lb) for lb in self.environment.load_balancers()],
            "routes": self.environment.routes(),
            "machines": [{"name": each["name"], "state": each["state"], "tags": each["tags"]} for each in machines],
            "services": [service_in_words(each) for each in self.kube.list(SERVICES, SPACE).items],
            "nodes": [node_in_words(each) for each in self.kube.list(NODES).items],
        }
        return {kind: sorted(said(objects, words), key=str) for kind, objects in found.items()}

    def _words(self) -> dict[str, str]:
        """What stands for the names and numbers of this run."""
        words = {made: f"SERVICE-{index}" for index, made in enumerate(self.services)}
        words |= {uid: f"UID-OF-{words[made]}" for uid, made in self.uids.items()}
        for service in self.kube.list(SERVICES, SPACE).items:
            words |= {digest: "DIGEST" for digest in [_digest(service)] if digest}
        for index, machine in enumerate(self.machines):
            words |= {machine["name"]: f"NODE-{index}", machine["id"]: f"MACHINE-{index}"}
            words |= dict.fromkeys(machine["private_ips"], f"ADDRESS-{index}")
            words |= dict.fromkeys(machine["ipv6_addresses"], f"IPV6-ADDRESS-{index}")
            if (node := self.get_node(machine)) is not None:
                words |= dict.fromkeys(pod_cidrs(node), f"PODS-{index}")
        for lb in sorted(self.environment.load_balancers(), key=lambda lb: str(lb["created_at"])):
            words |= {lb["address"]: f"ADDRESS-OF-LB-{lb['name']}", lb["id"]: f"LB-{lb['name']}"}
        return words

    # --------------------------------------------------------------------------------------------------- the end of it

    def clean(self) -> None:
        """See `trial.Run.clean`."""
        cloud = self.environment.cloud
        for service in self.services:
            with contextlib.suppress(NotFoundError):
                self.kube.delete(SERVICES, service, SPACE)
        until(lambda: not self._present_services(), "the Services are gone, and their finalizers")
        until(lambda: not self._owned(), "no load balancer is left")
        for lb in self.environment.load_balancers():
            if lb["id"] in self.given:
                came_back = [(each["port"], each["backend_set"]) for each in lb["listeners"]]
                assert came_back == [(THEIRS, "theirs")], f"what was lent came back as {lb}"
                assert [each["name"] for each in lb["backend_sets"]] == ["theirs"], f"it was lent without more: {lb}"
            cloud.delete("load_balancers", lb["id"])
        until(lambda: not self.environment.load_balancers(), "the load balancers that people made are gone")
        self._end_machines()
        until(lambda: not self.environment.routes(), "no route is left")

    def force(self) -> None:
        """See `trial.Run.force`."""
        environment = self.environment
        for service in self._present_services():
            patch = {"metadata": {"finalizers": None}}
            with contextlib.suppress(NotFoundError):
                self.kube.patch(SERVICES, service, patch, SPACE, type=PatchType.MERGE)
                self.kube.delete(SERVICES, service, SPACE)
        for lb in environment.load_balancers():
            environment.cloud.delete("load_balancers", lb["id"])
            environment.cloud.wait_until_gone("load_balancers", lb["id"], PATIENCE)
        self._end_machines()
        table = environment.network["route_table_id"]
        if cidrs := [route["destination_cidr"] for route in environment.routes()]:
            environment.cloud.post(f"route_tables/{table}/routes:batch_delete", {"destination_cidrs": cidrs[:50]})

    def _owned(self) -> list[Json]:
        """The load balancers that no person has to delete."""
        return [
            lb
            for lb in self.environment.load_balancers()
            if lb["id"] not in self.given and PRESERVED_TAG not in lb["tags"]
        ]

    def _present_services(self) -> list[str]:
        present = {name(service) for service in self.kube.list(SERVICES, SPACE).items}
        return [service for service in self.services if service in present]

    def _end_machines(self) -> None:
        cloud = self.environment.cloud
        for machine in self.machines:
            with contextlib.suppress(NotFound):
                if cloud.get("machines", machine["id"])["state"] != "terminated":
                    cloud.delete("machines", machine["id"])
            with contextlib.suppress(NotFoundError):
                self.kube.delete(NODES, machine["name"])


def port(number: int, node_port: int, protocol: str = "TCP") -> Json:
    """A Service's port."""
    title = f"{protocol.lower()}-{number}"
    return {"name": title, "port": number, "targetPort": number, "nodePort": node_port, "protocol": protocol}


HTTP, HTTPS, DNS = port(8080, 31080), port(8443, 31443), port(5353, 31053, "UDP")


def _nothing(_: Run) -> None:
    pass


def _always(_: Run) -> bool:
    return True


def _three_ports(run: Run) -> None:
    run.service(HTTP, HTTPS, DNS)


def _three_serve(run: Run) -> bool:
    return run.serves(8080, 8443, 5353)


def _a_node_and_two_services(run: Run) -> None:
    run.node()
    run.service(HTTP)
    run.service(HTTPS)


def _all_serve(run: Run) -> bool:
    return run.initialised(run.machines[0]) and len(run.environment.load_balancers()) == 2 and run.members_are({0})


def _node_is_out(run: Run) -> bool:
    machine = run.machines[-1]
    return run.get_node(machine) is None and not run.routes_to(machine) and machine["id"] not in run.members()


def _add_second(run: Run) -> None:
    _a_node_and_two_services(run)
    run.node()


def _second_serves(run: Run) -> bool:
    return len(run.machines) == 2 and run.initialised(run.machines[1]) and run.members_are({0, 1})


def _node_without_pods(run: Run) -> None:
    run.node(pod_cidr=False)


def _on_a_given_one(run: Run) -> None:
    run.service(HTTP, HTTPS, annotations={USE: run.given[0] if run.given else run.give_load_balancer()})


def _taken_over(run: Run) -> None:
    annotations = {USE: run.given[0] if run.given else run.give_load_balancer(), FORCE: "true"}
    run.service(HTTP, port(THEIRS, 31777), annotations=annotations)


def _on_anothers(run: Run) -> None:
    run.service(HTTPS, annotations={USE: run.environment.load_balancers()[0]["id"]})


def _owner_and_guest(run: Run) -> None:
    run.service(HTTP)
    until(lambda: run.serves(8080), "the first one serves")
    _on_anothers(run)


def _digest(service: Object) -> str | None:
    """The digest that an acknowledgement, or the condition that asks for one, names."""
    given = (service["metadata"].get("annotations") or {}).get(ANNOTATION)
    asked = str((service.get("status") or {}).get("conditions")).partition(f'{ANNOTATION}: "')[2].partition('"')[0]
    return asked or given


def _becomes_internal(run: Run) -> None:
    run.annotate(**{SCHEME: "internal", MAX_QPS: "9000"})


def _waits_for_acknowledgement(run: Run) -> None:
    run.service(HTTP)
    until(lambda: run.serves(8080), "it serves")
    _becomes_internal(run)


def _stays(run: Run) -> bool:
    """Whether the change is held, and what else was asked for is there."""
    return run.holds_address() and _schemes_and_limits(run) == [("internet-facing", 9000)] and run.serves(8080)


def _moved(run: Run) -> bool:
    return not run.holds_address() and _schemes_and_limits(run) == [("internal", 9000)] and run.serves(8080)


def _schemes_and_limits(run: Run) -> list[tuple[str, int | None]]:
    """The scheme of each load balancer, and the limit of its first listener."""
    return [(lb["scheme"], lb["listeners"][0]["max_qps"]) for lb in run.environment.load_balancers() if lb["listeners"]]


def _preserved(run: Run) -> None:
    run.service(HTTP, DNS, annotations={PRESERVE: "true"})


SCENARIOS: Sequence[Scenario[Run]] = (
    Scenario("load balancer with three listeners", _nothing, _always, _three_ports, _three_serve),
    Scenario(
        "port changed",
        _three_ports,
        _three_serve,
        lambda run: run.change_ports(HTTP, port(9443, 31944), DNS),
        lambda run: run.serves(8080, 9443, 5353),
    ),
    Scenario(
        "protocol changed",
        lambda run: run.service(HTTP, DNS),
        lambda run: run.serves(8080, 5353),
        lambda run: run.change_ports(HTTP, port(5353, 31054, "TCP")),
        lambda run: (
            {(each["protocol"], each["port"]) for lb in run.environment.load_balancers() for each in lb["listeners"]}
            == {("TCP", 8080), ("TCP", 5353)}
        ),
    ),
    Scenario("service deleted", _three_ports, _three_serve, lambda run: run.delete_service(), lambda run: run.gone()),
    Scenario("node added", _a_node_and_two_services, _all_serve, lambda run: run.node(), _second_serves),
    Scenario(
        "node removed",
        _add_second,
        lambda run: _all_serve(run) and _second_serves(run),
        lambda run: run.environment.terminate(run.machines[-1]),
        _node_is_out,
    ),
    Scenario(
        "route created",
        _node_without_pods,
        lambda run: run.initialised(run.machines[0]),
        lambda run: run.environment.give_pod_cidr(run.machines[0]["name"]),
        lambda run: run.initialised(run.machines[0]) and run.routes_to(run.machines[0]) == 1,
    ),
    Scenario(
        "route deleted",
        lambda run: run.node(),
        lambda run: run.initialised(run.machines[0]) and run.routes_to(run.machines[0]) == 1,
        lambda run: run.kube.delete(NODES, run.machines[0]["name"]),
        lambda run: not run.routes_to(run.machines[0]),
    ),
    Scenario(
        "existing load balancer used",
        lambda run: run.give_load_balancer(),
        _always,
        _on_a_given_one,
        lambda run: run.serves(8080, 8443, THEIRS),
    ),
    Scenario(
        "existing load balancer given back",
        _on_a_given_one,
        lambda run: run.serves(8080, 8443, THEIRS),
        lambda run: run.delete_service(),
        lambda run: run.gone(),
    ),
    Scenario(
        "listener taken over",
        lambda run: run.give_load_balancer(),
        _always,
        _taken_over,
        lambda run: run.serves(8080, THEIRS),
    ),
    Scenario(
        "listener given back",
        _taken_over,
        lambda run: run.serves(8080, THEIRS),
        lambda run: run.delete_service(),
        lambda run: run.gone(),
    ),
    Scenario(
        "load balancer of another service used",
        lambda run: run.service(HTTP),
        lambda run: run.serves(8080),
        _on_anothers,
        lambda run: run.serves(8080, 8443, of=1),
    ),
    Scenario(
        "owner gone before the other service",
        _owner_and_guest,
        lambda run: run.serves(8080, 8443, of=1),
        lambda run: run.delete_service(),
        lambda run: run.gone() and run.serves(8443, of=1),
    ),
    Scenario(
        "change of the address held",
        lambda run: run.service(HTTP),
        lambda run: run.serves(8080),
        _becomes_internal,
        _stays,
    ),
    Scenario(
        "change of the address acknowledged", _waits_for_acknowledgement, _stays, lambda run: run.acknowledge(), _moved
    ),
    Scenario(
        "load balancer preserved",
        _preserved,
        lambda run: run.serves(8080, 5353),
        lambda run: run.delete_service(),
        lambda run: run.gone(),
    ),
)


def _lb(lb: Json) -> Json:
    return {
        **kept(lb),
        "listeners": sorted(lb["listeners"], key=lambda each: (each["port"], each["protocol"])),
        "backend_sets": sorted(
            ({**each, "backends": sorted(each["backends"], key=str)} for each in lb["backend_sets"]),
            key=lambda each: str(each["name"]),
        ),
    }
