"""What Pulumi plans, applies and waits for in a cluster, with a cluster and a cloud in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from cloud_controller import rbac
from cloud_controller.cloud import (
    AccessDenied,
    Cloud,
    CloudError,
    ForeignCluster,
    Instance,
    InstanceRef,
    InstanceState,
    InvalidConfiguration,
    NodeAddress,
    Route,
    RouteFailure,
    Unavailable,
)
from cloud_controller.kube import LEASES, NAMESPACES, NODES, Object
from cloud_controller.safeguard import confirm
from components.cluster_plan import (
    Machine,
    NotConverged,
    Pool,
    Target,
    World,
    converge,
    gone,
    is_pending,
    observe_and_plan,
    predict,
    tear_down,
)
from tests.fake_kubernetes import FakeKubernetes, Request

CIDR = "10.20.0.0/16"
UNINITIALIZED = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
BY_PULUMI = {"node": "pulumi", "route": "pulumi"}
BY_DAEMON = {"node": "daemon", "route": "daemon"}


def provider_id(name: str) -> str:
    return f"mycloud://local/zone-a/i-{name}"


def instance(name: str) -> Instance:
    return Instance(
        id=f"i-{name}",
        provider_id=provider_id(name),
        name=name,
        type="m1.small",
        zone="zone-a",
        region="local",
        state=InstanceState.RUNNING,
        addresses=(NodeAddress("InternalIP", "10.17.0.10"), NodeAddress("Hostname", name)),
    )


def registered(name: str, pod_cidr: str | None = "10.20.1.0/24") -> dict[str, Any]:
    """A node as a kubelet registers it, with its pod range where that is allocated already."""
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"taints": [UNINITIALIZED], **({"podCIDR": pod_cidr, "podCIDRs": [pod_cidr]} if pod_cidr else {})},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


@dataclass
class FakeRoutes:
    table: list[Route] = field(default_factory=list)
    failures: int = 0
    error: CloudError = field(default_factory=lambda: Unavailable("busy"))

    def list(self) -> Sequence[Route]:
        return list(self.table)

    def create(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        if self.failures:
            self.failures -= 1
            return [RouteFailure(route, self.error) for route in routes]
        self.table += routes
        return []

    def delete(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        if self.failures:
            self.failures -= 1
            return [RouteFailure(route, self.error) for route in routes]
        gone = {route.destination_cidr for route in routes}
        self.table = [route for route in self.table if route.destination_cidr not in gone]
        return []


@dataclass
class FakeCloud:
    machines: dict[str, Instance] = field(default_factory=dict)
    routes: FakeRoutes = field(default_factory=FakeRoutes)

    cluster_id = "c-1"

    @property
    def instances(self) -> FakeCloud:
        return self

    def list(self) -> Sequence[Instance]:
        return [*self.machines.values()]

    def describe(self, refs: Sequence[InstanceRef]) -> dict[InstanceRef, Instance | None]:
        by_id = {machine.provider_id: machine for machine in self.machines.values()}
        return {
            ref: by_id.get(ref.provider_id) if ref.provider_id else self.machines.get(ref.node_name) for ref in refs
        }


def cluster(
    *names: str, nodes: Sequence[Object] = (), arrivals: Sequence[Object] = (), routes: FakeRoutes | None = None
) -> World:
    """A cluster whose machines of these names exist in the cloud.

    `arrivals` register one by one, each time that nodes were listed.
    """
    cloud: Any = FakeCloud({name: instance(name) for name in names}, routes or FakeRoutes())
    api = FakeKubernetes()
    api.put(NODES, *nodes)
    api.put(NAMESPACES, {"metadata": {"name": "kube-system", "uid": "uid-here"}})
    arriving = iter(arrivals)

    def arrive(request: Request) -> None:
        if request.verb == "list" and (node := next(arriving, None)):
            api.put(NODES, node)

    api.after.append(arrive)
    return World(api, cloud)


def target(*names: str, executors: dict[str, str] | None = None, removed: Sequence[str] = ()) -> Target:
    machines = tuple(Machine(name, provider_id(name)) for name in names)
    return Target(CIDR, machines, BY_PULUMI if executors is None else executors, frozenset(removed))


def lines(world: World, wanted: Target) -> list[str]:
    return [f"{step.action.kind} {step.action.target}" for step in observe_and_plan(world, wanted)]


def api_of(world: World) -> FakeKubernetes:
    assert isinstance(world.kube, FakeKubernetes)
    return world.kube


def nodes_of(world: World) -> dict[str, Object]:
    return api_of(world).objects(NODES)


def routes_of(world: World) -> dict[str, str]:
    cloud: Any = world.cloud
    return {route.destination_cidr: route.target_instance for route in cloud.routes.table}


def test_a_cluster_that_does_not_exist_yet_is_planned_from_the_declared_machines() -> None:
    steps = predict(target("a", "b"))

    assert [step.action.target for step in steps] == ["node/a", "node/b", "route/pods-of-a", "route/pods-of-b"]
    assert all(step.action.assumed and step.pending for step in steps)


def test_converging_initialises_nodes_writes_routes_and_leaves_nothing_to_do() -> None:
    world = cluster("a", nodes=[registered("a")])

    applied = converge(world, target("a"), deadline=60)

    node = nodes_of(world)["a"]
    assert node["spec"]["providerID"] == provider_id("a")
    assert UNINITIALIZED not in node["spec"].get("taints", [])
    assert routes_of(world) == {"10.20.1.0/24": "i-a"}
    assert any("route/10.20.1.0/24" in line for line in applied)
    assert not [step for step in observe_and_plan(world, target("a")) if step.pending]


def test_converging_waits_for_machines_that_still_boot() -> None:
    world = cluster("a", "b", nodes=[registered("a")], arrivals=[registered("b", "10.20.2.0/24")])

    converge(world, target("a", "b"), deadline=60)

    assert routes_of(world) == {"10.20.1.0/24": "i-a", "10.20.2.0/24": "i-b"}


def test_a_long_wait_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.cluster_plan._SILENT_SECONDS", 0.0)
    reported: list[str] = []
    # One more each time that it looks; the one that it waits for is the last.
    names = ("nobodys", "another", "a")
    arrivals = [registered(name, f"10.20.{number}.0/24") for number, name in enumerate(names)]

    converge(cluster("a", arrivals=arrivals), target("a"), deadline=60, report=reported.append)

    (line,) = reported
    assert line.startswith("waiting for node/a: initialise after registration; route/")


def test_a_node_without_a_pod_range_is_not_done() -> None:
    world = cluster("a", nodes=[registered("a", None)])

    assert "create route/pods-of-a" in lines(world, target("a"))
    with pytest.raises(NotConverged, match="route/pods-of-a"):
        converge(world, target("a"), deadline=0)


def test_at_the_deadline_the_error_names_what_is_missing_and_its_executor() -> None:
    world = cluster("a")

    with pytest.raises(NotConverged, match=r"within 0 s; .*node/a: initialise after registration \(by the daemon\)"):
        converge(world, target("a", executors=BY_DAEMON), deadline=0)


def test_a_transient_error_of_the_cloud_is_retried() -> None:
    world = cluster("a", nodes=[registered("a")], routes=FakeRoutes(failures=2))

    converge(world, target("a"), deadline=60)

    assert routes_of(world) == {"10.20.1.0/24": "i-a"}


def test_an_error_that_somebody_has_to_fix_ends_the_wait_at_once() -> None:
    world = cluster(
        "a", nodes=[registered("a")], routes=FakeRoutes(failures=2, error=AccessDenied("no right to do so"))
    )

    with pytest.raises(NotConverged, match=r"route/10\.20\.1\.0/24: no right"):
        converge(world, target("a"), deadline=3600)


def test_actions_of_the_daemon_are_planned_and_awaited_but_never_applied() -> None:
    world = cluster("a", nodes=[registered("a")])

    steps = observe_and_plan(world, target("a", executors=BY_DAEMON))
    with pytest.raises(NotConverged):
        converge(world, target("a", executors=BY_DAEMON), deadline=0)

    assert {step.executor for step in steps} == {"daemon"}
    assert [step.action.target for step in steps if step.pending] == ["node/a"]
    assert all(entry["summary"].endswith(", by the daemon") for entry in (step.to_json() for step in steps))
    assert api_of(world).writes == []
    assert routes_of(world) == {}


def test_a_machine_that_the_program_drops_loses_its_route_first_and_its_node_by_the_daemon() -> None:
    world = cluster("a", "b", nodes=[registered("a"), registered("b", "10.20.2.0/24")])
    converge(world, target("a", "b"), deadline=60)

    smaller = target("a", removed=["b"])
    planned = lines(world, smaller)
    converge(world, smaller, deadline=60)

    assert planned == ["delete route/10.20.2.0/24", "delete node/b"]
    assert routes_of(world) == {"10.20.1.0/24": "i-a"}
    assert "b" in nodes_of(world)


def test_machines_that_were_never_declared_are_left_alone() -> None:
    world = cluster("a", "autoscaled", nodes=[registered("a"), registered("autoscaled", "10.20.9.0/24")])
    converge(world, target("a", "autoscaled"), deadline=60)

    assert lines(world, target("a")) == []


def test_a_node_whose_machine_is_gone_causes_no_further_update() -> None:
    world = cluster("a", "b", nodes=[registered("a"), registered("b", "10.20.2.0/24")])
    converge(world, target("a", "b"), deadline=60)
    converge(world, target("a", removed=["b"]), deadline=60)
    cloud: Any = world.cloud
    del cloud.machines["b"]

    assert not is_pending(step.to_json() for step in observe_and_plan(world, target("a")))


def test_a_node_of_another_machine_of_the_same_name_must_be_deleted() -> None:
    world = cluster("a", nodes=[registered("a")])
    nodes_of(world)["a"]["spec"]["providerID"] = provider_id("former")

    with pytest.raises(NotConverged, match=f"node/a: must be deleted.*{provider_id('former')}"):
        converge(world, target("a"), deadline=0)


def test_declared_machines_that_the_cloud_no_longer_has_are_found() -> None:
    world = cluster("a")

    assert [machine.name for machine in gone(world, target("a", "b").made)] == ["b"]
    assert gone(world, Target(CIDR, (Machine("not-made-yet", None),), {}).made) == []


def test_machines_of_an_existing_cluster_are_looked_for_by_name() -> None:
    named = Target(CIDR, (Machine("a", None), Machine("b", None)), {}, existing=True)

    assert [machine.name for machine in gone(cluster("a"), named.made)] == ["b"]


def test_an_update_waits_for_the_named_machines_of_an_existing_cluster_only() -> None:
    world = cluster("a", "b", nodes=[registered("a"), registered("b")])

    converge(world, Target(CIDR, (Machine("a", None),), BY_PULUMI, existing=True), deadline=5)

    assert UNINITIALIZED not in nodes_of(world)["a"]["spec"].get("taints", [])
    missing = Target(CIDR, (Machine("a", None), Machine("c", None)), BY_PULUMI, existing=True)
    with pytest.raises(NotConverged, match="node/c: initialise after registration"):
        converge(world, missing, deadline=0)


def test_an_existing_clusters_kubeconfig_that_leads_to_other_machines_is_refused() -> None:
    theirs = registered("theirs")
    theirs["spec"]["providerID"] = provider_id("theirs")
    world = cluster("a", nodes=[theirs])

    existing = Target(CIDR, (), BY_PULUMI, existing=True)
    with pytest.raises(
        ForeignCluster, match=r"the stack's kubeconfig leads .* cluster c-1: correct .*kubectl delete node"
    ):
        observe_and_plan(world, existing)

    world.kube.delete(NODES, "theirs")
    observe_and_plan(world, existing)


def test_teardown_removes_owned_routes_of_the_cluster_and_nothing_else() -> None:
    foreign = Route("10.20.7.0/24", "i-x", owned=False)
    outside = Route("192.168.0.0/24", "i-a")
    routes = FakeRoutes([Route("10.20.1.0/24", "i-a"), foreign, outside])
    cloud: Any = FakeCloud(routes=routes)
    typed: Cloud = cloud

    assert tear_down(typed, target(executors=BY_DAEMON)) == 0
    assert tear_down(typed, target()) == 1
    assert routes.table == [foreign, outside]


def test_teardown_names_the_routes_that_the_cloud_does_not_delete() -> None:
    cloud: Any = FakeCloud(routes=FakeRoutes([Route("10.20.1.0/24", "i-a"), Route("10.20.2.0/24", "i-b")], failures=1))

    with pytest.raises(NotConverged, match=r"could not delete route/10\.20\.1\.0/24: busy \(and 1 more\)"):
        tear_down(cloud, target())


def test_teardown_leaves_the_routes_of_an_existing_cluster() -> None:
    routes = FakeRoutes([Route("10.20.1.0/24", "i-a")])
    cloud: Any = FakeCloud(routes=routes)

    assert tear_down(cloud, Target(CIDR, (), BY_PULUMI, existing=True)) == 0
    assert len(routes.table) == 1


def test_a_plans_json_holds_no_nulls() -> None:
    """The dynamic provider's server loses them, so a refresh would show differences."""
    world = cluster("a", nodes=[registered("a")])

    def nulls(value: Any) -> bool:
        if isinstance(value, dict):
            return any(map(nulls, value.values()))
        return any(map(nulls, value)) if isinstance(value, list) else value is None

    assert not nulls([step.to_json() for step in observe_and_plan(world, target("a"))])


