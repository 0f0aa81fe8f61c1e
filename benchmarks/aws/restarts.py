"""Restarts on AWS: warm, with the checkpoint that the controller's predecessor has saved, and cold, without it.

A restart is over when every Service has its address again: their status is emptied while no controller runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.aws.cluster import Cluster
from benchmarks.aws.daemons import OURS, PEER, Who
from benchmarks.aws.workloads import compared, with_services
from benchmarks.daemons import Spent, check
from benchmarks.figure import Figure
from cloud_controller.controllers.service.checkpoint import LIMIT

_COLD = "ours, cold"


@dataclass(frozen=True, slots=True)
class _Ours:
    warm: Spent
    cold: Spent
    checkpoint: int
    """Bytes."""


def restart(count: int) -> Sequence[Figure]:
    """A controller that finds this many Services as it left them; the peer saves nothing, so it starts cold."""
    with with_services(count) as made:
        _create(made, PEER, count)
        peer = _started(made, PEER, count)
    ours = _ours(count)
    warm = compared("aws-restart", (OURS, ours.warm), (PEER, peer), goal=15)
    return [*warm, *compared("aws-restart.cold", (_COLD, ours.cold), (PEER, peer))]


def checkpoint(count: int, *, limited: bool = False) -> Sequence[Figure]:
    """Our restart with this many Services; its bounds are a cold one's. `limited`: under AWS's limits on calls."""
    ours = _ours(count, limited)
    name = f"aws-restart-{count}" + ("-limited" if limited else "")
    return [
        *compared(name, (OURS, ours.warm), (_COLD, ours.cold)),
        Figure(f"{name}.checkpoint", ours.checkpoint, "bytes", LIMIT),
    ]


def _ours(count: int, limited: bool = False) -> _Ours:
    with with_services(count) as made:
        _create(made, OURS, count)
        size = made.checkpoint()
        warm = _started(made, OURS, count, limited)
        made.drop_checkpoint()
        return _Ours(warm, _started(made, OURS, count, limited), size)


def _create(made: Cluster, who: Who, count: int) -> None:
    with made.daemon(who, ["service"]) as daemon:
        daemon.since_start(lambda: made.served(count))


def _started(made: Cluster, who: Who, count: int, limited: bool = False) -> Spent:
    made.clear_addresses()
    if limited:
        made.simulator.limit()
    with made.daemon(who, ["service"]) as daemon:
        spent = daemon.since_start(lambda: made.served(count))
    check(bool(spent.counted.calls.get("elbv2 DescribeLoadBalancers")), "it never read the load balancers")
    check(who == PEER or not spent.writes, f"a restart wrote: {spent.writes}")
    return spent
