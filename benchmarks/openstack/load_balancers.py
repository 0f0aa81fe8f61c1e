"""The life of ten Services of two ports on twenty nodes: made, found again, changed, deleted; see `workloads`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from benchmarks.daemons import Daemon, Spent, check
from benchmarks.figure import Figure
from benchmarks.openstack.cluster import Cluster, cluster
from benchmarks.openstack.workloads import TOKEN, figures
from cloud_controller.clouds.openstack.octavia.refusals import PREFIX
from cloud_controller.kube import SERVICES, NotFoundError, Object, PatchType

_SERVICES = 10
_PORTS = (80, 443)
_NODES = 20
_POOLS = _SERVICES * len(_PORTS)
_LOOK = 1
"""A list of load balancers: which are there, or which of them Octavia has finished changing."""
_LISTS = 4
"""Of load balancers, listeners, pools and floating IPs."""
_CHANGED = 2 * _LOOK + _POOLS
"""A call for each pool or listener; Octavia takes the second of a load balancer only when it is done with the first."""
_LIMIT = 2000
_IDLE_SECONDS = 30
_RESYNC_SECONDS = 10


def life() -> Sequence[Figure]:
    """The workloads of the recording, in its order."""
    with cluster(routed=True) as made:
        made.add_backends(*range(_NODES))
        with _read_twice(made, lists=1) as daemon:
            wanted = [_service(number) for number in range(_SERVICES)]
            created = daemon.spent(
                lambda: made.served(_SERVICES) and _have(made, _NODES), lambda: made.add_services(wanted)
            )
        restarted = _restarted(made)
        with _read_twice(made) as daemon:
            added = daemon.spent(lambda: _have(made, _NODES + 1), lambda: made.add_backends(_NODES))
            limited = daemon.spent(lambda: _limited(made), lambda: _limit(made))
            removed = daemon.spent(lambda: _have(made, _NODES), lambda: made.remove_backend(_NODES))
        with _read_twice(made, f"--service-resync-period={_RESYNC_SECONDS}s") as daemon:
            idle = daemon.over(_IDLE_SECONDS)
        with _read_twice(made) as daemon:
            deleted = daemon.spent(lambda: made.served(0), made.delete_services)
        left = [each["id"] for each in (*made.parts("loadbalancers"), *made.floating_ips())]
        check(not left, f"left: {left}")
    name = "openstack-load-balancers"
    return [
        # The subnets of members, load balancers and floating IPs, are they done.
        *figures(f"{name}.made", created, 1 + 2 * _SERVICES + _LOOK, 191),
        # And the members of each pool.
        *figures(f"{name}.restart", restarted, TOKEN + _LISTS + _POOLS, 101),
        *figures(f"{name}.node-added", added, _CHANGED, 130),
        *figures(f"{name}.connection-limit", limited, _CHANGED, 150),
        *figures(f"{name}.node-removed", removed, _CHANGED, 130),
        # A window of some periods may start just before one.
        *figures(f"{name}.idle", idle, (_IDLE_SECONDS // _RESYNC_SECONDS + 1) * _LISTS, None),
        # Floating IPs and load balancers, are they still the Services', are they gone.
        *figures(f"{name}.deletion", deleted, 2 * _SERVICES + 2 * _LOOK, 90),
    ]


def _restarted(made: Cluster) -> Spent:
    """A start that finds everything as it should be. Over when each Service has its address again."""
    made.clear_addresses()
    with suppress(NotFoundError):
        made.drop_checkpoint()
    with made.daemon(["service"]) as daemon:
        return daemon.since_start(lambda: made.served(_SERVICES))


@contextmanager
def _read_twice(made: Cluster, *flags: str, lists: int = 2) -> Iterator[Daemon]:
    """A controller that has read everything twice, as after each start, in case that lists lag.

    `lists`: how many of listeners a read takes until no part is in doubt.
    """
    before = made.full_reads()
    with made.daemon(["service"], *flags) as daemon:
        daemon.until(lambda: made.full_reads() >= before + 2 * lists)
        daemon.rest()
        yield daemon


def _service(number: int) -> Object:
    ports = [{"name": f"port-{each}", "port": each, "targetPort": 8080} for each in _PORTS]
    return {
        "metadata": {"name": f"web-{number:05}", "namespace": "default"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "none"}, "ports": ports},
    }


def _limit(made: Cluster) -> None:
    change = {"metadata": {"annotations": {f"{PREFIX}connection-limit": str(_LIMIT)}}}
    for number in range(_SERVICES):
        made.kube.patch(SERVICES, f"web-{number:05}", change, "default", type=PatchType.MERGE)


def _have(made: Cluster, members: int) -> bool:
    return {len(each["members"]) for each in made.parts("pools")} == {members} and _active(made)


def _active(made: Cluster) -> bool:
    return {each["provisioning_status"] for each in made.parts("loadbalancers")} == {"ACTIVE"}


def _limited(made: Cluster) -> bool:
    return {each["connection_limit"] for each in made.parts("listeners")} == {_LIMIT} and _active(made)
