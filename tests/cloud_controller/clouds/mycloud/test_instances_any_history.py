"""Whatever happens to machines, nodes and routes, and to the daemon: at rest each node is as its machine says.

As `test_load_balancer_any_history`, for the controllers of nodes, their lifecycle and routes, on mycloud's real API.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from cloud_controller.clouds.mycloud.annotations import INGRESS_NODE
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.loop import ControllerContext, LoopController
from cloud_controller.controllers.node import NodeController
from cloud_controller.controllers.node_lifecycle import NodeLifecycleController
from cloud_controller.controllers.route import RouteController, RouteOptions
from cloud_controller.kube import NODES
from cloud_controller.load_balancers.model import CLUSTER_TAG
from cloud_controller.metrics import Metrics
from local.mycloud.models.common import State
from tests.cloud_controller.clouds.mycloud.kubernetes_in_memory import (
    Crash,
    InMemoryInformer,
    one_pass,
)
from tests.cloud_controller.clouds.mycloud.random_histories import (
    History,
    NewSite,
    kinds_of_faults,
    last_writes,
    numbers_of_faults,
    run_histories,
)
from tests.cloud_controller.guard import guard

if TYPE_CHECKING:
    from cloud_controller.kube import Object
    from tests.cloud_controller.clouds.conftest import Json

UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"
LABELS = {
    "topology.kubernetes.io/zone": "zone",
    "failure-domain.beta.kubernetes.io/zone": "zone",
    "topology.kubernetes.io/region": "region",
    "failure-domain.beta.kubernetes.io/region": "region",
    "node.kubernetes.io/instance-type": "type",
    "beta.kubernetes.io/instance-type": "type",
}
NAMES = ("a", "b", "c")
PASSES = 4
"""Passes over everything after which all is at rest: what one makes, the next may need."""

names = st.sampled_from(NAMES)
operations = st.sampled_from(
    ["*", "GET *", "GET /v1/machines*", "POST *routes:batch_create", "POST *routes:batch_delete"]
)


class Process:
    """The controller manager, as far as nodes are concerned."""

    def __init__(self, world: World) -> None:
        cloud, api, clock = world.new_cloud(), world.api, world.clock
        self.informer = InMemoryInformer(api, NODES)
        machines = InstanceSnapshot(cloud.instances, 5.0, clock=clock)
        self.safeguard = guard(api)
        context = ControllerContext(api, cloud, self.informer, Metrics(), machines, self.safeguard, workers=1)
        self.controllers: list[LoopController] = [
            NodeController(context),
            NodeLifecycleController(context),
            RouteController(context, RouteOptions((world.site.network["pod_cidr"],))),
        ]
        for controller in self.controllers:
            controller._queue._clock = clock
        self.informer.relist()

    def end(self) -> None:
        """Its threads end with it."""
        for controller in self.controllers:
            assert controller.events.close(60)


class World(History):
    """A site, an API server and the controllers of nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.machines: dict[str, Json] = {}
        """The living machine of each name."""
        self.ranges = ip_network(self.site.network["pod_cidr"]).subnets(new_prefix=24)
        self.process: Process | None = None

    @initialize(machines=st.sets(names))
    def begin(self, machines: set[str]) -> None:
        stranger = self.site.machine("stranger", tags={"team": "other"})
        inside, outside = str([*self._pods.subnets(new_prefix=24)][-1]), "10.255.0.0/24"
        self._write_routes("batch_create", {inside: stranger["id"], outside: stranger["id"]})
        self.foreign = self._table()
        for name in sorted(machines):
            self.a_machine_boots(name, ingress=False, registers=True)
        self.start()

    def end(self) -> None:
        if self.process:
            self.come_to_rest()
            self.process.end()

    # --------------------------------------------------------------------------------------------- machines and nodes

    @rule(name=names, ingress=st.booleans(), registers=st.booleans())
    def a_machine_boots(self, name: str, ingress: bool, registers: bool) -> None:
        if name not in self.machines:
            tags = {CLUSTER_TAG: self.site.cluster["id"], **({INGRESS_NODE: "true"} if ingress else {})}
            self.machines[name] = self.site.machine(name, tags=tags)
        if registers and self._state(name) == State.RUNNING and name not in self.nodes:
            pods = str(next(self.ranges))
            node: Object = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"own": "label"}},
                "spec": {
                    "podCIDR": pods,
                    "podCIDRs": [pods],
                    "taints": [{"key": UNINITIALIZED, "effect": "NoSchedule"}, {"key": "own", "effect": "NoSchedule"}],
                },
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
            self.api.put(NODES, node)

    @precondition(lambda self: bool(self.machines))
    @rule(name=names)
    def a_machine_stops_or_starts(self, name: str) -> None:
        if name in self.machines:
            stops = self._state(name) == State.RUNNING
            self.site.set_machine_state(self.machines[name]["id"], State.STOPPED if stops else State.RUNNING)
            self._report(name, self.machines[name], ready="Unknown" if stops else "True")

    @precondition(lambda self: bool(self.machines))
    @rule(name=names, forgotten=st.booleans())
    def a_machine_is_terminated(self, name: str, forgotten: bool) -> None:
        machine = self.machines.pop(name, None)
        if machine:
            self.site.client.delete("machines", machine["id"])
            self.site.set_machine_state(machine["id"], State.TERMINATED)
            if forgotten:
                self.site.forget_machine(machine["id"])
            self._report(name, machine, ready="Unknown")

    @precondition(lambda self: bool(self.nodes))
    @rule(name=names)
    def somebody_deletes_a_node(self, name: str) -> None:
        if name in self.nodes:
            self.api.remove(NODES, name)

    @precondition(lambda self: bool(self.nodes))
    @rule(name=names, what=st.sampled_from(["label", "taint", "address", "ingress"]))
    def somebody_edits_a_node(self, name: str, what: str) -> None:
        def edit(node: Object) -> None:
            if what == "label":
                node["metadata"]["labels"]["topology.kubernetes.io/zone"] = "elsewhere"
            elif what == "taint":
                node["spec"]["taints"] = [*node["spec"].get("taints", []), {"key": "more", "effect": "NoExecute"}]
            elif what == "ingress":
                node["metadata"]["annotations"] = {INGRESS_NODE: "true"}
            else:
                node["status"]["addresses"] = [{"type": "InternalIP", "address": "192.0.2.1"}]

        if name in self.nodes:
            self.api.change(NODES, name, edit)

    # --------------------------------------------------------------------------------------------------------- routes

    @rule(which=st.integers(0, 3), leads_elsewhere=st.booleans())
    def somebody_meddles_with_a_route(self, which: int, leads_elsewhere: bool) -> None:
        own = sorted(self._table().items() - self.foreign.items())
        if own:
            cidr, _ = own[which % len(own)]
            self._write_routes("batch_delete", {cidr: ""})
            if leads_elsewhere and self.machines:
                self._write_routes("batch_create", {cidr: self.machines[min(self.machines)]["id"]})

    @rule(quota=st.sampled_from([2, 3, 48]))
    def the_table_gets_a_quota(self, quota: int) -> None:
        self.site.set_quotas(routes_per_table=quota)

    # ------------------------------------------------------------------------------------- the daemon and its troubles

    @rule(operation=operations, kind=kinds_of_faults, count=numbers_of_faults)
    def the_next_calls_fail(self, operation: str, kind: str, count: int) -> None:
        self.faults.append((operation, kind, count))

    @rule()
    def lists_are_behind(self) -> None:
        self.site.set_lag(3600)

    @rule()
    def the_watch_falls_behind(self) -> None:
        self._process.informer.held = True

    @rule()
    def start(self) -> None:
        if self.process:
            self.process.end()
        self.process = Process(self)

    @rule(seconds=st.sampled_from([1.0, 30.0, 1000.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.sleep(seconds)

    @rule(which=st.integers(0, 2), everything=st.booleans(), last_write=last_writes)
    def a_controller_works(self, which: int, everything: bool, last_write: int | None) -> None:
        self.writes_left.count = last_write
        self._work(which, everything=everything)
        self.writes_left.count = None

    @rule(last_write=last_writes)
    def come_to_rest(self, last_write: int | None = None) -> None:
        self.site.set_lag(0)
        self.site.set_quotas(routes_per_table=48)
        self.writes_left.count = last_write
        self._process.informer.resume()
        for _ in range(PASSES):
            # A node that was never initialised is deleted only when its machine has been missing for a minute.
            lifecycle: Any = self._process.controllers[1]
            lifecycle._missing_since = dict.fromkeys(lifecycle._missing_since, 0.0)
            for which in range(3):
                self._work(which, everything=True)
            # Where not one node is left that shows whose cluster this is, an administrator must say so.
            self.api.confirm_all(self._process.safeguard)
            self.clock.sleep(1000)
        self.writes_left.count = None
        self.api.refusals = 0
        for which in range(3):  # After what the last crash or refusal left.
            for _ in range(3):
                self._work(which, everything=True)
                self.api.confirm_all(self._process.safeguard)
                self.clock.sleep(1000)
        self._check_nodes()
        self._check_that_nothing_is_left_to_do()

    def _work(self, which: int, *, everything: bool) -> bool:
        seen = len(self.api.deleted)
        try:
            with self.faulty():
                return one_pass(self._process.controllers[which], everything=everything)
        except Crash:
            self.start()
            return False
        finally:
            living = {provider_id(machine) for machine in self.machines.values()}
            wrongly = [node for node in self.api.deleted[seen:] if node["spec"].get("providerID") in living]
            assert wrongly == [], "a node was deleted though its machine is there"

    # -------------------------------------------------------------------------------------------------------- at rest

    def _check_nodes(self) -> None:
        routes = dict(self.foreign)
        for name, node in self.nodes.items():
            if name in self._in_doubt():
                # It has no address: a machine without a node, which may be called otherwise, may be its own.
                assert self.machines.keys() - self.nodes.keys(), f"node {name} has no machine any more"
                continue
            assert name in self.machines, f"node {name} has no machine any more"
            machine = self.site.client.get("machines", self.machines[name]["id"])
            labels, taints = node["metadata"]["labels"], {taint["key"] for taint in node["spec"]["taints"]}
            addresses = [(each["type"], each["address"]) for each in node["status"]["addresses"]]
            assert node["spec"]["providerID"] == provider_id(machine)
            assert {label: labels.get(label) for label in LABELS} == {
                label: machine[field] for label, field in LABELS.items()
            }
            assert labels["own"] == "label" and "own" in taints
            assert UNINITIALIZED not in taints
            assert (SHUTDOWN in taints) == (machine["state"] == "stopped")
            assert addresses == [
                *(("InternalIP", address) for address in machine["private_ips"] + machine["ipv6_addresses"]),
                ("Hostname", name),
            ]
            assert node["metadata"].get("annotations", {}).get(INGRESS_NODE) == machine["tags"].get(INGRESS_NODE)
            network = [each for each in node["status"]["conditions"] if each["type"] == "NetworkUnavailable"]
            assert [each["status"] for each in network] == ["False"]
            routes[node["spec"]["podCIDR"]] = machine["id"]
        assert self._table() == routes

    def _check_that_nothing_is_left_to_do(self) -> None:
        before = (self.site.writes(), self.api.writes)
        for which in range(3):
            # The node controller looks again for the machine of a node that is left in doubt.
            assert self._work(which, everything=True) or (which == 0 and self._in_doubt())
        assert (self.site.writes(), self.api.writes) == before

    # -------------------------------------------------------------------------------------------------------- helpers

    def _in_doubt(self) -> set[str]:
        """The nodes that were never initialised and whose names no machine has."""
        return {
            name
            for name, node in self.nodes.items()
            if name not in self.machines and not node["spec"].get("providerID")
        }

    @property
    def nodes(self) -> dict[str, Object]:
        return self.api.objects(NODES)

    @property
    def _process(self) -> Process:
        assert self.process is not None
        return self.process

    @property
    def _pods(self) -> Any:
        return ip_network(self.site.network["pod_cidr"])

    @property
    def _routes_path(self) -> str:
        return f"route_tables/{self.site.network['route_table_id']}/routes"

    def _table(self) -> dict[str, str]:
        routes = self.site.client.list(self._routes_path)
        return {each["destination_cidr"]: each["next_hop_machine_id"] for each in routes}

    def _write_routes(self, verb: str, routes: dict[str, str]) -> None:
        wanted = [{"destination_cidr": cidr, "next_hop_machine_id": machine} for cidr, machine in routes.items()]
        body: Json = {"routes": wanted} if verb == "batch_create" else {"destination_cidrs": [*routes]}
        self.site.client.post(f"{self._routes_path}:{verb}", body)

    def _state(self, name: str) -> State:
        return State(self.site.client.get("machines", self.machines[name]["id"])["state"])

    def _report(self, name: str, machine: Json, ready: str) -> None:
        """What the machine's kubelet, or the node monitor in its place, says of its own node."""

        def change(node: Object) -> None:
            rest = [each for each in node["status"]["conditions"] if each["type"] != "Ready"]
            node["status"]["conditions"] = [*rest, {"type": "Ready", "status": ready}]

        if name in self.nodes and self.nodes[name]["spec"].get("providerID") in (None, provider_id(machine)):
            self.api.change(NODES, name, change)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_at_rest_every_node_is_as_its_machine_says_and_reached_by_its_route(
    new_site: NewSite,
) -> None:
    run_histories(World, new_site, share=4)
