"""The workloads on AWS: nodes, Services, one change, idling, and the deletion; restarts are in `restarts.py`.

The bound of each figure is what the peer took in the same run, with the same settings, on a cluster and an account of
its own. Only calls of the peer that AWS would accept count; of ours, all do. The issue's goals are figures of their own
(`.goal`), in calls.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil

from benchmarks.aws.cluster import Cluster, cluster
from benchmarks.aws.daemons import OURS, PEER, Who
from benchmarks.daemons import Spent, check
from benchmarks.figure import Figure
from cloud_controller.kube import SERVICES, Object, PatchType

LATENCY = 0.05
"""Seconds added to each call on top of moto's: AWS is not on this machine."""
NODES = 200
PORTS = (80, 443)
_PREFIX = "service.beta.kubernetes.io/aws-load-balancer-"
_TARGETS_A_CALL = 100
_INSTANCES_A_PAGE = 1000

# The peer opens the node group for each port of each Service, and a group holds 60 rules: it cannot serve more Services
# than this with two ports each, unless it leaves the node group alone. Above this, both do so.
_SERVICES_IN_A_NODE_GROUP = 25
_LEAVE_NODE_GROUP = {"DisableSecurityGroupIngress": "true"}

_IDLE_PERIOD = 5
_IDLE_PERIODS = 6
_HOUR = 3600
_HASTE = 60
_HOURS = 2
_PERIODS_AN_HOUR = 12
"""Both controllers refresh nodes every 5 minutes by default, and ours reads all load balancers as often."""
_SNAPSHOT_READS = 6
"""Load balancers of both kinds, target groups, security groups, tags of both kinds."""


def nodes(count: int) -> Sequence[Figure]:
    """This many nodes, all present when the controller starts, until the last taint is removed."""

    def run(who: Who) -> Spent:
        with cluster(LATENCY) as made:
            made.add_nodes(count, initialised=False)
            with made.daemon(who, ["node"]) as daemon:
                return daemon.since_start(made.all_initialised)

    return figures(f"aws-nodes-{count}", run, goal=ceil(count / _INSTANCES_A_PAGE) + 3)


def services(count: int, *, limited: bool = False) -> Sequence[Figure]:
    """This many Services of two ports, all present when the controller starts, until the last has its address.

    `limited`: under AWS's limits on calls, until the last has its targets, too: a throttled controller may be silent
    for longer than the settling time.
    """

    def run(who: Who) -> Spent:
        with with_services(count) as made:
            if limited:
                made.simulator.limit()
            with made.daemon(who, ["service"]) as daemon:
                spent = daemon.since_start(lambda: made.served(count) and (not limited or _registered(made) == {NODES}))
            check(_registered(made) == {NODES}, "a target group lacks nodes")
            return spent

    # A group and its rules, the load balancer; a port's target group, its targets and its listener.
    needed = count * (3 + len(PORTS) * (2 + ceil(NODES / _TARGETS_A_CALL)))
    name = f"aws-services-{count}" + ("-limited" if limited else "")
    return figures(name, run, goal=None if limited else 1.1 * needed + 10)


def node_added(count: int) -> Sequence[Figure]:
    """One node added to this many Services, until it is a target of each port of each."""

    def run(who: Who) -> Spent:
        with with_services(count) as made, made.daemon(who, ["service"]) as daemon:
            daemon.since_start(lambda: made.served(count))
            groups = _target_groups(made)
            added: list[str] = []
            spent = daemon.spent(
                lambda: bool(added) and _all_have(made, groups, added[0]),
                lambda: added.extend(machine.id for machine in made.add_nodes(1, initialised=True)),
            )
            check(_registered(made) == {NODES + 1}, "a target group lacks the node")
            return spent

    return figures("aws-node-added", run, goal=count * len(PORTS) + 5)


def annotation(count: int) -> Sequence[Figure]:
    """One annotation of one of this many Services, until its load balancer has the attribute."""
    name = "service-00000"
    change = {"metadata": {"annotations": {f"{_PREFIX}cross-zone-load-balancing-enabled": "true"}}}

    def run(who: Who) -> Spent:
        with with_services(count) as made, made.daemon(who, ["service"]) as daemon:
            daemon.since_start(lambda: made.served(count))
            return daemon.spent(
                lambda: _is_cross_zone(made, name),
                lambda: made.kube.patch(SERVICES, name, change, "default", type=PatchType.MERGE),
            )

    return figures("aws-annotation", run, goal=4)


def idle(count: int) -> Sequence[Figure]:
    """Several periods of all loops without a change, every period shortened; nodes are initialised, Services served."""
    flags = [f"--node-status-update-frequency={_IDLE_PERIOD}s"]

    def run(who: Who) -> Spent:
        more = [f"--service-resync-period={_IDLE_PERIOD}s"] if who == OURS else []
        with with_services(count) as made, made.daemon(who, ["node", "service"], *flags, *more) as daemon:
            daemon.until(lambda: made.served(count))
            spent = daemon.over(_IDLE_PERIOD * _IDLE_PERIODS)
            check(who == PEER or not spent.writes, f"it wrote although nothing had changed: {spent.writes}")
            return spent

    # A window of some periods may start just before one.
    periods = _IDLE_PERIODS + 1
    return figures("aws-idle", run, goal=periods * (ceil(NODES / _INSTANCES_A_PAGE) + _SNAPSHOT_READS))


