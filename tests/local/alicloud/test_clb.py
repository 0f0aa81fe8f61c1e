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


def test_listeners_and_groups_go_with_their_load_balancer(site: Site) -> None:
    lb = balancer(site)
    rsp = group(site, lb, *site.machines)
    listener(site, lb, VServerGroupId=rsp)

    call(site.cloud, "slb.DeleteLoadBalancer", LoadBalancerId=lb)

    assert refused(site, "slb.DescribeVServerGroupAttribute", VServerGroupId=rsp) == "InvalidParameter"
    assert call(site.cloud, "slb.DescribeLoadBalancerListeners")["Listeners"] == []


def test_name_protection_and_payment_change(site: Site) -> None:
    lb = balancer(site, InstanceChargeType="PayBySpec", LoadBalancerSpec="slb.s1.small")
    of_it = {"LoadBalancerId": lb}
    on = {"ModificationProtectionStatus": "ConsoleProtection", "ModificationProtectionReason": "managed.by.us"}

    call(site.cloud, "slb.SetLoadBalancerName", **of_it, LoadBalancerName="b2")
    call(site.cloud, "slb.SetLoadBalancerModificationProtection", **of_it, **on)
    call(site.cloud, "slb.ModifyLoadBalancerInstanceSpec", **of_it, LoadBalancerSpec="slb.s3.large")
    call(site.cloud, "slb.ModifyLoadBalancerInternetSpec", **of_it, InternetChargeType="paybybandwidth", Bandwidth=7)

    shown = attribute(site, lb)
    assert (shown["LoadBalancerName"], shown["LoadBalancerSpec"], shown["Bandwidth"]) == ("b2", "slb.s3.large", 7)
    assert shown["ModificationProtectionReason"] == "managed.by.us"
    off = {"ModificationProtectionStatus": "NonProtection"}
    call(site.cloud, "slb.SetLoadBalancerModificationProtection", **of_it, **off)
    call(site.cloud, "slb.ModifyLoadBalancerInstanceChargeType", **of_it, InstanceChargeType="PayByCLCU")
    shown = attribute(site, lb)
    assert (shown["ModificationProtectionReason"], shown["LoadBalancerSpec"]) == ("", "")
    assert (shown["InstanceChargeType"], shown["InternetChargeType"]) == ("PayByCLCU", "paybytraffic")
    back = {**of_it, "InstanceChargeType": "PayBySpec", "LoadBalancerSpec": "slb.s1.small"}
    assert refused(site, "slb.ModifyLoadBalancerInstanceChargeType", **back) == "InvalidParameter"
    assert (
        refused(site, "slb.ModifyLoadBalancerInstanceSpec", **of_it, LoadBalancerSpec="slb.s1.small")
        == "ActionNotAllowed"
    )


def test_backends_are_added_changed_and_removed(site: Site) -> None:
    lb = balancer(site)
    rsp = group(site, lb, site.machines[0])
    of_it = {"VServerGroupId": rsp}

    call(site.cloud, "slb.AddVServerGroupBackendServers", **of_it, BackendServers=backends(*site.machines[1:]))
    call(site.cloud, "slb.SetVServerGroupAttribute", **of_it, BackendServers=backends(site.machines[0], Weight=10))
    call(site.cloud, "slb.RemoveVServerGroupBackendServers", **of_it, BackendServers=backends(site.machines[2]))

    found = call(site.cloud, "slb.DescribeVServerGroupAttribute", **of_it)["BackendServers"]["BackendServer"]
    assert [(each["ServerId"], each["Weight"]) for each in found] == [(site.machines[0], 10), (site.machines[1], 100)]
    (shown,) = call(site.cloud, "slb.DescribeVServerGroups", LoadBalancerId=lb)["VServerGroups"]["VServerGroup"]
    assert shown["ServerCount"] == 2


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


@pytest.mark.parametrize("protocol", ["TCP", "UDP", "HTTP"])
def test_a_new_listener_is_stopped_and_has_the_defaults_of_its_protocol(site: Site, protocol: str) -> None:
    lb = balancer(site)

    made = listener(site, lb, protocol, VServerGroupId=group(site, lb))

    assert (made["Status"], made["Scheduler"]) == ("stopped", "wrr")
    assert (made["HealthyThreshold"], made["UnhealthyThreshold"]) == (3, 3)
    call(site.cloud, "slb.StartLoadBalancerListener", LoadBalancerId=lb, ListenerPort=80)
    assert described(site, lb, protocol)["Status"] == "running"
    call(site.cloud, "slb.StopLoadBalancerListener", LoadBalancerId=lb, ListenerPort=80)
    assert described(site, lb, protocol)["Status"] == "stopped"


def test_setting_a_listener_changes_what_is_given_alone(site: Site) -> None:
    lb = balancer(site)
    rsp = group(site, lb)
    listener(site, lb, VServerGroupId=rsp, healthCheckInterval=7, Scheduler="rr")
    set_ = "slb.SetLoadBalancerTCPListenerAttribute"

    call(site.cloud, set_, LoadBalancerId=lb, ListenerPort=80, PersistenceTimeout=60, HealthCheckSwitch="off")

    shown = described(site, lb, "TCP")
    assert (shown["PersistenceTimeout"], shown["HealthCheck"], shown["Scheduler"]) == (60, "off", "rr")
    assert shown["HealthCheckInterval"] == 7
    of_it = {"LoadBalancerId": lb, "ListenerPort": 80, "VServerGroupId": rsp}
    assert refused(site, set_, **of_it) == "MissingParam.VServerGroup"


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


