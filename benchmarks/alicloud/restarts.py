"""Restarts on Alibaba Cloud: warm, with the checkpoint that the controller's predecessor has saved, and cold, without.

A restart is over when every Service has its address again: their status is emptied while no controller runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.alicloud import fewest, recorded
from benchmarks.alicloud.cluster import Cluster, Kinds
from benchmarks.alicloud.workloads import NODES, figures, with_services
from benchmarks.daemons import Spent, check
from benchmarks.figure import Figure
from cloud_controller.controllers.service.checkpoint import LIMIT
from local.alicloud.machines import ROUTE

ALL = ("node", "node-lifecycle", "route", "service")


def as_recorded() -> Sequence[Figure]:
    """The recorded scenario: all controllers restart, then a node joins."""
    kinds, count = recorded.RESTARTED, recorded.RESTARTED_NODES
    with with_services(kinds, count, with_pods=True) as made:
        with made.daemon(ALL) as daemon:
            daemon.since_start(lambda: made.served(kinds.both) and len(made.account.objects(ROUTE)) == count)
        name, reads = "alicloud-restart", fewest.initialised(count) + fewest.route_reads(count)
        found = figures(f"{name}.warm", _restarted(made, kinds, ALL), reads + fewest.lists(kinds), recorded.RESTART)
        made.drop_checkpoint()
        found += figures(f"{name}.cold", _restarted(made, kinds, ALL), reads + fewest.all_read(kinds), recorded.RESTART)
        with made.daemon(ALL) as daemon:
            daemon.rest()
            spent = daemon.spent(
                lambda: made.members() == {count + 1} and len(made.account.objects(ROUTE)) == count + 1,
                lambda: made.add_nodes(1, initialised=False, with_pods=True),
            )
        # The interface is read, its check turned off, the route made.
        needed = fewest.node_added(kinds) + 3
        return [*found, *figures(f"{name}.node-joins", spent, needed, recorded.NODE_JOINS)]


def restart(clb: int, nlb: int) -> Sequence[Figure]:
    """The controller of Services alone, with this many of each kind."""
    kinds = Kinds(clb, nlb)
    name = f"alicloud-restart-{clb}"
    with with_services(kinds) as made:
        with made.daemon(["service"]) as daemon:
            daemon.since_start(lambda: made.served(kinds.both))
        check(made.members() == {NODES}, f"server groups have {made.members()} backends")
        size, peer = made.checkpoint(), recorded.restart(kinds)
        warm = _restarted(made, kinds, ["service"])
        made.drop_checkpoint()
        cold = _restarted(made, kinds, ["service"])
    return [
        *figures(f"{name}.warm", warm, fewest.lists(kinds), peer),
        *figures(f"{name}.cold", cold, fewest.all_read(kinds), peer),
        Figure(f"{name}.checkpoint", size, "bytes", LIMIT),
    ]


def _restarted(made: Cluster, kinds: Kinds, controllers: Sequence[str]) -> Spent:
    made.clear_addresses()
    with made.daemon(controllers) as daemon:
        spent = daemon.since_start(lambda: made.served(kinds.both))
    check(bool(spent.counted.calls.get("slb.DescribeLoadBalancers")), "it never read the load balancers")
    check(not spent.writes, f"a restart wrote: {spent.writes}")
    return spent
