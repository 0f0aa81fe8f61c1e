"""NLB: changes are jobs; what is being changed refuses other changes."""

from __future__ import annotations

from typing import Any

import pytest

from local.alicloud import machines
from local.alicloud.clb_certificates import add_certificate
from local.standin.faults import Fault
from tests.local.alicloud.caller import Refused, call
from tests.local.alicloud.conftest import Site

JOB_SECONDS = 5.0


def zones(site: Site) -> list[dict[str, str]]:
    return [{"ZoneId": zone, "VSwitchId": vswitch} for zone, vswitch in site.vswitches.items()]


def settle(site: Site) -> None:
    """Let every job end."""
    site.clock.now += JOB_SECONDS
    with site.cloud.changing():
        """Whoever looks next finds them done."""


def balancer(site: Site, **more: Any) -> str:
    parameters = {"AddressType": "Internet", "VpcId": site.vpc, "ZoneMappings": zones(site), **more}
    made = call(site.cloud, "nlb.CreateLoadBalancer", **parameters)["LoadbalancerId"]
    settle(site)
    return str(made)


def group(site: Site, **more: Any) -> str:
    parameters = {"ServerGroupName": "k8s.80", "VpcId": site.vpc, "Protocol": "TCP", **more}
    made = call(site.cloud, "nlb.CreateServerGroup", **parameters)["ServerGroupId"]
    settle(site)
    return str(made)


def servers(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"ServerId": each, "ServerType": "Ecs", "Port": 30080, **more} for each in names]


def listener(site: Site, lb: str, sgp: str, **more: Any) -> str:
    parameters = {"LoadBalancerId": lb, "ServerGroupId": sgp, "ListenerProtocol": "TCP", "ListenerPort": 80, **more}
    made = call(site.cloud, "nlb.CreateListener", **parameters)["ListenerId"]
    settle(site)
    return str(made)


def attribute(site: Site, lb: str) -> dict[str, Any]:
    return call(site.cloud, "nlb.GetLoadBalancerAttribute", LoadBalancerId=lb)


def shown_group(site: Site, sgp: str) -> dict[str, Any]:
    (found,) = call(site.cloud, "nlb.ListServerGroups", ServerGroupIds=[sgp])["ServerGroups"]
    return dict(found)


def shown_servers(site: Site, sgp: str) -> list[tuple[str, int]]:
    found = call(site.cloud, "nlb.ListServerGroupServers", ServerGroupId=sgp)["Servers"]
    return [(each["ServerId"], each["Weight"]) for each in found]


def refused(site: Site, operation: str, **parameters: Any) -> str:
    before = site.cloud.world.store.snapshot()
    with pytest.raises(Refused) as error:
        call(site.cloud, operation, **parameters)
    assert site.cloud.world.store.snapshot() == before
    return error.value.code


def test_a_load_balancer_is_provisioned_then_active(site: Site) -> None:
    parameters = {"AddressType": "Internet", "VpcId": site.vpc, "ZoneMappings": zones(site), "LoadBalancerName": "a-1"}
    made = call(site.cloud, "nlb.CreateLoadBalancer", **parameters, Tag=[{"Key": "owner", "Value": "c-1"}])
    lb = made["LoadbalancerId"]

    assert attribute(site, lb)["LoadBalancerStatus"] == "Provisioning"
    change = {"LoadBalancerId": lb, "LoadBalancerName": "b-2"}
    assert refused(site, "nlb.UpdateLoadBalancerAttribute", **change) == "IncorrectStatus.loadbalancer"
    settle(site)
    assert attribute(site, lb)["LoadBalancerStatus"] == "Active"
    (found,) = call(site.cloud, "nlb.ListLoadBalancers", Tag=[{"Key": "owner", "Value": "c-1"}])["LoadBalancers"]
    assert found["LoadBalancerId"] == lb
    assert [each["ZoneId"] for each in found["ZoneMappings"]] == list(site.vswitches)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"VpcId": "vpc-none"}, "ResourceNotFound.Vpc"),
        ({"AddressType": "public"}, "IllegalParam.AddressType"),
        ({"LoadBalancerName": "a"}, "IllegalParam.LoadBalancerName"),
        ({"ZoneMappings": []}, "MissingZoneMappings"),
        ({"ZoneMappings": [{"ZoneId": "cn-hangzhou-h", "VSwitchId": "vsw-none"}]}, "IllegalParam.ZoneMappings"),
        ({"BandwidthPackageId": "cbwp-none"}, "ResourceNotFound.BandwidthPackage"),
    ],
)
def test_a_load_balancer_that_the_cloud_would_not_make_is_refused(site: Site, wrong: dict[str, Any], code: str) -> None:
    parameters = {"AddressType": "Internet", "VpcId": site.vpc, "ZoneMappings": zones(site), **wrong}

    assert refused(site, "nlb.CreateLoadBalancer", **parameters) == code