def test_an_https_listener_has_further_certificates_by_domain(site: Site) -> None:
    with site.cloud.changing() as account:
        first, second = (add_certificate(account)["id"] for _ in range(2))
    lb = balancer(site)
    listener(site, lb, "HTTPS", 443, VServerGroupId=group(site, lb), ServerCertificateId=first)
    of_it = {"LoadBalancerId": lb, "ListenerPort": 443}

    made = call(site.cloud, "slb.CreateDomainExtension", **of_it, Domain="a.example.com", ServerCertificateId=second)
    id_ = {"DomainExtensionId": made["DomainExtensionId"]}

    assert (
        refused(site, "slb.DeleteServerCertificate", ServerCertificateId=second) == "CertificateAndPrivateKeyIsRefered"
    )
    call(site.cloud, "slb.SetDomainExtensionAttribute", **id_, ServerCertificateId=first)
    (shown,) = call(site.cloud, "slb.DescribeDomainExtensions", **of_it)["DomainExtensions"]["DomainExtension"]
    assert shown == {**id_, "Domain": "a.example.com", "ServerCertificateId": first}
    call(site.cloud, "slb.DeleteDomainExtension", **id_)
    assert "DomainExtensions" in described(site, lb, "HTTPS", 443)


def test_an_http_listener_forwards_to_an_https_one_which_then_stays(site: Site) -> None:
    with site.cloud.changing() as account:
        certificate = add_certificate(account)["id"]
    lb = balancer(site)
    rsp = group(site, lb)
    listener(site, lb, "HTTPS", 443, VServerGroupId=rsp, ServerCertificateId=certificate)
    listener(site, lb, "HTTP", 80, ListenerForward="on", ForwardPort=443)

    delete = {"LoadBalancerId": lb, "ListenerPort": 443}
    assert refused(site, "slb.DeleteLoadBalancerListener", **delete) == "ListenerForwardExist"


def test_an_access_control_list_is_used_by_a_listener(site: Site) -> None:
    acl = call(site.cloud, "slb.CreateAccessControlList", AclName="a")["AclId"]
    entries = json.dumps([{"entry": "10.0.0.0/8", "comment": "us"}, {"entry": "1.2.3.4/32"}])
    call(site.cloud, "slb.AddAccessControlListEntry", AclId=acl, AclEntrys=entries)
    call(site.cloud, "slb.RemoveAccessControlListEntry", AclId=acl, AclEntrys='[{"entry": "1.2.3.4/32"}]')
    lb = balancer(site)
    listener(site, lb, VServerGroupId=group(site, lb), AclStatus="on", AclId=acl, AclType="white")

    shown = call(site.cloud, "slb.DescribeAccessControlListAttribute", AclId=acl)

    assert shown["AclEntrys"]["AclEntry"] == [{"AclEntryIP": "10.0.0.0/8", "AclEntryComment": "us"}]
    assert shown["RelatedListeners"]["RelatedListener"][0]["LoadBalancerId"] == lb
    assert refused(site, "slb.DeleteAccessControlList", AclId=acl) == "AclInUsed"


def test_a_load_balancer_that_is_being_configured_refuses_changes(site: Site) -> None:
    lb = balancer(site)
    site.cloud.world.clb_settles = 1.0
    call(site.cloud, "slb.SetLoadBalancerName", LoadBalancerId=lb, LoadBalancerName="b")

    again = {"LoadBalancerId": lb, "LoadBalancerName": "c"}
    assert refused(site, "slb.SetLoadBalancerName", **again) == "BackendServer.configuring"
    site.clock.now += 1.0
    call(site.cloud, "slb.SetLoadBalancerName", **again)


def test_health_is_told_of_each_backend_of_running_listeners(site: Site) -> None:
    lb = balancer(site)
    rsp = group(site, lb, *site.machines)
    listener(site, lb, VServerGroupId=rsp)
    call(site.cloud, "slb.StartLoadBalancerListener", LoadBalancerId=lb, ListenerPort=80)
    site.cloud.world.unhealthy = {(site.machines[0], 0), (site.machines[1], 1)}

    found = call(site.cloud, "slb.DescribeHealthStatus", LoadBalancerId=lb)["BackendServers"]["BackendServer"]

    assert [each["ServerHealthStatus"] for each in found] == ["abnormal", "normal", "normal"]


def test_resources_are_tagged_and_untagged(site: Site) -> None:
    lb = balancer(site)
    rsp = group(site, lb)
    of_group = {"ResourceType": "vservergroup", "ResourceId": [rsp]}

    call(site.cloud, "slb.TagResources", **of_group, Tag=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    call(site.cloud, "slb.UntagResources", **of_group, TagKey=["a"])
    call(site.cloud, "slb.AddTags", LoadBalancerId=lb, Tags='[{"TagKey": "c", "TagValue": "3"}]')

    (tag,) = call(site.cloud, "slb.ListTagResources", **of_group)["TagResources"]["TagResource"]
    assert (tag["ResourceId"], tag["TagKey"], tag["TagValue"]) == (rsp, "b", "2")
    (tag,) = call(site.cloud, "slb.ListTagResources", ResourceType="instance", ResourceId=[lb])["TagResources"][
        "TagResource"
    ]
    assert tag["TagKey"] == "c"
    call(site.cloud, "slb.RemoveTags", LoadBalancerId=lb, Tags='[{"TagKey": "c", "TagValue": "3"}]')
    assert attribute(site, lb)["Tags"]["Tag"] == []
    wrong = {"ResourceType": "instance", "ResourceId": ["lb-none"], "Tag": [{"Key": "a"}]}
    assert refused(site, "slb.TagResources", **wrong) == "InvalidResourceId.NotFound"
