"""CLB: what creates, changes and deletes; what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.alicloud import machines
from local.alicloud.clb_certificates import add_certificate
from tests.local.alicloud.caller import Refused, call
from tests.local.alicloud.conftest import Site


def balancer(site: Site, **more: Any) -> str:
    parameters = {"InstanceChargeType": "PayByCLCU", "LoadBalancerName": "a1", **more}
    return str(call(site.cloud, "slb.CreateLoadBalancer", **parameters)["LoadBalancerId"])


def attribute(site: Site, lb: str) -> dict[str, Any]:
    return call(site.cloud, "slb.DescribeLoadBalancerAttribute", LoadBalancerId=lb)


def backends(*servers: str, **more: Any) -> str:
    return json.dumps([{"ServerId": each, "Port": 30080, "Weight": 100, "Type": "ecs", **more} for each in servers])


def group(site: Site, lb: str, *servers: str) -> str:
    answer = call(
        site.cloud,
        "slb.CreateVServerGroup",
        LoadBalancerId=lb,
        VServerGroupName="k8s/80",
        BackendServers=backends(*servers),
    )
    return str(answer["VServerGroupId"])


def listener(site: Site, lb: str, protocol: str = "TCP", port: int = 80, **more: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = {"LoadBalancerId": lb, "ListenerPort": port, "Bandwidth": -1, **more}
    if protocol.startswith("HTTP"):
        parameters.setdefault("HealthCheck", "off")
    call(site.cloud, f"slb.CreateLoadBalancer{protocol}Listener", **parameters)
    return described(site, lb, protocol, port)


def described(site: Site, lb: str, protocol: str, port: int = 80) -> dict[str, Any]:
    operation = f"slb.DescribeLoadBalancer{protocol}ListenerAttribute"
    return call(site.cloud, operation, LoadBalancerId=lb, ListenerPort=port)


def refused(site: Site, operation: str, **parameters: Any) -> str:
    before = site.cloud.world.store.snapshot()
    with pytest.raises(Refused) as error:
        call(site.cloud, operation, **parameters)
    assert site.cloud.world.store.snapshot() == before
    return error.value.code


def test_a_load_balancer_is_made_with_its_tags_and_found_by_them(site: Site) -> None:
    lb = balancer(site, Tag=[{"Key": "owner", "Value": "c-1"}], DeleteProtection="on")
    balancer(site, LoadBalancerName="other")

    found = call(site.cloud, "slb.DescribeLoadBalancers", Tag=[{"Key": "owner", "Value": "c-1"}])
    older = call(site.cloud, "slb.DescribeLoadBalancers", Tags='[{"TagKey": "owner", "TagValue": "c-1"}]')

    assert [each["LoadBalancerId"] for each in found["LoadBalancers"]["LoadBalancer"]] == [lb]
    assert found["LoadBalancers"] == older["LoadBalancers"]
    assert attribute(site, lb)["DeleteProtection"] == "on"


def test_an_intranet_load_balancer_takes_an_address_of_its_vswitch(site: Site) -> None:
    vswitch = site.vswitches["cn-hangzhou-k"]

    lb = balancer(site, AddressType="intranet", VSwitchId=vswitch, Address="192.168.1.77")

    assert attribute(site, lb)["Address"] == "192.168.1.77"
    assert attribute(site, lb)["VpcId"] == site.vpc
    taken = {"InstanceChargeType": "PayByCLCU", "AddressType": "intranet", "VSwitchId": vswitch}
    assert refused(site, "slb.CreateLoadBalancer", **taken, Address="192.168.1.77") == "InvalidParameter"
    assert refused(site, "slb.CreateLoadBalancer", **taken, Address="10.0.0.1") == "InvalidParameter"


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({}, "MissingParam.LoadBalancerSpec"),
        ({"InstanceChargeType": "PayByCLCU", "AddressType": "intranet"}, "MissingParam.VSwitchId"),
        ({"InstanceChargeType": "PayByCLCU", "VSwitchId": "vsw-none"}, "VSwitchNotExist"),
        (
            {"InstanceChargeType": "PayByCLCU", "InternetChargeType": "paybybandwidth", "Bandwidth": 5},
            "Instance.InternetChargeTypeNotAllowed",
        ),
        ({"LoadBalancerSpec": "slb.s1.small", "InternetChargeType": "paybybandwidth"}, "InvalidParameter.Bandwidth"),
        ({"LoadBalancerSpec": "slb.s9.huge"}, "InvalidParameter"),
        ({"LoadBalancerSpec": "slb.s1.small", "LoadBalancerName": "1"}, "InvalidParameter"),
        ({"LoadBalancerSpec": "slb.s1.small", "Bandwidth": 5121}, "InvalidParameter"),
        ({"LoadBalancerSpec": "slb.s1.small", "Tag": [{"Key": "acs:a", "Value": "b"}]}, "InvalidParam.TagKey"),
        ({"LoadBalancerSpec": "slb.s1.small", "Tag": [{"Key": str(n)} for n in range(21)]}, "SizeLimitExceeded.Tag"),
    ],
)
def test_a_load_balancer_that_the_cloud_would_not_make_is_refused(
    site: Site, parameters: dict[str, Any], code: str
) -> None:
    assert refused(site, "slb.CreateLoadBalancer", **parameters) == code


def test_a_vswitch_without_free_addresses_is_refused(site: Site) -> None:
    with site.cloud.changing() as account:
        full = machines.add_vswitch(account, site.vpc, "cn-hangzhou-k", "192.168.9.0/24", addresses=0)

    parameters = {"InstanceChargeType": "PayByCLCU", "AddressType": "intranet", "VSwitchId": full}
    assert refused(site, "slb.CreateLoadBalancer", **parameters) == "VSwitchAvailableIpNotExist"


def test_deletion_protection_refuses_the_deletion(site: Site) -> None:
    lb = balancer(site, DeleteProtection="on")
    assert refused(site, "slb.DeleteLoadBalancer", LoadBalancerId=lb) == "OperationDenied.DeleteProtectionIsOn"

    call(site.cloud, "slb.SetLoadBalancerDeleteProtection", LoadBalancerId=lb, DeleteProtection="off")
    call(site.cloud, "slb.DeleteLoadBalancer", LoadBalancerId=lb)

    assert refused(site, "slb.DescribeLoadBalancerAttribute", LoadBalancerId=lb) == "InvalidLoadBalancerId.NotFound"


def test_the_payment_changes_to_clcu_alone_which_has_no_specification(site: Site) -> None:
    of_it = {"LoadBalancerId": balancer(site, InstanceChargeType="PayByCLCU"), "LoadBalancerSpec": "slb.s1.small"}

    back = {**of_it, "InstanceChargeType": "PayBySpec"}
    assert refused(site, "slb.ModifyLoadBalancerInstanceChargeType", **back) == "InvalidParameter"
    assert refused(site, "slb.ModifyLoadBalancerInstanceSpec", **of_it) == "ActionNotAllowed"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no json", "BackendServersMalformed"),
        ('[{"ServerId": "i-none", "Port": 80}]', "InvalidServerId.NotFound"),
        ('[{"ServerId": "i-none"}]', "InvalidParameter"),
        ('[{"ServerId": "i-none", "Port": 0}]', "InvalidParameter"),
        ('[{"ServerId": "i-none", "Port": 80, "Weight": 101}]', "InvalidParameter"),
        ('[{"ServerId": "i-none", "Port": 80, "Colour": "red"}]', "InvalidParameter"),
        (json.dumps([{"ServerId": "i-none", "Port": 80}] * 21), "TooManyBackendServers"),
    ],
)
def test_backends_that_the_cloud_would_not_take_are_refused(site: Site, text: str, code: str) -> None:
    rsp = group(site, balancer(site))

    assert refused(site, "slb.AddVServerGroupBackendServers", VServerGroupId=rsp, BackendServers=text) == code


def test_a_server_that_does_not_run_and_an_interface_without_the_address_are_refused(site: Site) -> None:
    rsp = group(site, balancer(site))
    with site.cloud.changing() as account:
        machines.set_instance(account, site.machines[0], status="Stopped")
        eni = machines.add_eni(account, site.vswitches["cn-hangzhou-h"], address="192.168.0.99")
    of_it = {"VServerGroupId": rsp}

    add = "slb.AddVServerGroupBackendServers"
    assert refused(site, add, **of_it, BackendServers=backends(site.machines[0])) == "ObtainIpFail"
    wrong = backends(eni, Type="eni", ServerIp="192.168.0.98")
    assert refused(site, add, **of_it, BackendServers=wrong) == "ObtainIpFail"
    call(site.cloud, add, **of_it, BackendServers=backends(eni, Type="eni", ServerIp="192.168.0.99"))


def test_a_group_that_a_listener_uses_is_not_deleted(site: Site) -> None:
    lb = balancer(site)
    rsp = group(site, lb)
    listener(site, lb, VServerGroupId=rsp)
    assert refused(site, "slb.DeleteVServerGroup", VServerGroupId=rsp) == "RspoolVipExist"

    call(site.cloud, "slb.DeleteLoadBalancerListener", LoadBalancerId=lb, ListenerPort=80)
    call(site.cloud, "slb.DeleteVServerGroup", VServerGroupId=rsp)

    assert call(site.cloud, "slb.DescribeVServerGroups", LoadBalancerId=lb)["VServerGroups"]["VServerGroup"] == []


@pytest.mark.parametrize(
    ("protocol", "wrong", "code"),
    [
        ("TCP", {"EstablishedTimeout": 9}, "InvalidParameter"),
        ("TCP", {"EstablishedTimeout": 901}, "InvalidParameter"),
        ("TCP", {"Scheduler": "wlc"}, "InvalidParameter"),
        ("TCP", {"ConnectionDrain": "on"}, "MissingParam.ConnectionDrainTimeout"),
        ("TCP", {"AclStatus": "on"}, "MissingParam.AclId"),
        ("TCP", {"AclStatus": "on", "AclId": "acl-none", "AclType": "white"}, "AclNotExist"),
        ("TCP", {"ListenerPort": 65536}, "InvalidParameter"),
        ("TCP", {"VServerGroupId": "rsp-none"}, "InvalidParameter"),
        ("UDP", {"ConnectionDrain": "on"}, "UnknownParameter"),
        ("HTTP", {"IdleTimeout": 61}, "InvalidParameter"),
        ("HTTP", {"Scheduler": "sch"}, "InvalidParameter"),
        ("HTTP", {"StickySession": "on"}, "MissingParam.StickySessionType"),
        ("HTTP", {"StickySession": "on", "StickySessionType": "insert"}, "MissingParam.CookieTimeout"),
        ("HTTP", {"StickySession": "on", "StickySessionType": "server"}, "MissingParam.Cookie"),
        ("HTTP", {"ListenerForward": "on"}, "MissingParam.ForwardPort"),
        ("HTTP", {"ListenerForward": "on", "ForwardPort": 443}, "ListenerNotFound"),
        ("HTTPS", {}, "MissingParam.ServerCertificateId"),
        ("HTTPS", {"ServerCertificateId": "none"}, "CertificateNotExist"),
    ],
)
def test_a_listener_that_the_cloud_would_not_make_is_refused(
    site: Site, protocol: str, wrong: dict[str, Any], code: str
) -> None:
    lb = balancer(site)
    right = {"LoadBalancerId": lb, "ListenerPort": 80, "Bandwidth": -1, "VServerGroupId": group(site, lb)}
    check = {"HealthCheck": "off"} if protocol.startswith("HTTP") else {}

    assert refused(site, f"slb.CreateLoadBalancer{protocol}Listener", **{**right, **check, **wrong}) == code


def test_tcp_and_udp_share_a_port_and_tcp_and_http_do_not(site: Site) -> None:
    lb = balancer(site)
    rsp = group(site, lb)
    listener(site, lb, "TCP", VServerGroupId=rsp)
    listener(site, lb, "UDP", VServerGroupId=rsp)

    same = {"LoadBalancerId": lb, "ListenerPort": 80, "VServerGroupId": rsp, "HealthCheck": "off"}
    assert refused(site, "slb.CreateLoadBalancerHTTPListener", **same) == "ListenerAlreadyExists"
    start = {"LoadBalancerId": lb, "ListenerPort": 80}
    assert refused(site, "slb.StartLoadBalancerListener", **start) == "MissingListenerProtocol"
    call(site.cloud, "slb.StartLoadBalancerListener", **start, ListenerProtocol="udp")


def test_a_load_balancer_has_at_most_its_quota_of_listeners(site: Site) -> None:
    lb = balancer(site)
    rsp = group(site, lb)
    site.cloud.world.quotas.listeners = 2
    for port in (80, 81):
        listener(site, lb, port=port, VServerGroupId=rsp)

    more = {"LoadBalancerId": lb, "ListenerPort": 82, "Bandwidth": -1, "VServerGroupId": rsp}
    assert refused(site, "slb.CreateLoadBalancerTCPListener", **more) == "VipTooManyListeners"


def test_an_http_listener_forwards_to_an_https_one_which_then_stays(site: Site) -> None:
    with site.cloud.changing() as account:
        certificate = add_certificate(account)
    lb = balancer(site)
    rsp = group(site, lb)
    listener(site, lb, "HTTPS", 443, VServerGroupId=rsp, ServerCertificateId=certificate)
    listener(site, lb, "HTTP", 80, ListenerForward="on", ForwardPort=443)

    delete = {"LoadBalancerId": lb, "ListenerPort": 443}
    assert refused(site, "slb.DeleteLoadBalancerListener", **delete) == "ListenerForwardExist"


def test_a_load_balancer_that_is_being_configured_refuses_changes(site: Site) -> None:
    lb = balancer(site)
    site.cloud.world.clb_settles = 1.0
    call(site.cloud, "slb.SetLoadBalancerName", LoadBalancerId=lb, LoadBalancerName="b")

    again = {"LoadBalancerId": lb, "LoadBalancerName": "c"}
    assert refused(site, "slb.SetLoadBalancerName", **again) == "BackendServer.configuring"
    site.clock.now += 1.0
    call(site.cloud, "slb.SetLoadBalancerName", **again)
