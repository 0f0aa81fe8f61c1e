"""The fewest calls with which Alibaba Cloud's APIs allow each workload; docs/benchmarks.md derives them in words. Pure.

Every Service has one TCP port, and at most as many backends as one call of CLB takes. What one call can do for several
Services counts once: nobody could need fewer.
"""

from __future__ import annotations

from math import ceil

from benchmarks.alicloud.cluster import Kinds

INSTANCES_A_CALL = 100
ROUTES_A_CALL = 50
BALANCERS_A_PAGE = 100
CLB_LISTENERS_OF = 10
"""Load balancers whose listeners one call of CLB lists."""
NLB_LISTENERS_OF = 20
"""The same of NLB."""
BACKENDS_A_CALL = 20
JOBS_A_LOOK = 20


def limit(fewest: int) -> float:
    """What the project promises."""
    return 1.1 * fewest + 10


def initialised(nodes: int) -> int:
    """Pages of machines."""
    return ceil(nodes / INSTANCES_A_CALL)


def routed(nodes: int) -> int:
    """The machines, the table and its routes, the check of each interface, which no call changes for several."""
    interfaces = ceil(nodes / INSTANCES_A_CALL) + nodes
    return initialised(nodes) + route_reads(0) + interfaces + ceil(nodes / ROUTES_A_CALL)


def route_reads(routes: int) -> int:
    """The table's name, and pages of routes."""
    return 1 + ceil(max(1, routes) / 100)


def made(kinds: Kinds) -> int:
    """A list by tag that finds nothing; a load balancer, its group, its listener and (CLB) the listener's start, or
    (NLB) the backends, their jobs, and a list that tells the names and that they are there."""
    clb = 1 + 4 * kinds.clb if kinds.clb else 0
    nlb = 1 + 4 * kinds.nlb + 3 * _looks(kinds.nlb) + ceil(kinds.nlb / BALANCERS_A_PAGE) if kinds.nlb else 0
    return clb + nlb


def node_added(kinds: Kinds) -> int:
    """The machine, one call a group, and looks at NLB's jobs."""
    return 1 + kinds.both + _looks(kinds.nlb)


def lists(kinds: Kinds) -> int:
    """What lists show of all load balancers: themselves, their listeners, NLB's groups."""
    clb = ceil(kinds.clb / BALANCERS_A_PAGE) + ceil(kinds.clb / CLB_LISTENERS_OF)
    return clb + 2 * ceil(kinds.nlb / BALANCERS_A_PAGE) + ceil(kinds.nlb / NLB_LISTENERS_OF)


def all_read(kinds: Kinds) -> int:
    """The lists, and the backends, which both kinds show group by group."""
    return lists(kinds) + kinds.both


def deleted(kinds: Kinds) -> int:
    """Protection off and the load balancer; of NLB the server group too, and the jobs of the last two."""
    return 2 * kinds.clb + 3 * kinds.nlb + 2 * _looks(kinds.nlb)


def _looks(jobs: int) -> int:
    return ceil(jobs / JOBS_A_LOOK)
