"""With the cloud config of another account, where everything has the same names, nothing leaks and nothing is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.kube import Object
from cloud_controller.safeguard import HELD
from local.alicloud import machines
from local.alicloud.clb_balancers import CLB
from local.alicloud.nlb_jobs import BALANCER
from tests.cloud_controller.clouds.alicloud.account import StandInHttp
from tests.cloud_controller.clouds.alicloud.clb.balancing import Balancing
from tests.cloud_controller.clouds.alicloud.nlb.balancing import NlbAccount
from tests.cloud_controller.clouds.alicloud.nlb.services import ZONE_H, ZONE_K
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, served, service

ZONES = {f"{PREFIX}zone-maps": f"{ZONE_K}:vsw-k,{ZONE_H}:vsw-h"}
KINDS: dict[str, tuple[Callable[[], Any], str, Callable[..., Object]]] = {
    "clb": (Balancing, CLB, service),
    "nlb": (NlbAccount, BALANCER, lambda **more: service(ZONES, loadBalancerClass="alibabacloud.com/nlb", **more)),
}


def strip(account: Any) -> Any:
    """An account of the same names without the cluster's machines."""
    with account.standin.changing() as world:
        for each in world.store.all(machines.INSTANCE):
            world.fill(machines.INSTANCE, each["id"], tags={})
    return account


@pytest.mark.parametrize("when", ["after a restart", "after a full read", "between full reads"])
@pytest.mark.parametrize("kind", KINDS)
def test_in_another_account_of_the_same_names_services_wait(kind: str, when: str) -> None:
    make, balancer, web = KINDS[kind]
    account, other = make(), strip(make())
    cluster: Cluster = account.cluster()
    running = served(account, cluster, web())
    cluster.put(web(name="gone"))
    running.settle()
    (before, kept) = account.objects(balancer), other.objects(balancer)
    cluster.delete_service("default/gone")
    cluster.events.clear()

    if when == "after a restart":
        running = Running(other, cluster)
    else:
        running.cloud._client._http = StandInHttp(other.standin)
    if when == "after a full read":
        running.resync()
    running.settle("default/gone")
    running.resync()
    cluster.put(web(name="new"))
    running.settle()

    assert {*cluster.reasons} == {HELD}
    assert {WEB, "default/gone", "default/new"} == cluster.objects["services"].keys()
    assert not cluster.service("default/new")["metadata"]["finalizers"]
    assert cluster.ingress
    assert (account.objects(balancer), other.objects(balancer)) == (before, kept)
    assert "3 held" in str(running.controller._safeguard.detail())


@pytest.mark.parametrize("kind", KINDS)
def test_an_ordinary_life_of_a_service_asks_for_no_machine(kind: str) -> None:
    make, _, web = KINDS[kind]
    account = make()
    cluster: Cluster = account.cluster()
    running = served(account, cluster, web())
    account.calls()

    cluster.put(web(name="second"))
    running.settle()
    cluster.delete_service()
    running.settle()
    running.resync()
    running.settle()

    assert WEB not in cluster.objects["services"]
    assert not [call for call in account.calls() if call.startswith("ecs.DescribeInstances")]
