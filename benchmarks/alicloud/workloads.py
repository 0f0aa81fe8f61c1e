"""The workloads on Alibaba Cloud. Restarts are in `restarts.py`.

The bound of `.calls` is the project's promise, a tenth and 10 calls more than the fewest that the API allows
(`fewest.py`); that of `.peer`, in calls too, what Alibaba's own controller was recorded to make (`recorded.py`). All of
our calls count, failed ones too; they go to stderr by operation.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.alicloud import fewest, recorded
from benchmarks.alicloud.cluster import Cluster, Kinds, cluster, services
from benchmarks.daemons import Daemon, Spent, check
from benchmarks.figure import Figure
from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.kube import SERVICES, PatchType
from local.alicloud.clb_balancers import CLB, LISTENER
from local.alicloud.machines import ROUTE
from local.alicloud.nlb_jobs import BALANCER as NLB
from local.alicloud.nlb_jobs import GROUP

NODES = fewest.BACKENDS_A_CALL
"""As few as in the recordings, for the number of calls."""
_IDLE_PERIOD = 5
_IDLE_PERIODS = 6


def nodes(count: int) -> Sequence[Figure]:
    """This many nodes, all present when the controller starts, until the last taint is removed."""
    with cluster() as made:
        made.add_nodes(count, initialised=False)
        with made.daemon(["node"]) as daemon:
            spent = daemon.since_start(made.all_initialised)
    return figures(f"alicloud-nodes-{count}", spent, fewest.initialised(count), recorded.initialised(count))


def routes(count: int) -> Sequence[Figure]:
    """This many nodes and their pod routes, until the last taint is removed and the last route is there."""
    with cluster() as made:
        made.add_nodes(count, initialised=False, with_pods=True)
        with made.daemon(["node", "route"]) as daemon:
            spent = daemon.since_start(lambda: made.all_initialised() and len(made.account.objects(ROUTE)) == count)
    return figures(f"alicloud-routes-{count}", spent, fewest.routed(count), recorded.routed(count))


def creation(clb: int, nlb: int) -> Sequence[Figure]:
    """These Services, all present when the controller starts, until the last has its address."""
    kinds = Kinds(clb, nlb)
    with with_services(kinds) as made:
        spent = _make(made, kinds)
        check(made.members() == {NODES}, f"server groups have {made.members()} backends")
    name = "-".join([f"clb-{clb}"] * bool(clb) + [f"nlb-{nlb}"] * bool(nlb))
    return figures(f"alicloud-{name}", spent, fewest.made(kinds), recorded.made(kinds))


def node_added(clb: int, nlb: int) -> Sequence[Figure]:
    """A node with the taint joins, until it is initialised and a backend of each of these Services."""
    kinds = Kinds(clb, nlb)
    with with_services(kinds) as made, made.daemon(["node", "service"]) as daemon:
        daemon.since_start(lambda: made.served(kinds.both))
        spent = daemon.spent(
            lambda: made.members() == {NODES + 1} and made.all_initialised(),
            lambda: made.add_nodes(1, initialised=False),
        )
    return figures(f"alicloud-node-added-{clb}", spent, fewest.node_added(kinds), recorded.node_joins(kinds))


def annotation() -> Sequence[Figure]:
    """The scheduler of one of ten Services of each kind changes, until the load balancer has it."""
    kinds = Kinds(10, 10)
    with with_services(kinds) as made, made.daemon(["service"]) as daemon:
        daemon.since_start(lambda: made.served(kinds.both))
        clb = _scheduler_changed(made, daemon, "clb-00000", LISTENER)
        nlb = _scheduler_changed(made, daemon, "nlb-00000", GROUP)
    # NLB's change is a job.
    return [
        *figures("alicloud-annotation.clb", clb, 1, recorded.CLB_CHANGED),
        *figures("alicloud-annotation.nlb", nlb, 2, recorded.NLB_CHANGED),
    ]


def idle() -> Sequence[Figure]:
    """Several periods of all loops without a change, every period shortened; ten Services of each kind are served.

    The peer's idling was not recorded.
    """
    kinds = Kinds(10, 10)
    flags = [f"--node-status-update-frequency={_IDLE_PERIOD}s", f"--service-resync-period={_IDLE_PERIOD}s"]
    with with_services(kinds) as made, made.daemon(["node", "service"], *flags) as daemon:
        daemon.until(lambda: made.served(kinds.both))
        spent = daemon.over(_IDLE_PERIOD * _IDLE_PERIODS)
        check(not spent.writes, f"it wrote although nothing had changed: {spent.writes}")
    # A window of some periods may start just before one.
    periods = _IDLE_PERIODS + 1
    return figures("alicloud-idle", spent, periods * (fewest.initialised(NODES) + fewest.lists(kinds)))


def delete() -> Sequence[Figure]:
    """Ten Services of each kind deleted, until they are gone and the account has nothing of theirs."""
    kinds = Kinds(10, 10)
    with with_services(kinds) as made, made.daemon(["service"]) as daemon:
        daemon.since_start(lambda: made.served(kinds.both))
        spent = daemon.spent(lambda: made.served(0), made.delete_services)
        left = [each["id"] for kind in (CLB, NLB, GROUP) for each in made.account.objects(kind)]
        check(not left, f"left: {left}")
    return figures("alicloud-delete", spent, fewest.deleted(kinds), recorded.deleted(kinds))


def figures(name: str, spent: Spent, calls: int, peer: int | None = None) -> list[Figure]:
    """The figures of a run; `calls`: the fewest. Seconds, processor time and memory have no bound."""
    cost = {"name": name, "calls": spent.counted.calls, "failed": spent.counted.failed}
    print(json.dumps(cost), file=sys.stderr, flush=True)
    return [
        Figure(f"{name}.calls", spent.calls, "calls", fewest.limit(calls), floor=calls),
        *([] if peer is None else [Figure(f"{name}.peer", spent.calls, "calls", peer)]),
        Figure(f"{name}.seconds", spent.seconds, "s"),
        Figure(f"{name}.cpu", spent.cpu_seconds, "s"),
        Figure(f"{name}.memory", spent.memory, "MiB"),
    ]


@contextmanager
def with_services(kinds: Kinds, nodes: int = NODES, *, with_pods: bool = False) -> Iterator[Cluster]:
    """A cluster with initialised nodes and Services that no controller has processed yet."""
    with cluster() as made:
        made.add_nodes(nodes, initialised=True, with_pods=with_pods)
        made.add_services(services(made.account, kinds))
        yield made


def _scheduler_changed(made: Cluster, daemon: Daemon, service: str, held_by: str) -> Spent:
    change = {"metadata": {"annotations": {f"{PREFIX}scheduler": "rr"}}}
    return daemon.spent(
        lambda: any(each["Scheduler"].lower() == "rr" for each in made.account.objects(held_by)),
        lambda: made.kube.patch(SERVICES, service, change, "default", type=PatchType.MERGE),
    )


def _make(made: Cluster, kinds: Kinds) -> Spent:
    with made.daemon(["service"]) as daemon:
        return daemon.since_start(lambda: made.served(kinds.both))
