"""The life of classic load balancers: the calls that each step takes, changes by hand, reuse, preserving, health."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from cloud_controller.cloud import Conflict, InvalidConfiguration, NotFound, Unavailable
from cloud_controller.clouds.alicloud.annotation_entries import BACKEND_TYPE
from cloud_controller.clouds.alicloud.clb.changes import Changes
from cloud_controller.clouds.alicloud.errors import Refusal
from cloud_controller.clouds.alicloud.requests import is_read
from cloud_controller.controllers.service.address_changes import ANNOTATION, AddressChanges
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.kube import EventType
from cloud_controller.load_balancers.sharing import Sharing
from local.alicloud import machines
from local.alicloud.clb_balancers import CLB, GROUP, LISTENER
from local.standin.faults import Fault
from local.standin.refusals import Refusal as StandInRefusal
from tests.cloud_controller.clouds.alicloud.clb.balancing import Balancing
from tests.cloud_controller.clouds.alicloud.clb.services import prefixed
from tests.cloud_controller.load_balancing import Running, changed, endpoint, endpoint_slice, port, served
from tests.cloud_controller.load_balancing import service as _service

CREATE, DELETE = "CreateLoadBalancer", ["DeleteLoadBalancer", "SetLoadBalancerDeleteProtection"]
ONE_PORT = ["CreateLoadBalancerTCPListener", "CreateVServerGroup", "StartLoadBalancerListener"]
HTTPS = {"protocol-port": "https:443", "cert-id": "cert-1"}


def service(given: dict[str, str] | None = None, *ports: dict[str, Any], **more: Any) -> Any:
    return _service(prefixed(given or {}), *ports, **more)


def calls(account: Balancing) -> list[str]:
    return sorted(name.partition(".")[2] for name, times in account.calls().items() for _ in range(times))


def writes(account: Balancing) -> list[str]:
    return [action for action in calls(account) if not is_read(action)]


def alter(account: Balancing, kind: str, number: int = 0, **changes: Any) -> None:
    """Change an object by hand."""
    with account.standin.changing() as world:
        world.fill(kind, world.store.all(kind)[number]["id"], **changes)


def only(account: Balancing, kind: str) -> dict[str, Any]:
    [found] = account.objects(kind)
    return found


def start(account: Balancing, given: dict[str, str] | None = None, *ports: dict[str, Any], **more: Any) -> Running:
    running = served(account, account.cluster(), service(given, *ports), **more)
    account.calls()
    return running


# ----------------------------------------------------------------------------------------------------------- calls


def test_a_load_balancer_with_one_port_takes_four_calls(account: Balancing) -> None:
    running = Running(account, account.cluster())
    account.calls()

    running.apply(service())

    assert account.calls() == {
        "slb.CreateLoadBalancer": 1,
        "slb.CreateVServerGroup": 1,
        "slb.CreateLoadBalancerTCPListener": 1,
        "slb.StartLoadBalancerListener": 1,
        # What a plan reads; the group's backends are known from its creation.
        "slb.DescribeLoadBalancers": 1,
        "slb.DescribeLoadBalancerListeners": 2,
        "slb.ListTagResources": 1,
        "nlb.ListLoadBalancers": 1,
        "nlb.ListServerGroups": 1,
    }
    assert {backend["Port"] for backend in only(account, GROUP)["backends"]} == {30080}
    assert running.cluster.ingress == [{"ip": only(account, CLB)["address"]}]


def test_backends_are_added_twenty_in_a_call(account: Balancing) -> None:
    running = Running(account, account.cluster(50))
    account.calls()

    running.apply(service())

    assert writes(account) == sorted(["AddVServerGroupBackendServers"] * 2 + [CREATE, *ONE_PORT])
    assert len(only(account, GROUP)["backends"]) == 50


@pytest.mark.parametrize(
    ("before", "after", "made"),
    [
        ({}, {"scheduler": "rr", "health-check-interval": "9"}, ["SetLoadBalancerTCPListenerAttribute"]),
        ({}, {"name": "edge"}, ["SetLoadBalancerName"]),
        ({}, {"delete-protection": "off"}, ["SetLoadBalancerDeleteProtection"]),
        ({}, {"modification-protection": "NonProtection"}, ["SetLoadBalancerModificationProtection"]),
        ({}, {"additional-resource-tags": "team=web"}, ["TagResources"]),
        ({}, {"default-weight": "30"}, ["SetVServerGroupAttribute"]),
        (
            {"instance-charge-type": "PayBySpec"},
            {"instance-charge-type": "PayBySpec", "spec": "slb.s2.small"},
            ["ModifyLoadBalancerInstanceSpec"],
        ),
        (
            {"instance-charge-type": "PayBySpec"},
            {"instance-charge-type": "PayBySpec", "charge-type": "paybybandwidth", "bandwidth": "7"},
            ["ModifyLoadBalancerInternetSpec"],
        ),
        ({"instance-charge-type": "PayBySpec"}, {}, ["ModifyLoadBalancerInstanceChargeType"]),
        (
            {},
            {"protocol-port": "http:80"},
            ["CreateLoadBalancerHTTPListener", "DeleteLoadBalancerListener", "StartLoadBalancerListener"],
        ),
        ({}, {"hostname": "web.example.com"}, []),
    ],
)
def test_a_change_takes_the_fewest_calls(
    account: Balancing, before: dict[str, str], after: dict[str, str], made: list[str]
) -> None:
    running = start(account, before)

    running.apply(service(after))

    assert writes(account) == sorted(made)


def test_an_annotation_that_only_a_new_load_balancer_gets_is_reported_once(account: Balancing) -> None:
    running = start(account, {"resource-group-id": "rg-one"})

    for group in ("rg-two", "rg-two", "rg-one", "rg-two"):
        changed(running.cluster, prefixed({"resource-group-id": group}))
        running.handle()

    assert writes(account) == []
    told = [message for reason, message in running.cluster.events if reason == "NotApplied"]
    why = "resource_group_id: rg-one -> rg-two: it applies only when a load balancer is created"
    assert told == [f"The load balancer keeps what it has: {why}"] * 2


def test_nothing_is_read_after_a_change_of_a_listener(account: Balancing) -> None:
    running = start(account)
    changed(running.cluster, prefixed({"scheduler": "rr"}))

    running.settle()

    assert calls(account) == ["SetLoadBalancerTCPListenerAttribute"]


def test_a_deletion_is_read_before_and_not_after_and_done_at_once(account: Balancing) -> None:
    running = start(account)

    running.cluster.delete_service()
    running.handle()

    assert not running.cluster.objects["services"]
    checks = ["DescribeLoadBalancerAttribute", "DescribeLoadBalancerListeners", "DescribeVServerGroups"]
    assert calls(account) == sorted([*checks, *DELETE])


def test_many_load_balancers_read_by_id_cost_one_list_of_their_groups(account: Balancing) -> None:
    cluster = account.cluster()
    for number in range(5):
        cluster.put(service(name=f"web-{number}"))
    running = Running(account, cluster).settle()
    found = running.cloud.load_balancers.read()
    account.calls()

    assert running.cloud.load_balancers.read((), {lb.id for lb in found}) == found

    assert account.calls() == {
        "slb.DescribeLoadBalancers": 1,
        "slb.DescribeLoadBalancerListeners": 1,
        "slb.ListTagResources": 1,
    }


def test_a_change_of_https_takes_the_fewest_calls(account: Balancing) -> None:
    running = start(account, {**HTTPS, "domain-extensions": "a.example.com:cert-a"}, port(443))

    running.apply(service({**HTTPS, "domain-extensions": "a.example.com:cert-b"}, port(443)))
    assert writes(account) == ["SetDomainExtensionAttribute"]
    assert only(account, "domain extension")["ServerCertificateId"] == "cert-b"
    running.apply(service({**HTTPS, "cert-id": "cert-2", "domain-extensions": "b.example.com:cert-b"}, port(443)))
    assert writes(account) == [
        "CreateDomainExtension",
        "DeleteDomainExtension",
        "SetLoadBalancerHTTPSListenerAttribute",
    ]


def test_an_https_port_to_which_another_redirects_may_become_another_protocol(account: Balancing) -> None:
    ports = port(443), port(8080)
    https = {"protocol-port": "https:443,http:8080", "cert-id": "cert-1", "forward-port": "8080:443"}
    running = start(account, https, *ports)

    running.apply(service({}, *ports))

    assert [(each["protocol"], each["status"]) for each in account.objects(LISTENER)] == [("tcp", "running")] * 2
    running.apply(service(https, *ports))
    assert {each["protocol"] for each in account.objects(LISTENER)} == {"http", "https"}


def test_a_port_that_stops_redirecting_outlives_the_https_port_to_which_it_did(account: Balancing) -> None:
    ports, http = (port(8080), port(443)), {"protocol-port": "http:8080"}
    https = {"protocol-port": "https:443,http:8080", "cert-id": "cert-1", "forward-port": "8080:443"}
    running = start(account, https, *ports)

    running.apply(service(prefixed(http), *ports))

    assert {(each["port"], each["protocol"]) for each in account.objects(LISTENER)} == {(8080, "http"), (443, "tcp")}


def test_a_udp_port_of_the_same_number_leaves_a_redirection_alone(account: Balancing) -> None:
    https = {"protocol-port": "https:443,http:80", "cert-id": "cert-1", "forward-port": "80:443"}
    running = start(account, https, port(80), port(443))

    running.apply(service(prefixed(https), port(80), port(443), port(443, "UDP")))

    assert {(each["port"], each["protocol"]) for each in account.objects(LISTENER)} == {
        (80, "http"),
        (443, "https"),
        (443, "udp"),
    }


def test_a_port_that_redirects_goes_before_a_younger_one_to_which_it_does(account: Balancing) -> None:
    running = start(account, {"protocol-port": "http:80"}, port(80))
    https = {"protocol-port": "https:443,http:80", "cert-id": "cert-1", "forward-port": "80:443"}
    running.apply(service(prefixed(https), port(80), port(443)))

    running.apply(service({}, port(8080)))

    assert [each["port"] for each in account.objects(LISTENER)] == [8080]


def test_a_change_to_what_the_cloud_cannot_do_is_an_error_that_says_so(account: Balancing) -> None:
    running = start(account)
    changed(running.cluster, prefixed({"instance-charge-type": "PayBySpec"}))

    with pytest.raises(InvalidConfiguration, match="does not change a load balancer from PayByCLCU to PayBySpec"):
        running.handle()

    assert [action for action in writes(account) if action.startswith("Modify")] == []


def test_a_node_that_comes_or_goes_takes_one_call_a_port(account: Balancing) -> None:
    running = start(account, {}, port(80), port(443))

    account.add_node(running.cluster, "n4")
    running.take_nodes()
    running.settle(rounds=1)
    assert writes(account) == ["AddVServerGroupBackendServers"] * 2
    del running.cluster.objects["nodes"]["n1"]
    running.take_nodes()
    running.settle(rounds=1)
    assert writes(account) == ["RemoveVServerGroupBackendServers"] * 2


def test_a_port_that_leaves_takes_its_listener_and_group_along(account: Balancing) -> None:
    running = start(account, {}, port(80), port(443))

    running.apply(service({}, port(80), port(8443)))

    assert writes(account) == sorted([*ONE_PORT, "DeleteLoadBalancerListener", "DeleteVServerGroup"])


# --------------------------------------------------------------------------------------------------- changes by hand


@pytest.mark.parametrize(
    ("kind", "changes", "made"),
    [
        (LISTENER, {"status": "stopped"}, ["StartLoadBalancerListener"]),
        (LISTENER, {"Scheduler": "rr"}, ["SetLoadBalancerTCPListenerAttribute"]),
        (LISTENER, {"tags": {}}, ["TagResources"]),
        (GROUP, {"backends": []}, ["AddVServerGroupBackendServers"]),
        (GROUP, {"tags": {}}, ["TagResources"]),
        (CLB, {"delete_protection": "off"}, ["SetLoadBalancerDeleteProtection"]),
        (CLB, {"name": "other"}, ["SetLoadBalancerName"]),
    ],
)
def test_a_change_by_hand_is_put_right_without_a_change_of_the_service(
    account: Balancing, kind: str, changes: dict[str, Any], made: list[str]
) -> None:
    cluster = start(account).cluster
    alter(account, kind, **changes)

    Running(account, cluster).settle()

    assert writes(account) == made


# --------------------------------------------------------------------------------------------------- pods, addresses


def pods(running: Running, *numbers: int) -> None:
    nodes = sorted(running.cluster.objects["nodes"])
    slices = endpoint_slice(*(endpoint(f"192.168.0.{number}", nodes[number % 3]) for number in numbers))
    running.cluster.objects["endpointslices"]["default/web-1"] = slices
    running.take_slice(slices)


def test_a_pod_without_a_network_interface_waits_and_the_others_are_added(account: Balancing) -> None:
    running = Running(account, account.cluster())
    machine = account.objects(machines.INSTANCE)[0]["id"]
    with account.standin.changing() as world:
        machines.add_eni(world, account.vswitch, "eni-101", address="192.168.0.101", instance=machine)
    running.cluster.put(service({BACKEND_TYPE: "eni"}))
    pods(running, 101, 102)

    running.settle()

    waiting = "no network interface of vpc-cluster has the pod address 192.168.0.102 (yet)"
    assert any(reason == "Waiting" and waiting in message for reason, message in running.cluster.events)
    assert [each["ServerId"] for each in only(account, GROUP)["backends"]] == ["eni-101"]
    with account.standin.changing() as world:
        machines.add_eni(world, account.vswitch, "eni-102", address="192.168.0.102", instance=machine)
    running.settle()
    assert [each["ServerId"] for each in only(account, GROUP)["backends"]] == ["eni-101", "eni-102"]


def test_the_elastic_ip_of_an_internal_load_balancer_is_published(account: Balancing) -> None:
    running = start(account, {"address-type": "intranet", "external-ip-type": "eip"})
    lb = only(account, CLB)["id"]
    with account.standin.changing() as world:
        machines.add_eip(world, address="203.0.113.77", instance=lb, kind="SlbInstance")

    running.resync()
    running.settle()

    assert running.cluster.ingress == [{"ip": "203.0.113.77"}]
    running.cluster.put(service({"address-type": "intranet"}))
    running.settle()
    running.resync()
    running.settle()
    assert running.cluster.ingress == [{"ip": only(account, CLB)["address"]}]


def test_health_is_that_of_listeners(account: Balancing) -> None:
    running = start(account)
    lb, machine = only(account, CLB)["id"], only(account, GROUP)["backends"][0]["ServerId"]
    account.standin.world.unhealthy.add((machine, 30080))

    found = running.cloud.load_balancers.health(lb)

    assert found.pop(("tcp-80", machine, 30080)) is False
    assert [*found.values()] == [True, True]


@pytest.mark.parametrize(
    "cut",
    [
        lambda _: None,
        lambda backend: {**backend, "ServerHealthStatus": None},
        lambda backend: {**backend, "ServerHealthStatus": "unavailable"},
        lambda backend: {each: value for each, value in backend.items() if each != "ListenerPort"},
        lambda backend: {each: value for each, value in backend.items() if each not in ("ServerId", "ServerIp")},
    ],
)
def test_a_backend_that_the_api_says_nothing_of_is_neither_healthy_nor_unhealthy(
    account: Balancing, monkeypatch: pytest.MonkeyPatch, cut: Callable[[dict[str, Any]], dict[str, Any] | None]
) -> None:
    running = start(account)
    lb, machine = only(account, CLB)["id"], only(account, GROUP)["backends"][0]["ServerId"]

    def with_cut(answer: dict[str, Any]) -> dict[str, Any]:
        shown = answer["BackendServers"]["BackendServer"]
        left = [cut(each) if each["ServerId"] == machine else each for each in shown]
        return {"BackendServers": {"BackendServer": [each for each in left if each]}}

    change_answers(monkeypatch, running, with_cut)
    found = running.cloud.load_balancers.health(lb)

    assert len(found) == 2
    assert {*found.values()} == {True}
    assert machine not in {address for _, address, _ in found}


def test_an_answer_about_health_without_backends_says_nothing(
    account: Balancing, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start(account)
    change_answers(monkeypatch, running, lambda _: {})

    assert running.cloud.load_balancers.health(only(account, CLB)["id"]) == {}


def change_answers(
    monkeypatch: pytest.MonkeyPatch, running: Running, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Let the API answer differently about health."""
    call = running.cloud._client.call

    def changed(product: str, action: str, parameters: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = call(product, action, parameters)
        return change(answer) if action == "DescribeHealthStatus" else answer

    monkeypatch.setattr(running.cloud._client, "call", changed)


# ----------------------------------------------------------------------------------------------- reuse and preserving


def users_balancer(account: Balancing, *ports: int) -> str:
    """A load balancer that the user made, with listeners to a group of their own."""
    client = account.cloud()._client
    lb = str(client.call("slb", "CreateLoadBalancer", {"InstanceChargeType": "PayByCLCU"})["LoadBalancerId"])
    group = client.call("slb", "CreateVServerGroup", {"LoadBalancerId": lb, "VServerGroupName": "mine"})
    for number in ports:
        asked = {"LoadBalancerId": lb, "ListenerPort": number, "Bandwidth": -1, "Scheduler": "sch"}
        asked |= {"VServerGroupId": group["VServerGroupId"]}
        client.call("slb", "CreateLoadBalancerTCPListener", asked)
        client.call("slb", "StartLoadBalancerListener", {"LoadBalancerId": lb, "ListenerPort": number})
    account.calls()
    return lb


ANY = ServiceOptions(resync=300.0, sharing=Sharing.ANY)


def test_a_reused_load_balancer_gets_the_services_parts_and_loses_only_those(account: Balancing) -> None:
    lb = users_balancer(account, 8080)
    before = account.objects(CLB), account.objects(LISTENER), account.objects(GROUP)
    running = start(account, {"id": lb}, options=ANY)

    assert {each["port"] for each in account.objects(LISTENER)} == {80, 8080}
    assert account.objects(CLB) == before[0]
    running.cluster.delete_service()
    running.settle()

    assert writes(account) == ["DeleteLoadBalancerListener", "DeleteVServerGroup"]
    assert (account.objects(CLB), account.objects(LISTENER), account.objects(GROUP)) == before


def test_a_preserved_load_balancer_keeps_everything_but_its_owner(account: Balancing) -> None:
    running = start(account, {"preserve-lb-on-delete": "true"})
    before = only(account, CLB), only(account, LISTENER), only(account, GROUP)

    running.cluster.delete_service()
    running.settle()
    Running(account, running.cluster).settle()

    after = only(account, CLB), only(account, LISTENER), only(account, GROUP)
    for was, now in zip(before, after, strict=True):
        assert now == {**was, "tags": now["tags"]}
        assert now["tags"]["cloud-controller/preserved-from"] == "c-1/default/web"
        assert "kubernetes.io/service-uid" not in now["tags"]


# --------------------------------------------------------------------------------------- failures in between, waiting


def test_a_listener_that_cannot_be_given_back_is_not_taken_over(account: Balancing) -> None:
    lb = users_balancer(account, 80)
    alter(account, LISTENER, VServerGroupId="")
    before = only(account, LISTENER)
    running = Running(account, account.cluster(), options=ANY)

    with pytest.raises(InvalidConfiguration, match=r"could not be given back .* delete that listener"):
        running.apply(service({"id": lb, "force-override-listeners": "true"}))

    assert only(account, LISTENER) == before


@pytest.mark.parametrize("action", ["CreateVServerGroup", "CreateLoadBalancerTCPListener"])
@pytest.mark.parametrize("error", [NotFound, Conflict])
def test_a_part_that_is_refused_makes_no_second_load_balancer(
    account: Balancing, action: str, error: type[Exception]
) -> None:
    running = Running(account, account.cluster())
    client = running.cloud._client
    call = client.call
    refusal = Refusal("InvalidLoadBalancerId.NotFound", "words", 400, "r-1")

    def failing(product: str, name: str, parameters: Any) -> Any:
        if name == action:
            client.call = call
            raise error("words") from refusal
        return call(product, name, parameters)

    client.call = failing
    with pytest.raises(Unavailable):
        running.apply(service())
    running.resync()
    running.settle()

    assert len(account.objects(CLB)) == 1
    assert only(account, LISTENER)["status"] == "running"


def test_changes_wait_while_a_load_balancer_is_configured(account: Balancing) -> None:
    account.standin.world.clb_settles = 0.2
    running = Running(account, account.cluster())

    running.apply(service())

    assert only(account, LISTENER)["status"] == "running"
    assert not [each for each in running.cluster.events if "onfiguring" in str(each)]


@pytest.mark.parametrize(
    ("before", "after", "anew"),
    [
        ({}, {"scheduler": "sch"}, True),
        ({"scheduler": "sch"}, {"scheduler": "tch"}, True),
        ({"scheduler": "sch"}, {}, False),
        ({"scheduler": "rr"}, {}, False),
    ],
)
def test_a_listener_is_made_anew_only_for_a_scheduler_that_the_cloud_does_not_change_to(
    account: Balancing, before: dict[str, str], after: dict[str, str], anew: bool
) -> None:
    running = start(account, before)

    running.apply(service(after))

    assert only(account, LISTENER)["Scheduler"] == after.get("scheduler", "wrr")
    assert ("DeleteLoadBalancerListener" in writes(account)) is anew
    assert not running.plan().changes


def test_a_udp_listener_is_made_anew_for_session_affinity_and_without(account: Balancing) -> None:
    ports = [port(53, "UDP")]
    running = start(account, {}, *ports)
    for affinity, scheduler in (("ClientIP", "sch"), ("None", "wrr")):
        running.apply(service({}, *ports, sessionAffinity=affinity))

        assert only(account, LISTENER)["Scheduler"] == scheduler
        assert "DeleteLoadBalancerListener" in writes(account)


def test_an_empty_annotation_does_not_block_the_deletion(account: Balancing) -> None:
    running = start(account, {"preserve-lb-on-delete": ""})

    running.cluster.delete_service()
    running.settle()

    assert not account.objects(CLB)


def test_a_pod_serves_whatever_labels_its_node_has(account: Balancing) -> None:
    running = Running(account, account.cluster())
    machine = account.objects(machines.INSTANCE)[0]["id"]
    with account.standin.changing() as world:
        machines.add_eni(world, account.vswitch, "eni-101", address="192.168.0.101", instance=machine)
    running.cluster.put(service({BACKEND_TYPE: "eni", "remove-unscheduled-backend": "on", "backend-label": "pool=a"}))
    pods(running, 101)

    running.settle()

    assert [each["ServerId"] for each in only(account, GROUP)["backends"]] == ["eni-101"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"address-type": "intranet"}, {"address-type": "internet"}),
        ({"address-type": "intranet", "ip": "192.168.0.77"}, {"address-type": "internet"}),
        ({}, {"address-type": "intranet", "ip": "192.168.0.77"}),
    ],
)
def test_an_address_waits_for_an_acknowledgement_and_a_listener_does_not(
    account: Balancing, before: dict[str, str], after: dict[str, str]
) -> None:
    options = ServiceOptions(address_changes=AddressChanges.ACKNOWLEDGE)
    running = start(account, before, options=options)
    old = only(account, CLB)

    running.cluster.put(service({**after, "name": "renamed"}, port(80), port(81)))
    running.settle()

    assert (only(account, CLB)["id"], only(account, CLB)["name"]) == (old["id"], "renamed")
    assert sorted(each["port"] for each in account.objects(LISTENER)) == [80, 81]
    (held,) = running.plan(address_changes=AddressChanges.ACKNOWLEDGE).held
    changed(running.cluster, {ANNOTATION: held.held or ""})
    running.settle()
    assert only(account, CLB)["id"] != old["id"]