# ----------------------------------------------------------------- pools, whose machines the cloud names


def member(name: str, pod_cidr: str | None = "10.20.1.0/24", pool: str = "workers") -> dict[str, Any]:
    """A node of a pool, as its kubelet registers it."""
    node = registered(name, pod_cidr)
    node["metadata"]["labels"] = {"cloud-controller/pool": pool}
    return node


def of_pool(count: int, executors: dict[str, str] | None = None) -> Target:
    return Target(CIDR, (), BY_PULUMI if executors is None else executors, pools=(Pool("workers", count),))


def test_a_pool_of_a_cluster_that_does_not_exist_yet_is_planned_by_its_number() -> None:
    [step] = predict(of_pool(3, BY_DAEMON))

    assert step.action.target == "pool/workers"
    assert "initialise 3" in step.action.summary
    assert step.action.assumed and step.awaited


def test_converging_waits_until_a_pool_has_its_declared_number_of_machines() -> None:
    world = cluster("x", "y", nodes=[member("x")], arrivals=[member("y", "10.20.2.0/24")])

    converge(world, of_pool(2), deadline=60)

    assert routes_of(world) == {"10.20.1.0/24": "i-x", "10.20.2.0/24": "i-y"}
    assert not [step for step in observe_and_plan(world, of_pool(2)) if step.pending]