def test_a_zone_must_be_its_vswitches_and_not_come_twice(site: Site) -> None:
    first, second = zones(site)
    of_it = {"AddressType": "Internet", "VpcId": site.vpc}

    wrong = [first, {**second, "VSwitchId": first["VSwitchId"]}]
    assert refused(site, "nlb.CreateLoadBalancer", **of_it, ZoneMappings=wrong) == "Mismatch.ZoneIdAndVSwitchId"
    assert refused(site, "nlb.CreateLoadBalancer", **of_it, ZoneMappings=[first, first]) == "DuplicatedParam.ZoneId"


def test_zones_have_the_asked_addresses_and_elastic_ips(site: Site) -> None:
    with site.cloud.changing() as account:
        eip = machines.add_eip(account, address="198.51.100.9")
        other = machines.add_eip(account)
        third = machines.add_vswitch(account, site.vpc, "cn-hangzhou-j", "192.168.7.0/24")
    first, second = zones(site)
    wanted = [{**first, "AllocationId": eip}, {**second, "PrivateIPv4Address": "192.168.1.50"}]

    lb = balancer(site, ZoneMappings=wanted)

    addresses = [each["LoadBalancerAddresses"][0] for each in attribute(site, lb)["ZoneMappings"]]
    assert addresses[0]["PublicIPv4Address"] == "198.51.100.9"
    assert addresses[1]["PrivateIPv4Address"] == "192.168.1.50"
    again = {"AddressType": "Internet", "VpcId": site.vpc, "ZoneMappings": wanted}
    assert refused(site, "nlb.CreateLoadBalancer", **again) == "ResourceInUse.Eip"
    changed = [{**first, "AllocationId": other}, {"ZoneId": "cn-hangzhou-j", "VSwitchId": third}]
    call(site.cloud, "nlb.UpdateLoadBalancerZones", LoadBalancerId=lb, ZoneMappings=changed)
    settle(site)
    assert [each["ZoneId"] for each in attribute(site, lb)["ZoneMappings"]] == ["cn-hangzhou-h", "cn-hangzhou-j"]
    (free,) = call(site.cloud, "vpc.DescribeEipAddresses", AllocationId=eip)["EipAddresses"]["EipAddress"]
    assert free["Status"] == "Available"


def test_a_job_that_fails_changes_nothing(site: Site) -> None:
    sgp = group(site)
    site.cloud.faults.add(Fault("nlb.AddServersToServerGroup", fails_job="InternalError"))

    job = call(site.cloud, "nlb.AddServersToServerGroup", ServerGroupId=sgp, Servers=servers(*site.machines))["JobId"]
    settle(site)

    assert call(site.cloud, "nlb.GetJobStatus", JobId=job)["Status"] == "Failed"
    assert shown_servers(site, sgp) == []
    assert shown_group(site, sgp)["ServerGroupStatus"] == "Available"


