"""Users' listeners that a Service takes over come back as they were, wherever a process dies.

CLB cannot change the protocol of a listener, nor its scheduler to a hash: it is deleted, with its tags, and made anew.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from cloud_controller.clouds.alicloud.requests import is_read
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.load_balancers.model import LoadBalancerModel
from cloud_controller.load_balancers.sharing import Sharing
from local.alicloud.clb_balancers import LISTENER
from tests.cloud_controller.clouds.alicloud.clb.balancing import Balancing, account
from tests.cloud_controller.clouds.alicloud.clb.services import prefixed
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, port, service

__all__ = ["account"]

ANY = ServiceOptions(resync=300.0, sharing=Sharing.ANY)
MOST_WRITES = 30
ON_443 = {"protocol-port": "http:80,https:443", "cert-id": "cert-1"}
CHANGES: dict[str, list[dict[str, str]]] = {
    "by another protocol": [{"protocol-port": "http:80"}],
    "by another protocol, later": [{}, {"protocol-port": "http:80"}, {}],
    "by a hash, later": [{"scheduler": "rr"}, {"scheduler": "tch"}],
    "by a redirect": [{**ON_443, "forward-port": "80:443"}],
    "by a redirect, for a time": [ON_443, {**ON_443, "forward-port": "80:443"}, ON_443],
}
"""How a Service takes the user's ports over, and how it changes then."""


class Died(BaseException):
    """The process ended."""


def users_listeners(account: Balancing) -> str:
    """A load balancer of a user with a TCP and an HTTPS listener; returns its ID."""
    client = account.cloud()._client
    lb = str(client.call("slb", "CreateLoadBalancer", {"InstanceChargeType": "PayByCLCU"})["LoadBalancerId"])
    group = client.call("slb", "CreateVServerGroup", {"LoadBalancerId": lb, "VServerGroupName": "mine"})
    common = {"LoadBalancerId": lb, "Bandwidth": -1, "VServerGroupId": group["VServerGroupId"]}
    tag = [{"Key": "team", "Value": "edge"}]
    tcp = {**common, "ListenerPort": 80, "Scheduler": "sch", "EstablishedTimeout": 77, "Tag": tag}
    client.call("slb", "CreateLoadBalancerTCPListener", tcp)
    https = {**common, "ListenerPort": 443, "StickySession": "off", "HealthCheck": "off"}
    client.call("slb", "CreateLoadBalancerHTTPSListener", {**https, "ServerCertificateId": "cert-2"})
    domain = {"LoadBalancerId": lb, "ListenerPort": 443, "Domain": "a.example.com", "ServerCertificateId": "cert-a"}
    client.call("slb", "CreateDomainExtension", domain)
    for number in (80, 443):
        client.call("slb", "StartLoadBalancerListener", {"LoadBalancerId": lb, "ListenerPort": number})
    return lb


def everything(account: Balancing, lb: str) -> LoadBalancerModel:
    """The load balancer with all that is on it, as a new process reads it."""
    (found,) = account.new_cloud().load_balancers.read((), (lb,))
    return found.model


def dying_after(running: Running, writes: int) -> None:
    """Let the process die when it is about to make another write."""
    client = running.cloud._client
    call, made = client.call, []

    def counted(product: str, name: str, parameters: Any) -> Any:
        if not is_read(name):
            if len(made) == writes:
                raise Died
            made.append(name)
        return call(product, name, parameters)

    client.call = counted


def settled(account: Balancing, cluster: Cluster, writes: int | None = None) -> None:
    """Let a new process do what is to be done; with `writes`, only so many."""
    running = Running(account, cluster, options=ANY, started=False)
    if writes is not None:
        dying_after(running, writes)
    running.resync()
    running.settle(WEB)


def every_death(lives: Callable[[int], bool]) -> None:
    """Try a life in which the process dies after no write, after one and so on, until it survives."""
    deaths = next(writes for writes in range(MOST_WRITES) if lives(writes))
    assert deaths > 2


def wanted(lb: str, given: dict[str, str]) -> Any:
    ports = [port(80), port(443)] if "https" in str(given) else [port(80)]
    return service(prefixed({"id": lb, "force-override-listeners": "true", **given}), *ports)


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_listener_that_is_made_anew_is_given_back_wherever_the_process_died(changes: list[dict[str, str]]) -> None:
    for step in range(len(changes) + 1):
        every_death(partial(life, changes, step))


def life(changes: list[dict[str, str]], dies_at: int, writes: int) -> bool:
    """A Service takes the user's ports, changes and leaves; in one of these steps, a process may make only so many
    writes before another one takes over. Returns whether it survives."""
    account = Balancing()
    lb = users_listeners(account)
    before, cluster, survived = everything(account, lb), account.cluster(), True
    for step, given in enumerate([*changes, None]):
        if given is None:
            cluster.delete_service()
        else:
            cluster.put(wanted(lb, given))
        if step == dies_at:
            try:
                settled(account, cluster, writes)
            except Died:
                survived = False
        settled(account, cluster)
        taken = next(each["tags"] for each in account.objects(LISTENER) if each["port"] == 80)
        assert ("kubernetes.io/service-uid" in taken) is (given is not None)

    assert everything(account, lb) == before
    assert not cluster.objects["services"]
    return survived
