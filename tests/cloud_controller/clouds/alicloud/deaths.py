"""Service controllers whose process dies between two writes, and the next process that goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cloud_controller.clouds.alicloud.requests import is_read
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.load_balancers.model import LoadBalancerModel
from cloud_controller.load_balancers.sharing import Sharing
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Account, Running

ANY = ServiceOptions(resync=300.0, sharing=Sharing.ANY)
MOST_WRITES = 30


class Died(BaseException):
    """The process ended."""


def every_death(survives: Callable[[int], bool]) -> None:
    """Try a life in which a process dies after no write, after one and so on, until it survives."""
    deaths = next(writes for writes in range(MOST_WRITES) if survives(writes))
    assert deaths > 2


def life(account: Account, cluster: Cluster, lb: str, services: list[Any], dies_at: int, writes: int) -> bool:
    """The Service is put as each of these, one after another, and is deleted; in one of these steps, a process may make
    only so many writes before another goes on. The load balancer of a user is left as it was. Returns whether the
    process survives."""
    before, survived = _everything(account, lb), True
    for step, service in enumerate([*services, None]):
        if service is None:
            cluster.delete_service()
        else:
            cluster.put(service)
        if step == dies_at:
            try:
                _settled(account, cluster, writes)
            except Died:
                survived = False
        _settled(account, cluster)
        (taken,) = (each for each in _everything(account, lb).listeners if each.port == 80)
        assert ("kubernetes.io/service-uid" in taken.tags) is (service is not None)

    assert _everything(account, lb) == before
    assert not cluster.objects["services"]
    return survived


def _everything(account: Account, lb: str) -> LoadBalancerModel:
    """The load balancer with all that is on it, as a new process reads it."""
    (found,) = account.new_cloud().load_balancers.read((), (lb,))
    model: LoadBalancerModel = found.model
    return model


def _settled(account: Account, cluster: Cluster, writes: int | None = None) -> None:
    """A new process does what is to be done; with `writes`, only so many."""
    running = Running(account, cluster, options=ANY, started=False)
    if writes is not None:
        _dying_after(running, writes)
    running.resync()
    running.settle(WEB)


def _dying_after(running: Running, writes: int) -> None:
    client = running.cloud._client
    call, made = client.call, list[str]()

    def counted(product: str, name: str, parameters: Any) -> Any:
        if not is_read(name):
            if len(made) == writes:
                raise Died
            made.append(name)
        return call(product, name, parameters)

    client.call = counted
