"""What Alibaba's own controller in Go was recorded to call (kubernetes/cloud-provider-alibaba-cloud, eeb0ddc68).

DATA, NOT MEASURED HERE: from the project's recordings of 95 Services, nodes and restarts (the pages of
docs/compatibility/alicloud.md compare the rest). It ran against a stand-in of its recorder in which everything takes
effect at once, with three to five nodes and Services of one TCP port, as ours do here.
"""

from __future__ import annotations

from math import ceil

from benchmarks.alicloud.cluster import Kinds

RESTARTED = Kinds(clb=10, nlb=5)
"""The Services of the scenario restart/all-controllers, with `RESTARTED_NODES` nodes and all controllers."""
RESTARTED_NODES = 5

RESTART = 87
NODE_JOINS = 146
"""restart/all-controllers: a node with the cloud's taint joins; nodes and routes included."""

_CLB_MADE, _NLB_MADE = 8, 10
"""clb/default-internet and nlb/default: create."""
_CLB_DELETED, _NLB_DELETED = 7, 11
_READ = 4
"""A Service of which nothing has changed."""
_MOST_WORKERS = 3
"""restart/all-controllers: so many Services of each kind are read twice."""
CLB_CHANGED = NLB_CHANGED = 6
"""clb/scheduler and nlb/scheduler-drain: the scheduler changes."""


def made(kinds: Kinds) -> int:
    """As recorded for one Service, times the Services."""
    return _CLB_MADE * kinds.clb + _NLB_MADE * kinds.nlb


def deleted(kinds: Kinds) -> int:
    """As recorded for one Service, times the Services."""
    return _CLB_DELETED * kinds.clb + _NLB_DELETED * kinds.nlb


def restart(kinds: Kinds) -> int:
    """Of the Services alone, by the rule that the recording shows: 4 a Service, three of each kind twice."""
    return _READ * (kinds.both + min(_MOST_WORKERS, kinds.clb) + min(_MOST_WORKERS, kinds.nlb))


def node_joins(kinds: Kinds) -> int:
    """By the rule that the recording shows: every Service is read twice, and written once; NLB's job is looked at.
    Without routes: DescribeInstances, DescribeNetworkInterfaces, ModifyNetworkInterfaceAttribute."""
    return 3 + (2 * _READ + 1) * kinds.clb + (2 * _READ + 2) * kinds.nlb


def initialised(nodes: int) -> int:
    """By nodes/many-nodes-two-tables (120 nodes: 2 DescribeInstances, 2 DescribeNetworkInterfaces, 120
    ModifyNetworkInterfaceAttribute): it turns the source/destination check off, routes or not."""
    return 2 * ceil(nodes / 100) + nodes


def routed(nodes: int) -> int:
    """By nodes/init-and-routes (five-nodes): an empty table costs one DescribeRouteEntryList more per node."""
    return initialised(nodes) + 1 + (nodes + 1) + ceil(nodes / 50)
