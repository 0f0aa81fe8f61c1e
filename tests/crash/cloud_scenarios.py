"""What is done on every cloud with two kinds of load balancers: changes to nodes and routes, and a day's work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloud_controller.kube import NODES, SERVICES
from tests.crash.cloud_run import CloudRun
from tests.crash.scenarios import DNS, HTTP, HTTPS, SPACE, port
from tests.crash.trial import Scenario

Run = CloudRun[Any]


def a_node(run: Run) -> None:
    """One, with a route."""
    run.node()


def both(run: Run) -> None:
    """A node and a Service of each kind."""
    run.node()
    run.service(HTTP)
    run.service(HTTPS, kind="classic")


def both_serve(run: Run) -> bool:
    """Whether all nodes are done, and the two send to all of them."""
    return (
        run.ready()
        and run.serves("8080 TCP")
        and run.serves("8443 TCP", kind="classic", of=1)
        and run.targets_are({*range(len(run.machines))})
    )


def two_nodes(run: Run) -> None:
    """`both`, on two nodes."""
    both(run)
    run.node()


def node_is_out(run: Run) -> bool:
    """Whether nothing knows the second node any more."""
    machine = run.machines[-1]
    return run.get_node(machine) is None and not run.routes_to(machine) and run.targets_are({0})


NODE_SCENARIOS: Sequence[Scenario[Run]] = (
    Scenario("node added", both, both_serve, a_node, both_serve),
    Scenario(
        "node removed", two_nodes, both_serve, lambda run: run.environment.terminate(run.machines[-1]), node_is_out
    ),
    Scenario(
        "route created",
        lambda run: run.node(pod_cidr=False),
        lambda run: run.ready(),
        lambda run: run.environment.give_pod_cidr(run.machines[0].name),
        lambda run: run.ready() and run.routes_to(run.machines[0]) == 1,
    ),
    Scenario(
        "route deleted",
        a_node,
        lambda run: run.ready() and run.routes_to(run.machines[0]) == 1,
        lambda run: run.kube.delete(NODES, run.machines[0].name),
        lambda run: not run.routes_to(run.machines[0]),
    ),
)


def _changes(run: Run) -> None:
    """Something for every controller: a changed Service, one that goes, two that come, a node that comes."""
    run.change(ports=[port(9443, 31944), DNS])
    run.kube.delete(SERVICES, run.services[1], SPACE)
    run.service(port(9090, 31090))
    run.service(port(9191, 31191), kind="classic")
    run.node()


def _changes_are_made(run: Run) -> bool:
    return (
        run.serves("9443 TCP", "5353 UDP")
        and run.get_service(1) is None
        and run.serves("9090 TCP", of=2)
        and run.serves("9191 TCP", kind="classic", of=3)
        and run.initialised(run.machines[1])
        and run.targets_are({0, 1})
        and not run.environment.left()["target_groups_alone"]
    )


WORK = Scenario("a day's work", both, both_serve, _changes, _changes_are_made)