# ------------------------------------------------------------------------------------- a node whose machine is gone


def set_status(account: Balancing, machine: str, status: str) -> None:
    with account.standin.changing() as world:
        world.fill(machines.INSTANCE, machine, status=status)


def backends(account: Balancing) -> dict[str, set[str]]:
    return {each["name"]: {server["ServerId"] for server in each["backends"]} for each in account.objects(GROUP)}


def test_a_bug_after_the_creation_is_told_and_makes_no_second_load_balancer(
    account: Balancing, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(account, account.cluster())
    running.cluster.put(service())
    with monkeypatch.context() as patched:
        patched.setattr(Changes, "_with_parts", mock.Mock(side_effect=KeyError("a bug")))
        with pytest.raises(KeyError):
            running.handle()
    assert "SyncLoadBalancerFailed" in running.cluster.reasons
    assert writes(account) == [CREATE]

    running.settle()

    assert CREATE not in writes(account)
    assert not running.plan().changes


def test_it_is_told_once_although_each_refusal_has_another_request(account: Balancing) -> None:
    cluster = account.cluster()
    account.release(account.add_node(cluster, "dead"))
    cluster.make_ready("dead")
    running = served(account, cluster, service())
    events = [*cluster.events]
    account.calls()

    running.resync()
    running.settle()

    assert calls(account).count("AddVServerGroupBackendServers") == 1
    assert cluster.events == events


@pytest.mark.parametrize("moved", [False, True], ids=["ready", "ready with another address"])
def test_a_stopped_machine_joins_once_its_node_is_ready_again(account: Balancing, moved: bool) -> None:
    cluster = account.cluster()
    stopped = account.add_node(cluster, "stopped")
    set_status(account, stopped, "Stopped")
    running = served(account, cluster, service())
    account.calls()
    running.take_nodes()
    running.settle()
    assert calls(account) == []

    set_status(account, stopped, "Running")
    node = cluster.objects["nodes"]["stopped"]
    ready = {**node, "status": {**node["status"], "conditions": [{"type": "Ready", "status": "True"}]}}
    if moved:
        ready["status"]["addresses"] = [*node["status"]["addresses"], {"type": "Hostname", "address": "stopped"}]
    running.controller._node_changed(EventType.MODIFIED, node, ready)
    running.settle()

    assert calls(account) == ["AddVServerGroupBackendServers"]
    assert {len(each) for each in backends(account).values()} == {4}


def test_nor_does_a_stopped_one_keep_the_weights_of_others_as_they_were(account: Balancing) -> None:
    cluster = account.cluster()
    pods = [endpoint(f"192.168.0.20{number}", node) for number, node in enumerate(("n1", "n2", "n3", "n1", "n2"))]
    cluster.put_slice(endpoint_slice(*pods[:3]))
    running = served(account, cluster, service({}, externalTrafficPolicy="Local", healthCheckNodePort=32000))
    stopped, other = (cluster.objects["nodes"][node]["spec"]["providerID"].split(".", 1)[1] for node in ("n1", "n2"))
    set_status(account, stopped, "Stopped")

    running.take_slice(endpoint_slice(*pods), endpoint_slice(*pods[:3]))
    running.settle()

    before, after = (
        next(b["Weight"] for b in only(account, GROUP)["backends"] if b["ServerId"] == of) for of in (stopped, other)
    )
    assert after > before


def test_a_backend_whose_machine_is_gone_keeps_no_other_from_leaving(account: Balancing) -> None:
    cluster = account.cluster()
    running = served(account, cluster, service())
    for name in ("n1", "n2"):
        del cluster.objects["nodes"][name]
    running.take_nodes()
    # As issue 730 of Alibaba's Terraform provider shows, the API may refuse the removal, too, and name none.
    refused = StandInRefusal(400, "ObtainIpFail", "some of the backend servers do not exist or are not running.")
    account.standin.faults.add(Fault("slb.RemoveVServerGroupBackendServers", error=refused, count=2))

    running.settle()

    assert {len(each) for each in backends(account).values()} == {2}


def test_a_backend_whose_removal_was_refused_is_sent_when_its_node_comes_back(account: Balancing) -> None:
    cluster = account.cluster()
    running = served(account, cluster, service())
    node = cluster.objects["nodes"].pop("n1")
    refused = StandInRefusal(400, "ObtainIpFail", "some of the backend servers do not exist or are not running.")
    account.standin.faults.add(Fault("slb.RemoveVServerGroupBackendServers", error=refused, count=1))
    running.take_nodes()
    running.settle()
    account.calls()

    cluster.objects["nodes"]["n1"] = node
    running.take_nodes()
    running.settle()

    assert "AddVServerGroupBackendServers" in calls(account)
