"""Load balancers that are replaced, with the service controller on the stand-in."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.controllers.service.address_changes import ANNOTATION, AddressChanges
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.load_balancers.sharing import Sharing
from local.alicloud.machines import EIP
from local.alicloud.nlb_jobs import BALANCER, LISTENER
from tests.cloud_controller.clouds.alicloud.nlb.balancing import NlbAccount
from tests.cloud_controller.clouds.alicloud.nlb.services import ZONE_H, ZONE_K
from tests.cloud_controller.cluster import WEB
from tests.cloud_controller.load_balancing import changed, port, served, service

NLB = "alibabacloud.com/nlb"
ZONES = {f"{PREFIX}zone-maps": f"{ZONE_K}:vsw-k::eip-1,{ZONE_H}:vsw-h:192.168.1.77"}
DUAL_STACK = {f"{PREFIX}ip-version": "DualStack"}


def addresses(account: NlbAccount) -> dict[str, tuple[str, str]]:
    """The elastic IP and the private address in each zone of the only load balancer."""
    (balancer,) = account.objects(BALANCER)
    return {each["zone"]: (each["eip"], each["private"]) for each in balancer["zones"]}


def test_a_load_balancer_with_addresses_of_its_own_is_replaced_by_one_that_has_them(account: NlbAccount) -> None:
    cluster = account.cluster()
    running = served(account, cluster, service(ZONES, loadBalancerClass=NLB))
    ((before,), (old,)) = cluster.ingress, account.objects(BALANCER)
    changed(cluster, DUAL_STACK)

    (deletion,) = running.plan().changes
    running.settle(rounds=12)

    assert "only when eip-1 is free; until it serves, clients cannot connect" in str(deletion)
    (new,) = account.objects(BALANCER)
    assert new["id"] != old["id"]
    assert addresses(account)[ZONE_K][0] == "eip-1"
    assert addresses(account)[ZONE_H][1] == "192.168.1.77"
    assert [each["instance"] for each in account.objects(EIP)] == [new["id"]]
    assert cluster.ingress != [before]


def test_a_load_balancer_that_other_services_use_keeps_its_addresses_and_serves_on(account: NlbAccount) -> None:
    cluster = account.cluster()
    options = ServiceOptions(resync=300.0, sharing=Sharing.ANY)
    running = served(account, cluster, service(ZONES, loadBalancerClass=NLB), options=options)
    ((before,), (old,)) = cluster.ingress, account.objects(BALANCER)
    cluster.put(service({f"{PREFIX}id": old["id"]}, port(8443), name="guest", loadBalancerClass=NLB))
    running.settle("default/guest")
    changed(cluster, DUAL_STACK)

    with pytest.raises(InvalidConfiguration, match=f"zone-maps: eip-1 cannot be moved .* {old['id']} has it"):
        running.handle(WEB)

    assert cluster.ingress == [before]
    assert [each["id"] for each in account.objects(BALANCER)] == [old["id"]]


ACKNOWLEDGE = ServiceOptions(address_changes=AddressChanges.ACKNOWLEDGE)
INTRANET = {f"{PREFIX}address-type": "intranet"}
WITHOUT_EIP = {f"{PREFIX}zone-maps": f"{ZONE_K}:vsw-k,{ZONE_H}:vsw-h"}
ANOTHER = {f"{PREFIX}zone-maps": f"{ZONE_K}:vsw-k::eip-1,{ZONE_H}:vsw-h:192.168.1.78"}


@pytest.mark.parametrize(
    "change", [DUAL_STACK, INTRANET | WITHOUT_EIP, ANOTHER], ids=["replaced", "to the VPC", "another address"]
)
def test_addresses_wait_for_an_acknowledgement_and_other_changes_do_not(
    account: NlbAccount, change: dict[str, str]
) -> None:
    cluster = account.cluster()
    running = served(account, cluster, service(ZONES, loadBalancerClass=NLB), options=ACKNOWLEDGE)
    (old,), before = account.objects(BALANCER), addresses(account)

    changed(cluster, {**change, f"{PREFIX}name": "renamed"}, ports=[port(80), port(443)])
    running.settle(rounds=6)

    (lb,) = account.objects(BALANCER)
    assert (lb["id"], lb["address_type"], lb["name"]) == (old["id"], "Internet", "renamed")
    assert addresses(account) == before
    assert sorted(each["port"] for each in account.objects(LISTENER)) == [80, 443]
    (held,) = running.plan(address_changes=AddressChanges.ACKNOWLEDGE).held

    changed(cluster, {ANNOTATION: held.held or ""})
    running.settle(rounds=12)

    (new,) = account.objects(BALANCER)
    assert (new["id"] != old["id"]) == (change is DUAL_STACK)
    assert addresses(account) != before or change is DUAL_STACK
    assert not running.plan(address_changes=AddressChanges.ACKNOWLEDGE).changes


def test_ipv6_addresses_open_unasked_and_do_not_close_without_an_acknowledgement(account: NlbAccount) -> None:
    public, private = ({f"{PREFIX}ipv6-address-type": kind} for kind in ("internet", "intranet"))
    cluster = account.cluster()
    running = served(account, cluster, service(ZONES | DUAL_STACK, loadBalancerClass=NLB), options=ACKNOWLEDGE)

    def ipv6() -> str:
        running.settle(rounds=6)
        (lb,) = account.objects(BALANCER)
        return str(lb["ipv6_type"])

    changed(cluster, public)
    assert ipv6() == "Internet"
    changed(cluster, private)
    assert ipv6() == "Internet"
    (held,) = running.plan(address_changes=AddressChanges.ACKNOWLEDGE).held
    changed(cluster, {ANNOTATION: held.held or ""})
    assert ipv6() == "Intranet"


@pytest.mark.parametrize("key", ["ack.aliyun.com", "kubernetes.io/cluster"])
def test_an_elastic_ip_with_another_clusters_tag_is_refused_before_any_change(account: NlbAccount, key: str) -> None:
    account.put(EIP, tags={key: "c-2"})

    with pytest.raises(InvalidConfiguration, match="zone-maps: 'eip-1' has the tag of cluster c-2"):
        served(account, account.cluster(), service(ZONES, loadBalancerClass=NLB))

    assert not account.objects(BALANCER)