def test_a_failed_change_of_zones_gives_the_new_addresses_back(site: Site) -> None:
    with site.cloud.changing() as account:
        old, new = (machines.add_eip(account) for _ in range(2))
        third = machines.add_vswitch(account, site.vpc, "cn-hangzhou-j", "192.168.7.0/24")
    first, second = zones(site)
    lb = balancer(site, ZoneMappings=[{**first, "AllocationId": old}, second])
    site.cloud.faults.add(Fault("nlb.UpdateLoadBalancerZones", fails_job="InternalError"))
    changed = [{**first, "AllocationId": new}, {"ZoneId": "cn-hangzhou-j", "VSwitchId": third}]

    call(site.cloud, "nlb.UpdateLoadBalancerZones", LoadBalancerId=lb, ZoneMappings=changed)
    settle(site)

    found = call(site.cloud, "vpc.DescribeEipAddresses")["EipAddresses"]["EipAddress"]
    assert {each["AllocationId"]: each["Status"] for each in found} == {old: "InUse", new: "Available"}
    assert site.cloud.world.store.get("vswitch", third)["used"] == []  # type: ignore[index]
    assert [each["ZoneId"] for each in attribute(site, lb)["ZoneMappings"]] == list(site.vswitches)


def test_a_dual_stack_load_balancer_has_addresses_of_its_vswitches_ipv6_range(site: Site) -> None:
    with site.cloud.changing() as account:
        dual = machines.add_vswitch(account, site.vpc, "cn-hangzhou-j", "192.168.7.0/24", ipv6_cidr="2001:db8:7::/64")
    mappings = [zones(site)[0], {"ZoneId": "cn-hangzhou-j", "VSwitchId": dual}]

    lb = balancer(site, AddressIpVersion="DualStack", ZoneMappings=mappings)

    plain, both = (each["LoadBalancerAddresses"][0] for each in attribute(site, lb)["ZoneMappings"])
    assert "Ipv6Address" not in plain
    assert both["Ipv6Address"] == "2001:db8:7::1"


def test_what_a_failed_job_was_to_make_is_gone(site: Site) -> None:
    site.cloud.faults.add(Fault("nlb.Create*", fails_job="InternalError", count=2))
    lb = balancer(site)
    group(site)

    assert attribute(site, lb)["LoadBalancerStatus"] == "CreateFailed"
    assert call(site.cloud, "nlb.ListServerGroups")["ServerGroups"] == []
    call(site.cloud, "nlb.DeleteLoadBalancer", LoadBalancerId=lb)


def test_a_security_group_is_joined_once_and_an_internal_load_balancer_has_no_bandwidth_package(site: Site) -> None:
    with site.cloud.changing() as account:
        sg = machines.add_security_group(account, site.vpc)
        package = machines.add_bandwidth_package(account)
    lb = {"LoadBalancerId": balancer(site)}
    joined, attached = {**lb, "SecurityGroupIds": [sg]}, {**lb, "BandwidthPackageId": package}
    call(site.cloud, "nlb.LoadBalancerJoinSecurityGroup", **joined)
    settle(site)
    call(site.cloud, "nlb.AttachCommonBandwidthPackageToLoadBalancer", **attached)
    settle(site)

    code = refused(site, "nlb.LoadBalancerJoinSecurityGroup", **joined)
    assert code == "ResourceAlreadyAssociated.SecurityGroup"
    code = refused(site, "nlb.UpdateLoadBalancerAddressTypeConfig", **lb, AddressType="Intranet")
    assert code == "OperationDenied.BandwidthPackage"


def test_deletion_protection_refuses_the_deletion(site: Site) -> None:
    lb = balancer(site, DeletionProtectionConfig={"Enabled": True})
    of_it = {"LoadBalancerId": lb}
    assert refused(site, "nlb.DeleteLoadBalancer", **of_it) == "OperationDenied.DeletionProtectionEnabled"

    call(site.cloud, "nlb.UpdateLoadBalancerProtection", **of_it, DeletionProtectionEnabled=False)
    sgp = group(site)
    lsn = listener(site, lb, sgp)
    call(site.cloud, "nlb.DeleteLoadBalancer", **of_it)

    assert attribute(site, lb)["LoadBalancerStatus"] == "Deleting"
    settle(site)
    assert refused(site, "nlb.GetLoadBalancerAttribute", **of_it) == "ResourceNotFound.loadBalancer"
    assert refused(site, "nlb.GetListenerAttribute", ListenerId=lsn) == "ResourceNotFound.listener"
    assert shown_group(site, sgp)["RelatedLoadBalancerIds"] == []


