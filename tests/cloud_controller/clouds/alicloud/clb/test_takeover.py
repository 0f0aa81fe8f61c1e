"""Users' listeners that a Service takes over come back as they were, wherever a process dies.

CLB cannot change the protocol of a listener, nor its scheduler to a hash: it is deleted, with its tags, and made anew.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.cloud_controller.clouds.alicloud.clb.balancing import Balancing
from tests.cloud_controller.clouds.alicloud.clb.services import prefixed
from tests.cloud_controller.clouds.alicloud.deaths import every_death, life
from tests.cloud_controller.load_balancing import port, service

ON_443 = {"protocol-port": "http:80,https:443", "cert-id": "cert-1"}
CHANGES: dict[str, list[dict[str, str]]] = {
    "by another protocol": [{"protocol-port": "http:80"}],
    "by another protocol, later": [{}, {"protocol-port": "http:80"}, {}],
    "by a hash, later": [{"scheduler": "rr"}, {"scheduler": "tch"}],
    "by a redirect": [{**ON_443, "forward-port": "80:443"}],
    "by a redirect, for a time": [ON_443, {**ON_443, "forward-port": "80:443"}, ON_443],
}
"""How a Service takes the user's ports over, and how it changes then."""


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


def wanted(lb: str, given: dict[str, str]) -> Any:
    ports = [port(80), port(443)] if "https" in str(given) else [port(80)]
    return service(prefixed({"id": lb, "force-override-listeners": "true", **given}), *ports)


@pytest.mark.integration
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_listener_that_is_made_anew_is_given_back_wherever_the_process_died(changes: list[dict[str, str]]) -> None:
    def survives(dies_at: int, writes: int) -> bool:
        account = Balancing()
        lb = users_listeners(account)
        return life(account, account.cluster(), lb, [wanted(lb, each) for each in changes], dies_at, writes)

    for step in range(len(changes) + 1):
        every_death(lambda writes, step=step: survives(step, writes))  # type: ignore[misc]


def test_a_stopped_listener_that_is_made_anew_is_given_back_stopped() -> None:
    account = Balancing()
    lb = users_listeners(account)
    account.cloud()._client.call("slb", "StopLoadBalancerListener", {"LoadBalancerId": lb, "ListenerPort": 80})

    assert life(account, account.cluster(), lb, [wanted(lb, {"protocol-port": "http:80"})], 9, 0)