def test_nodes_of_other_pools_or_without_one_do_not_count() -> None:
    world = cluster("x", "y", nodes=[member("x", pool="system"), registered("y", "10.20.2.0/24")])

    with pytest.raises(NotConverged, match="pool/workers: initialise 1 after registration"):
        converge(world, of_pool(1), deadline=0.2)


def test_a_pool_with_more_machines_than_declared_is_complete() -> None:
    world = cluster("x", "y", nodes=[member("x"), member("y", "10.20.2.0/24")])

    converge(world, of_pool(1), deadline=60)

    assert len(routes_of(world)) == 2


def test_converging_waits_for_the_daemon_to_initialise_a_pools_nodes() -> None:
    world = cluster("x", nodes=[member("x")])

    steps = observe_and_plan(world, of_pool(1, BY_DAEMON))

    assert [step.action.target for step in steps if step.awaited] == ["node/x"]
    assert api_of(world).writes == []


def test_actions_of_the_vendor_are_neither_planned_nor_awaited() -> None:
    vendor = {"node": "vendor", "route": "vendor", "node-lifecycle": "vendor"}
    world = cluster("x", nodes=[member("x")])

    assert observe_and_plan(world, of_pool(3, vendor)) == []
    assert predict(of_pool(3, vendor)) == []
    assert converge(world, of_pool(3, vendor), deadline=60) == []


def test_what_pulumi_holds_is_confirmed_by_its_digest_and_carried_out_once() -> None:
    """A route to a machine that exists, whose Node nobody was seen to delete."""
    left = Route("10.20.2.0/24", "i-b")
    world = cluster("a", "b", nodes=[registered("a")], routes=FakeRoutes([left]))
    lease = (rbac.LEASE_NAMESPACE, rbac.LEASE_NAME)
    [digest] = {step.action.held for step in observe_and_plan(world, target("a")) if step.action.held}

    with pytest.raises(InvalidConfiguration, match="nothing is held"):
        confirm(world.kube, *lease, [digest])
    converge(world, target("a"), deadline=60)
    assert left.destination_cidr in routes_of(world)
    confirm(world.kube, *lease, [digest])
    converge(world, target("a"), deadline=60)

    assert routes_of(world) == {"10.20.1.0/24": "i-a"}
    assert not api_of(world).get(LEASES, rbac.LEASE_NAME, rbac.LEASE_NAMESPACE)["metadata"].get("annotations")