def test_a_group_and_a_listener_that_are_being_changed_refuse_other_changes(site: Site) -> None:
    lb, sgp = balancer(site), group(site)
    of_listener = {"ListenerId": listener(site, lb, sgp)}
    of_group = {"ServerGroupId": sgp, "Servers": servers(site.machines[0])}

    call(site.cloud, "nlb.AddServersToServerGroup", **of_group)
    call(site.cloud, "nlb.UpdateListenerAttribute", **of_listener, IdleTimeout=60)

    assert refused(site, "nlb.RemoveServersFromServerGroup", **of_group) == "IncorrectStatus.serverGroup"
    assert refused(site, "nlb.DeleteListener", **of_listener) == "IncorrectStatus.listener"


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"ServerId": "i-none"}, "ResourceNotFound.BackendServer"),
        ({"ServerType": "Ip", "ServerId": "10.0.0.1"}, "Mismatch.ServerType"),
        ({"Port": 0}, "IllegalParam.Port"),
        ({"Weight": 101}, "IllegalParam.Weight"),
        ({"ServerType": "Vm"}, "IllegalParam.ServerType"),
        ({"Description": "a"}, "IllegalParam.Description"),
        ({"Zone": "a"}, "UnknownParameter"),
    ],
)
def test_a_server_that_the_cloud_would_not_take_is_refused(site: Site, wrong: dict[str, Any], code: str) -> None:
    sgp = group(site)

    asked = servers(site.machines[0], **wrong) if "ServerId" not in wrong else [{**servers("")[0], **wrong}]
    assert refused(site, "nlb.AddServersToServerGroup", ServerGroupId=sgp, Servers=asked) == code


def test_a_server_is_in_a_call_and_in_a_group_only_once(site: Site) -> None:
    sgp = group(site)
    of_it = {"ServerGroupId": sgp}
    add = "nlb.AddServersToServerGroup"

    assert refused(site, add, **of_it, Servers=servers(*site.machines[:1] * 2)) == "DuplicatedParam.Server"
    call(site.cloud, add, **of_it, Servers=servers(site.machines[0]))
    settle(site)
    assert refused(site, add, **of_it, Servers=servers(site.machines[0])) == "ResourceAlreadyExist.BackendServer"
    gone = servers(site.machines[1])
    assert refused(site, "nlb.RemoveServersFromServerGroup", **of_it, Servers=gone) == "ResourceNotFound.BackendServer"
    many = [{"ServerId": f"i-{number}", "ServerType": "Ecs", "Port": 80} for number in range(201)]
    assert refused(site, add, **of_it, Servers=many) == "IllegalParam.Servers"


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"Scheduler": "wrr"}, "IllegalParam.Scheduler"),
        ({"Scheduler": "qch"}, "IllegalParam.Scheduler"),
        ({"ConnectionDrainTimeout": 901}, "IllegalParam.ConnectionDrainTimeout"),
        ({"HealthCheckConfig": {"HealthyThreshold": 1}}, "IllegalParam.HealthyThreshold"),
        ({"HealthCheckConfig": {"HealthCheckInterval": 51}}, "IllegalParam.HealthCheckInterval"),
        ({"HealthCheckConfig": {"HealthCheckHttpCode": ["200"]}}, "IllegalParam.HealthCheckHttpCode"),
        ({"Protocol": "HTTP"}, "IllegalParam.Protocol"),
    ],
)
def test_a_group_that_the_cloud_would_not_make_is_refused(site: Site, wrong: dict[str, Any], code: str) -> None:
    parameters = {"ServerGroupName": "k8s.80", "VpcId": site.vpc, **wrong}

    assert refused(site, "nlb.CreateServerGroup", **parameters) == code


