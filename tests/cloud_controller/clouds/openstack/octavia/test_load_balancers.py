"""Services on the real Octavia and Neutron: what they hold afterwards, and the calls that it took."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import Conflict, InvalidConfiguration
from cloud_controller.clouds.openstack.octavia import reads
from cloud_controller.controllers.service.controller import POLL
from local.openstack.project import Project
from tests.cloud_controller.clouds.openstack.octavia.account import OctaviaAccount
from tests.cloud_controller.clouds.openstack.octavia.services import named, nodes
from tests.cloud_controller.load_balancing import Running, changed, port, served, service

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


def test_a_service_gets_a_load_balancer_with_members_and_a_floating_ip(account: OctaviaAccount) -> None:
    cluster = nodes("node1", "node2")
    cluster.put(service({}, port(80)))
    running = Running(account, cluster)
    running.calls.clear()

    running.settle()

    (lb,) = account.load_balancers()
    (listener,), (pool,), (floating_ip,) = account.parts("listeners"), account.parts("pools"), account.floating_ips()
    assert (lb["name"], lb["provisioning_status"]) == ("c-1-default-web", "ACTIVE")
    assert (listener["protocol"], listener["protocol_port"], listener["default_pool_id"]) == ("TCP", 80, pool["id"])
    assert [(m["address"], m["protocol_port"], m["name"]) for m in account.members(pool)] == [
        ("10.1.0.1", 30080, "node1"),
        ("10.1.0.2", 30080, "node2"),
    ]
    assert floating_ip["port_id"] == lb["vip_port_id"]
    assert cluster.ingress == [{"ip": floating_ip["floating_ip_address"], "ipMode": "VIP"}]
    assert running.calls.writes == {"POST load-balancer lbaas/loadbalancers": 1, "POST network floatingips": 1}
    # All have been listed: none can have the token of this creation.
    assert running.calls.of("GET load-balancer lbaas/loadbalancers") == 0
    assert not running.plan().changes


def test_a_load_balancer_is_of_the_provider_in_the_cloud_config(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    cluster.put(service({}, port(80)))

    with pytest.raises(InvalidConfiguration, match="'missing' is not enabled"):
        Running(account, cluster, provider="missing").settle()


def test_what_listeners_can_change_is_changed_one_after_another(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service({}, port(80), port(53, "UDP")))

    changed(cluster, named(connection_limit=2000, timeout_client_data=70_000), loadBalancerSourceRanges=["10.0.0.0/8"])
    running.settle()

    for listener in account.parts("listeners"):
        assert listener["connection_limit"] == 2000
        assert listener["timeout_client_data"] == 70_000
        assert listener["allowed_cidrs"] == ["10.0.0.0/8"]
    assert running.calls.writes == {"PUT load-balancer lbaas/listeners/ID": 2}
    assert not running.plan().changes


def test_x_forwarded_for_makes_the_listener_anew_with_a_pool_of_http(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service({}, port(80)))

    changed(cluster, named(x_forwarded_for=True))
    running.settle(rounds=8)

    (listener,), (pool,) = account.parts("listeners"), account.parts("pools")
    assert (listener["protocol"], listener["insert_headers"]) == ("HTTP", {"X-Forwarded-For": "true"})
    assert (pool["name"], pool["protocol"], listener["default_pool_id"]) == ("tcp-80-http", "HTTP", pool["id"])
    assert [m["address"] for m in account.members(pool)] == ["10.1.0.1"]
    assert not running.plan().changes


def test_a_port_added_gets_pool_members_monitor_and_listener(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service(named(enable_health_monitor=True), port(80)))

    changed(cluster, ports=[port(80), port(443)])
    running.settle(rounds=8)

    assert [each["protocol_port"] for each in account.parts("listeners")] == [443, 80]
    assert [each["name"] for each in account.parts("healthmonitors")] == ["tcp-443:", "tcp-80:"]
    assert [len(account.members(pool)) for pool in account.parts("pools")] == [1, 1]
    assert not running.plan().changes


def test_an_internal_service_has_no_floating_ip_and_gets_one_when_it_is_made_public(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service(named(internal=True), port(80)))
    (lb,) = account.load_balancers()
    assert cluster.ingress == [{"ip": lb["vip_address"], "ipMode": "VIP"}]
    assert account.floating_ips() == []

    changed(cluster, named(internal=False))
    running.settle()

    (floating_ip,) = account.floating_ips()
    assert cluster.ingress == [{"ip": floating_ip["floating_ip_address"], "ipMode": "VIP"}]

    changed(cluster, named(internal=True))
    running.settle()

    assert account.floating_ips() == []
    assert cluster.ingress == [{"ip": lb["vip_address"], "ipMode": "VIP"}]


def test_another_load_balancer_ip_moves_the_service_to_it_and_frees_the_old_one(account: OctaviaAccount) -> None:
    first, second = (account.floating_ip() for _ in range(2))
    cluster = nodes("node1")
    running = served(account, cluster, service({}, port(80), loadBalancerIP=first["floating_ip_address"]))
    assert cluster.ingress[0]["ip"] == first["floating_ip_address"]

    changed(cluster, loadBalancerIP=second["floating_ip_address"])
    running.settle()

    assert cluster.ingress[0]["ip"] == second["floating_ip_address"]
    cluster.delete_service()
    running.settle()
    assert {each["id"]: each["port_id"] for each in account.floating_ips()} == {first["id"]: None, second["id"]: None}


def test_a_floating_ip_is_kept_when_its_annotation_says_so(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service(named(keep_floating_ip=True), port(80)))

    cluster.delete_service()
    running.settle()

    (kept,) = account.floating_ips()
    assert (kept["port_id"], account.load_balancers()) == (None, [])


def test_another_floating_subnet_gives_another_address_on_the_same_load_balancer(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service(named(floating_subnet_tags="gold"), port(80)))
    (before,) = account.load_balancers()
    assert cluster.ingress[0]["ip"].startswith("198.18.")

    changed(cluster, named(floating_subnet_tags="silver"))
    running.settle()

    (lb,), (floating_ip,) = account.load_balancers(), account.floating_ips()
    assert (lb["id"], floating_ip["port_id"]) == (before["id"], before["vip_port_id"])
    assert cluster.ingress[0]["ip"] == floating_ip["floating_ip_address"]
    assert floating_ip["floating_ip_address"].startswith("198.19.")


def test_local_traffic_is_checked_at_kube_proxy_whatever_the_protocol(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    given = service(
        named(enable_health_monitor=True),
        port(80),
        port(53, "UDP"),
        externalTrafficPolicy="Local",
        healthCheckNodePort=32_000,
    )

    running = served(account, cluster, given)

    assert {(m["type"], m["url_path"]) for m in account.parts("healthmonitors")} == {("HTTP", "/healthz")}
    assert not running.plan().changes


def test_sctp_proxy_protocol_and_session_affinity(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    cluster.put(service({}, port(80), port(7000, "SCTP"), name="web", sessionAffinity="ClientIP"))
    cluster.put(service(named(proxy_protocol="v2"), port(80), name="proxied"))
    running = Running(account, cluster).settle()

    pools = {pool["name"]: pool for pool in account.parts("pools")}
    assert {name: pool["protocol"] for name, pool in pools.items()} == {
        "sctp-7000": "SCTP",
        "tcp-80": "TCP",
        "tcp-80-proxyv2": "PROXYV2",
    }
    assert pools["tcp-80"]["session_persistence"]["type"] == "SOURCE_IP"
    assert cluster.service("default/proxied")["status"]["loadBalancer"]["ingress"][0]["ipMode"] == "Proxy"

    changed(cluster, sessionAffinity="None")
    changed(cluster, named(proxy_protocol="false"), web="default/proxied")
    running.settle(rounds=8)

    assert [pool["session_persistence"] for pool in account.parts("pools")] == [None, None, None]
    assert sorted(pool["protocol"] for pool in account.parts("pools")) == ["SCTP", "TCP", "TCP"]
    assert not running.plan().changes


def test_a_floating_ip_that_was_moved_to_another_port_stays_there(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service({}, port(80)))
    (floating_ip,) = account.floating_ips()
    _, (elsewhere,) = account.site.project.server("vm", (account.networks.nodes, [account.networks.subnet]))
    body = {"floatingip": {"port_id": elsewhere["id"]}}
    account.api.put("network", f"floatingips/{floating_ip['id']}", body)

    cluster.delete_service()
    running.settle()

    assert account.load_balancers() == []
    assert [each["port_id"] for each in account.floating_ips()] == [elsewhere["id"]]


def test_a_load_balancer_with_a_listener_of_somebody_else_is_not_deleted(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service({}, port(80)))
    (lb,) = account.load_balancers()
    foreign = {"name": "theirs", "protocol": "TCP", "protocol_port": 9000, "loadbalancer_id": lb["id"]}
    made = account.api.post("load-balancer", "lbaas/listeners", {"listener": foreign})["listener"]
    account.settle()
    running.resync()

    cluster.delete_service()
    with pytest.raises(Conflict, match=made["id"]):
        running.settle()

    assert "theirs" in [each["name"] for each in account.parts("listeners")]


def test_a_service_that_names_another_projects_load_balancer_keeps_no_other_from_its_own(
    account: OctaviaAccount,
) -> None:
    other = Project(account.site.peer)
    _, (subnet,) = other.network("nodes", "10.77.0.0/16")
    body = {"loadbalancer": {"name": "theirs", "vip_subnet_id": subnet["id"]}}
    theirs = other.api.post("load-balancer", "lbaas/loadbalancers", body)["loadbalancer"]
    cluster = nodes("node1")
    cluster.put(service(named(id=theirs["id"]), port(80)))

    cluster.put(service({}, port(80), name="other"))

    running = Running(account, cluster).settle("default/other")

    assert cluster.service("default/other")["status"]
    with pytest.raises(InvalidConfiguration, match="the cloud does not show it"):
        running.handle()


def test_a_floating_ip_kept_in_the_change_that_makes_the_service_internal_is_kept(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service({}, port(80)))
    (floating_ip,) = account.floating_ips()

    changed(cluster, named(internal=True, keep_floating_ip=True))
    running.settle()

    assert [each["id"] for each in account.floating_ips()] == [floating_ip["id"]]


def test_a_full_read_reads_the_parts_of_what_octavia_has_touched_alone(
    account: OctaviaAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "_SECONDS_OF_DOUBT", -60.0)
    cluster = nodes("node1")
    running = served(account, cluster, service({}, port(80)))
    running.resync()
    running.calls.clear()

    running.resync()

    assert running.calls.of("GET load-balancer lbaas/pools/ID/members") == 0
    assert running.calls.of("GET network floatingips") == 1

    (pool,) = account.parts("pools")
    (member,) = account.members(pool)
    account.api.delete("load-balancer", f"lbaas/pools/{pool['id']}/members/{member['id']}")
    account.settle()
    running.resync()
    running.settle()

    assert [each["address"] for each in account.members(pool)] == ["10.1.0.1"]


def test_parts_read_within_the_second_of_a_change_are_read_again_by_a_full_read(account: OctaviaAccount) -> None:
    running = served(account, nodes("node1"), service({}, port(80)))
    running.calls.clear()

    running.resync()

    assert running.calls.of("GET load-balancer lbaas/pools/ID/members") == 1


def test_many_load_balancers_at_work_are_looked_at_by_one_list(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    for number in range(4):
        cluster.put(service(named(internal=True), name=f"web-{number}"))
    running = Running(account, cluster)
    for number in range(4):
        running.handle(f"default/web-{number}")
    account.settle()
    running.calls.clear()

    running.handle(POLL)

    assert running.calls.made == ["GET load-balancer lbaas/loadbalancers"]
    assert all(each["provisioning_status"] == "ACTIVE" for each in account.load_balancers())


def test_an_internal_load_balancer_keeps_the_address_that_its_service_asks_for_when_it_is_made_anew(
    account: OctaviaAccount,
) -> None:
    admin = account.site.peer.admin
    profile: dict[str, object] = {"name": "p", "provider_name": "amphora", "flavor_data": "{}"}
    profile = admin.post("load-balancer", "lbaas/flavorprofiles", {"flavorprofile": profile})["flavorprofile"]
    flavor = {"name": f"f-{profile['id']}", "flavor_profile_id": profile["id"], "enabled": True}
    flavor = admin.post("load-balancer", "lbaas/flavors", {"flavor": flavor})["flavor"]
    cluster = nodes("node1")
    running = served(account, cluster, service(named(internal=True), port(80), loadBalancerIP="10.1.255.200"))

    changed(cluster, named(flavor_id=flavor["id"]))
    running.settle()

    (lb,) = account.load_balancers()
    assert (lb["flavor_id"], lb["vip_address"]) == (flavor["id"], "10.1.255.200")
    assert cluster.ingress == [{"ip": "10.1.255.200", "ipMode": "VIP"}]
    assert running.calls.of("POST load-balancer lbaas/loadbalancers") == 1