def idle_hour(count: int) -> Sequence[Figure]:
    """An hour of idling in a minute: the periods are shortened, and the clock of our caches is as much faster.

    The mean of some hours after the first, whose entries are all of one age.
    """
    period = _HOUR / _HASTE / _PERIODS_AN_HOUR
    flags = [f"--node-status-update-frequency={period:g}s"]

    def run(who: Who) -> Spent:
        more = [f"--service-resync-period={period:g}s"] if who == OURS else []
        with with_services(count) as made:
            with made.daemon(who, ["node", "service"], *flags, *more, haste=_HASTE) as daemon:
                daemon.until(lambda: made.served(count))
                daemon.over(_HOUR / _HASTE)
                spent = daemon.over(_HOURS * _HOUR / _HASTE)
            check(who == PEER or not spent.writes, f"it wrote although nothing had changed: {spent.writes}")
            read = spent.counted.calls.get("elbv2 DescribeTargetHealth")
            check(who == PEER or bool(read), "it never read the details again")
            return spent

    return figures("aws-idle-hour", run, shares=_HOURS)


def delete(count: int) -> Sequence[Figure]:
    """This many Services deleted, until they are gone and the account has nothing of theirs."""

    def run(who: Who) -> Spent:
        with with_services(count) as made, made.daemon(who, ["service"]) as daemon:
            daemon.since_start(lambda: made.served(count))
            spent = daemon.spent(lambda: made.served(0), made.delete_services)
            check(not _left(made), f"left: {_left(made)}")
            return spent

    return figures("aws-delete", run)


def figures(name: str, run: Callable[[Who], Spent], goal: float | None = None, *, shares: int = 1) -> list[Figure]:
    """The figures of a workload that both controllers run, the peer first; a run is this many shares of it."""
    peer, ours = run(PEER), run(OURS)
    return compared(name, (OURS, ours), (PEER, peer), goal, shares=shares)


def compared(
    name: str, ours: tuple[str, Spent], other: tuple[str, Spent], goal: float | None = None, *, shares: int = 1
) -> list[Figure]:
    """The figures of our run; its bounds are those of another's. The calls by operation go to stderr."""
    for who, spent in (other, ours):
        cost = {"name": name, "who": who, "calls": spent.counted.calls, "failed": spent.counted.failed}
        print(json.dumps(cost), file=sys.stderr, flush=True)
    (_, mine), (_, theirs) = ours, other
    calls, succeeded = mine.calls / shares, max(1, sum(theirs.counted.calls.values())) / shares
    return [
        Figure(f"{name}.calls", calls, "calls", succeeded),
        *([Figure(f"{name}.goal", calls, "calls", goal)] if goal else []),
        Figure(f"{name}.seconds", mine.seconds / shares, "s", theirs.seconds / shares),
        Figure(f"{name}.cpu", mine.cpu_seconds / shares, "s", theirs.cpu_seconds / shares),
        Figure(f"{name}.memory", mine.memory, "MiB", theirs.memory),
    ]


@contextmanager
def with_services(count: int) -> Iterator[Cluster]:
    """A cluster with initialised nodes and this many Services that no controller has processed yet."""
    config: Mapping[str, str] = _LEAVE_NODE_GROUP if count > _SERVICES_IN_A_NODE_GROUP else {}
    with cluster(LATENCY, config) as made:
        made.add_nodes(NODES, initialised=True)
        made.add_services([_service(number) for number in range(count)])
        yield made


def _service(number: int) -> Object:
    return {
        "metadata": {
            "name": f"service-{number:05}",
            "namespace": "default",
            "annotations": {f"{_PREFIX}type": "nlb"},
        },
        "spec": {
            "type": "LoadBalancer",
            "selector": {"app": "none"},
            "ports": [{"name": f"port-{port}", "port": port} for port in PORTS],
        },
    }


def _target_groups(made: Cluster) -> list[str]:
    pages = made.account.elbv2.get_paginator("describe_target_groups").paginate()
    return [group["TargetGroupArn"] for page in pages for group in page["TargetGroups"]]


def _registered(made: Cluster) -> set[int]:
    """The number of targets in each target group."""
    elbv2 = made.account.elbv2
    return {
        len(elbv2.describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"])
        for group in _target_groups(made)
    }


def _all_have(made: Cluster, groups: list[str], instance: str) -> bool:
    """Whether the target groups have the instance; those that do are removed from the list, so they are read once."""
    while groups:
        (target,) = made.account.elbv2.describe_target_health(
            TargetGroupArn=groups[-1],
            # Its port does not matter to moto.
            Targets=[{"Id": instance}],
        )["TargetHealthDescriptions"]
        if target["TargetHealth"].get("Reason") == "Target.NotRegistered":
            return False
        groups.pop()
    return True


def _is_cross_zone(made: Cluster, name: str) -> bool:
    status = made.kube.get(SERVICES, name, "default")["status"]
    host = status["loadBalancer"]["ingress"][0]["hostname"]
    balancers = made.account.elbv2.describe_load_balancers()["LoadBalancers"]
    (arn,) = [balancer["LoadBalancerArn"] for balancer in balancers if balancer["DNSName"] == host]
    attributes = made.account.elbv2.describe_load_balancer_attributes(LoadBalancerArn=arn)["Attributes"]
    return {"Key": "load_balancing.cross_zone.enabled", "Value": "true"} in attributes


def _left(made: Cluster) -> list[str]:
    """Load balancers, target groups and security groups other than the nodes'."""
    account = made.account
    balancers = [each["LoadBalancerName"] for each in account.elbv2.describe_load_balancers()["LoadBalancers"]]
    in_vpc = account.ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [account.vpc]}])
    groups = [group["GroupName"] for group in in_vpc["SecurityGroups"]]
    return [*balancers, *_target_groups(made), *(name for name in groups if name not in ("default", "nodes"))]
