"""The same stack with every controller run by the daemon, as production stacks do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cloud_controller.kube import NODES
from tests.e2e.local_stack import LocalStack, answers, eventually, udp_echo

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def stack(empty_stack: LocalStack) -> Iterator[LocalStack]:
    """The stack, brought up once for the module."""
    daemon = dict.fromkeys(("node", "node-lifecycle", "service", "route", "volume"), "daemon")
    empty_stack.configure("executors", daemon)
    empty_stack.scale_workers(2)
    empty_stack.run("up")
    yield empty_stack


def routes(stack: LocalStack) -> dict[str, str]:
    (network,) = stack.cloud.list("networks")
    found = stack.cloud.list(f"route_tables/{network['route_table_id']}/routes")
    return {r["destination_cidr"]: r["next_hop_machine_id"] for r in found}


def test_every_node_is_initialised_and_has_a_route(stack: LocalStack) -> None:
    machines = {m["name"]: m["id"] for m in stack.cloud.list("machines")}

    nodes = stack.kube.list(NODES).items

    assert {n["metadata"]["name"] for n in nodes} == set(machines)
    taints = [t["key"] for n in nodes for t in n["spec"].get("taints", [])]
    assert "node.cloudprovider.kubernetes.io/uninitialized" not in taints
    wanted = {n["spec"]["podCIDR"]: machines[n["metadata"]["name"]] for n in nodes}
    eventually(lambda: routes(stack) == wanted, "every node's pods have a route")


def test_both_load_balancers_answer(stack: LocalStack) -> None:
    url = stack.outputs["webUrl"]
    eventually(lambda: answers(url), "the web workload answers")
    assert b"ping" in udp_echo(stack.outputs["echoAddress"], 8053, b"ping")


def test_the_daemon_restores_a_route_deleted_by_hand(stack: LocalStack) -> None:
    before = routes(stack)
    (network,) = stack.cloud.list("networks")

    stack.cloud.post(
        f"route_tables/{network['route_table_id']}/routes:batch_delete",
        {"destination_cidrs": [sorted(before)[0]]},
    )

    eventually(lambda: routes(stack) == before, "the daemon writes the route again")


def test_a_second_up_changes_nothing(stack: LocalStack) -> None:
    assert stack.changes("up") == {}


def test_an_up_after_a_kill_of_the_cloud_api_makes_nothing_twice(stack: LocalStack) -> None:
    before = {c: sorted(o["id"] for o in stack.cloud.list(c)) for c in ("machines", "load_balancers", "clusters")}

    stack.kill("mycloud's API")
    stack.run("up")

    after = {c: sorted(o["id"] for o in stack.cloud.list(c)) for c in before}
    assert after == before


def test_down_stops_every_process_of_the_site(stack: LocalStack) -> None:
    processes = stack.processes()
    assert stack.running(processes)

    stack.run("down")

    assert stack.running(processes) == []
