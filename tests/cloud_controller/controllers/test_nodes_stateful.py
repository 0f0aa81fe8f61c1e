"""Whatever happens to machines, nodes and routes, and in whatever order: after some passes all is as one would say it.

The reference is the sentence, not the code: a machine that runs and has a node: initialised, as its machine is, with
its route and its network; a machine that is gone: no node, no route; another's route: untouched.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cloud_controller.cloud import CloudError, InstanceState, NodeAddress, Route, Unavailable
from cloud_controller.controllers.loop import LoopController
from cloud_controller.controllers.node import NodeController
from cloud_controller.controllers.node_lifecycle import NodeLifecycleController
from cloud_controller.controllers.nodes import PROVIDED_IP, SHUTDOWN_TAINT, UNINITIALIZED_TAINT, condition, has_taint
from cloud_controller.controllers.route import RouteController, RouteOptions
from cloud_controller.kube import LEASES, NODES
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.controllers.nodes_in_memory import CIDR, Cluster
from tests.cloud_controller.guard import lease_that_confirms

NAMES = st.sampled_from("abcd")
FOREIGN = Route("10.1.200.0/24", "i-theirs", owned=None)
"""Inside the pods' range, to a machine that never was this cluster's."""


class Life(RuleBasedStateMachine):
    """One cluster."""

    @initialize(quota=st.sampled_from([None, 100, 3]))
    def begin(self, quota: int | None) -> None:
        self.cloud = FakeCloud(quota=quota, table=[FOREIGN], marks_routes=False)
        self.cluster = Cluster(self.cloud)
        context = self.cluster.context
        self.safeguard = context.safeguard
        self.controllers: list[LoopController] = [
            NodeController(context),
            NodeLifecycleController(context),
            RouteController(context, RouteOptions((CIDR,))),
        ]
        self.made = 0

    # -- what happens to machines and nodes

    @rule(name=NAMES, identified=st.booleans())
    def join(self, name: str, identified: bool) -> None:
        """A machine boots, where there is none of the name, and registers its node, where there is none."""
        machine = self.cloud.machines.get(name)
        self.made += 1
        if machine is None or machine.state is InstanceState.TERMINATED:
            if machine is not None:  # Another of that name, which the cloud lists for a while.
                self.cloud.machines[f"{name}-{self.made}"] = machine
                self.cluster.clock.now += 10.0  # Booting takes longer than answers about its predecessor are kept.
            made, address = f"i-{name}-{self.made}", NodeAddress("InternalIP", f"10.9.0.{self.made}")
            machine = self.cloud.machine(name, id=made, provider_id=f"fake://zone-a/{made}", addresses=(address,))
        if name not in self.cluster.stored and machine.state is InstanceState.RUNNING:
            self.cluster.register(name, f"10.1.{self.made}.0/24", uid=f"uid-{name}-{self.made}")
            own = [{"type": each.type, "address": each.address} for each in machine.addresses]
            self.cluster.api.change(NODES, name, lambda node: node["status"].update(addresses=own))
            if identified:
                identity = {"providerID": machine.provider_id}
                self.cluster.api.change(NODES, name, lambda node: node["spec"].update(identity))

    @precondition(lambda self: self._living())
    @rule(data=st.data(), type=st.sampled_from(["small", "large"]))
    def resize(self, data: st.DataObject, type: str) -> None:
        name = data.draw(st.sampled_from(self._living()))
        self.cloud.machines[name] = replace(self.cloud.machines[name], type=type)

    @precondition(lambda self: self._living())
    @rule(data=st.data())
    def stop_or_start(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self._living()))
        runs = self.cloud.machines[name].state is InstanceState.RUNNING
        state = InstanceState.STOPPED if runs else InstanceState.RUNNING
        self.cloud.machines[name] = replace(self.cloud.machines[name], state=state)
        self._report(name, "Unknown" if runs else "True")

    @precondition(lambda self: self._living())
    @rule(data=st.data())
    def terminate(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self._living()))
        machine = self.cloud.machines[name] = replace(self.cloud.machines[name], state=InstanceState.TERMINATED)
        self.cloud.table = [
            replace(route, blackhole=route.blackhole or route.target_instance == machine.id)
            for route in self.cloud.table
        ]
        self._report(name, "Unknown")

    @precondition(lambda self: self.cluster.stored)
    @rule(data=st.data())
    def delete_node(self, data: st.DataObject) -> None:
        self.cluster.api.remove(NODES, data.draw(st.sampled_from(sorted(self.cluster.stored))))

    @precondition(lambda self: self.cluster.stored)
    @rule(data=st.data())
    def demand_a_wrong_address(self, data: st.DataObject) -> None:
        self._annotate(data.draw(st.sampled_from(sorted(self.cluster.stored))), "192.0.2.99")

    @precondition(lambda self: len(self.cloud.table) > 1)
    @rule(data=st.data())
    def remove_a_route(self, data: st.DataObject) -> None:
        self.cloud.table.remove(data.draw(st.sampled_from([each for each in self.cloud.table if each != FOREIGN])))

    # -- the daemon

    @rule(which=st.integers(0, 2), everything=st.booleans(), works=st.sampled_from([True, True, False]))
    def one_pass(self, which: int, everything: bool, works: bool) -> None:
        """At any moment, also while the cloud is away."""
        controller = self.controllers[which]
        keys = self.cluster.triggered(controller)
        self.cloud.error = None if works else Unavailable("down")
        try:
            for _ in controller.reconcile(None if everything else keys):
                pass
        except CloudError:
            pass
        finally:
            self.cloud.error = None

    @rule(seconds=st.sampled_from([1.0, 10.0, 1000.0]))
    def time_goes_by(self, seconds: float) -> None:
        self.cluster.clock.now += seconds

    # -- the sentence

    @invariant()
    def nobody_elses_route_is_ever_touched(self) -> None:
        assert FOREIGN in self.cloud.table

    @invariant()
    def the_node_of_a_machine_that_is_there_is_never_deleted(self) -> None:
        there = {m.provider_id for m in self.cloud.machines.values() if m.state is not InstanceState.TERMINATED}
        assert not [node for node in self.cluster.api.deleted if node["spec"].get("providerID") in there]

    def teardown(self) -> None:
        """Everything is mended; the daemon is given time."""
        if not hasattr(self, "cluster"):
            return
        for name in [*self.cluster.stored]:
            self._annotate(name, None)
            runs = self.cloud.machines[name].state is InstanceState.RUNNING
            self._report(name, "True" if runs else "Unknown")
        self.cloud.quota = None
        for _ in range(3):
            for controller in self.controllers:
                controller._queue._not_before.clear()
                if isinstance(controller, NodeLifecycleController):
                    controller._missing_since = dict.fromkeys(controller._missing_since, 0.0)
                for _ in controller.reconcile(None):
                    pass
                # Where not one Node is left that shows whose cluster this is, an administrator must say so.
                self.cluster.api.objects(LEASES).clear()
                if self.safeguard.held():
                    self.cluster.api.put(LEASES, lease_that_confirms(self.safeguard))
                self.cluster.clock.now += 1000
        nodes = self.cluster.stored
        for name, node in nodes.items():
            machine = self.cloud.machines[name]
            assert machine.state is not InstanceState.TERMINATED and node["spec"]["providerID"] == machine.provider_id
            assert not has_taint(node, UNINITIALIZED_TAINT)
            assert has_taint(node, SHUTDOWN_TAINT) == (machine.state is InstanceState.STOPPED)
            assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == machine.type
            assert (condition(node, "NetworkUnavailable") or {})["status"] == "False"
        wanted = {(node["spec"]["podCIDR"], self.cloud.machines[name].id) for name, node in nodes.items()}
        table = [(route.destination_cidr, route.target_instance) for route in self.cloud.table]
        assert sorted(table) == sorted([*wanted, (FOREIGN.destination_cidr, FOREIGN.target_instance)])
        for controller in self.controllers:
            assert controller.events.close(60)
        self.cluster.api.requests.clear()
        for controller in self.controllers:
            assert [*controller.reconcile(None)] == []
        assert self.cluster.writes == [], "what is as it should be is not written"

    def _living(self) -> list[str]:
        return [name for name in "abcd" if name in self.cloud.machines and self._state(name) != "terminated"]

    def _state(self, name: str) -> str:
        return self.cloud.machines[name].state

    def _report(self, name: str, ready: str) -> None:
        """What the kubelet of the machine of this name says of its node; one of an earlier machine's is not its own."""
        node, machine = self.cluster.stored.get(name), self.cloud.machines[name]
        if node is not None and node["spec"].get("providerID") in (None, machine.provider_id):
            conditions = [each for each in node["status"]["conditions"] if each["type"] != "Ready"]
            status = {**node["status"], "conditions": [*conditions, {"type": "Ready", "status": ready}]}
            self.cluster.api.put(NODES, {**node, "status": status})

    def _annotate(self, name: str, address: str | None) -> None:
        if node := self.cluster.stored.get(name):
            annotations = {PROVIDED_IP: address} if address else {}
            self.cluster.api.put(NODES, {**node, "metadata": {**node["metadata"], "annotations": annotations}})


TestLife = Life.TestCase
TestLife.settings = settings(stateful_step_count=40)