def test_a_group_that_a_listener_uses_is_not_deleted(site: Site) -> None:
    lb, sgp = balancer(site), group(site)
    lsn = listener(site, lb, sgp)
    assert shown_group(site, sgp)["RelatedLoadBalancerIds"] == [lb]
    assert refused(site, "nlb.DeleteServerGroup", ServerGroupId=sgp) == "ResourceInUse.ServerGroup"

    call(site.cloud, "nlb.DeleteListener", ListenerId=lsn)
    assert refused(site, "nlb.DeleteServerGroup", ServerGroupId=sgp) == "ResourceInUse.ServerGroup"
    settle(site)
    call(site.cloud, "nlb.DeleteServerGroup", ServerGroupId=sgp)
    settle(site)

    assert call(site.cloud, "nlb.ListServerGroups")["ServerGroups"] == []


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"ListenerProtocol": "HTTP"}, "IllegalParam.ListenerProtocol"),
        ({"ListenerProtocol": "UDP"}, "Mismatch.Protocol"),
        ({"ListenerProtocol": "UDP", "IdleTimeout": 21}, "IllegalParam.IdleTimeout"),
        ({"ListenerProtocol": "TCPSSL"}, "MissingParam.CertificateIds"),
        ({"CertificateIds": ["a"]}, "IllegalParam.CertificateIds"),
        ({"IdleTimeout": 9}, "IllegalParam.IdleTimeout"),
        ({"ServerGroupId": "sgp-none"}, "ResourceNotFound.serverGroup"),
        ({"ListenerPort": 0}, "MissingParam.StartPort"),
        ({"ListenerPort": 0, "StartPort": 90, "EndPort": 90}, "IllegalParam.EndPort"),
        ({"ListenerPort": 0, "StartPort": 90, "EndPort": 91}, "Mismatch.AnyPortEnabled"),
        ({"ListenerPort": 81, "StartPort": 90}, "IllegalParam.ListenerPort"),
        ({"ListenerPort": 80}, "ResourceAlreadyExist.listener"),
    ],
)
def test_a_listener_that_the_cloud_would_not_make_is_refused(site: Site, wrong: dict[str, Any], code: str) -> None:
    lb, sgp = balancer(site), group(site)
    listener(site, lb, sgp)
    right = {"LoadBalancerId": lb, "ServerGroupId": sgp, "ListenerProtocol": "TCP", "ListenerPort": 81}

    assert refused(site, "nlb.CreateListener", **{**right, **wrong}) == code


def test_a_tls_listener_needs_a_group_that_hides_client_addresses_and_has_a_certificate_once(site: Site) -> None:
    with site.cloud.changing() as account:
        first, second = (add_certificate(account) for _ in range(2))
    lb, sgp = balancer(site), group(site, PreserveClientIpEnabled=False)
    tls = {"ListenerPort": 443, "ListenerProtocol": "TCPSSL", "CertificateIds": [first]}
    preserving = {"LoadBalancerId": lb, "ServerGroupId": group(site), **tls}
    assert refused(site, "nlb.CreateListener", **preserving) == "Mismatch.Protocol"
    more = {"ListenerId": listener(site, lb, sgp, **tls), "AdditionalCertificateIds": [second]}

    call(site.cloud, "nlb.AssociateAdditionalCertificatesWithListener", **more)
    settle(site)

    again = refused(site, "nlb.AssociateAdditionalCertificatesWithListener", **more)
    assert again == "ResourceAlreadyAssociated.Certificate"


def test_a_range_of_ports_needs_a_group_with_any_port(site: Site) -> None:
    lb, sgp = balancer(site), group(site, AnyPortEnabled=True)
    lsn = listener(site, lb, sgp, ListenerPort=0, StartPort=100, EndPort=200)

    shown = call(site.cloud, "nlb.GetListenerAttribute", ListenerId=lsn)

    assert (shown["ListenerPort"], shown["StartPort"], shown["EndPort"]) == (0, "100", "200")
    inside = {"LoadBalancerId": lb, "ServerGroupId": sgp, "ListenerProtocol": "TCP", "ListenerPort": 150}
    assert refused(site, "nlb.CreateListener", **inside) == "ResourceAlreadyExist.listener"
