"""The unchanged clients of the official SDK against the served stand-in."""

from __future__ import annotations

import functools
import importlib
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from local.alicloud.account import ACCESS_KEY, REGION, SECRET
from local.alicloud.cloud import AliCloud
from local.alicloud.products import BY_VERSION, ECS, NLB, SLB, STS, VPC
from local.alicloud.sts import add_role
from local.standin.faults import Fault
from local.standin.refusals import Refusal
from tests.clock import Clock
from tests.local.alicloud.conftest import Site, site_in

pytestmark = pytest.mark.integration

CORE = "alibabacloud_tea_openapi"


class Lazy:
    """A module of the SDK, imported when it is used: importing takes seconds, for tests that are left out too."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


ecs, nlb, slb, sts, vpc = (Lazy(f"{each.package}.models") for each in (ECS, NLB, SLB, STS, VPC))


@functools.cache
def client_of(product: str) -> Any:
    """The class of a product's client."""
    (package,) = (each.package for each in BY_VERSION.values() if each.name == product)
    return importlib.import_module(f"{package}.client").Client


@pytest.fixture
def served() -> Iterator[tuple[Site, str]]:
    """A fresh account and its host and port."""
    clock = Clock(time.time())
    site = site_in(AliCloud(job_seconds=0.05), clock)
    with site.cloud.served() as url:
        yield site, url.removeprefix("http://")


def connect(product: str, host: str, **more: Any) -> Any:
    """A client of the product."""
    keys = {"access_key_id": ACCESS_KEY, "access_key_secret": SECRET, **more}
    models = importlib.import_module(f"{CORE}.models")
    return client_of(product)(models.Config(protocol="http", endpoint=host, region_id=REGION, **keys))


def code_of(call: Any) -> str:
    with pytest.raises(importlib.import_module(f"{CORE}.exceptions").ClientException) as refused:
        call()
    return str(refused.value.code)


def test_ecs_and_vpc_describe_and_route(served: tuple[Site, str]) -> None:
    site, host = served
    machines, network = connect("ecs", host), connect("vpc", host)

    wanted = ecs.DescribeInstancesRequest(region_id=REGION, instance_ids=json.dumps(site.machines), max_results=2)
    found = machines.describe_instances(wanted).body
    routes = [
        vpc.CreateRouteEntriesRequestRouteEntries(
            dst_cidr_block=f"10.0.{number}.0/24", next_hop=each, next_hop_type="Instance", route_table_id=site.table
        )
        for number, each in enumerate(site.machines)
    ]
    made = network.create_route_entries(vpc.CreateRouteEntriesRequest(region_id=REGION, route_entries=routes)).body
    listed = network.describe_route_entry_list(
        vpc.DescribeRouteEntryListRequest(region_id=REGION, route_table_id=site.table, route_entry_type="Custom")
    ).body

    assert [each.instance_id for each in found.instances.instance] == site.machines[:2]
    assert found.next_token
    assert made.success_count == 3
    assert [each.next_hops.next_hop[0].next_hop_id for each in listed.route_entrys.route_entry] == site.machines


def test_clb_is_made_and_read(served: tuple[Site, str]) -> None:
    site, host = served
    client = connect("slb", host)
    tag = slb.CreateLoadBalancerRequestTag(key="owner", value="c-1")
    balancer = client.create_load_balancer(
        slb.CreateLoadBalancerRequest(region_id=REGION, instance_charge_type="PayByCLCU", tag=[tag])
    ).body.load_balancer_id
    servers = json.dumps([{"ServerId": each, "Port": 30080, "Weight": 100} for each in site.machines])
    group = client.create_vserver_group(
        slb.CreateVServerGroupRequest(region_id=REGION, load_balancer_id=balancer, backend_servers=servers)
    ).body.vserver_group_id
    client.create_load_balancer_tcplistener(
        slb.CreateLoadBalancerTCPListenerRequest(
            load_balancer_id=balancer, listener_port=80, bandwidth=-1, vserver_group_id=group, health_check_interval=9
        )
    )

    (listener,) = client.describe_load_balancer_listeners(
        slb.DescribeLoadBalancerListenersRequest(region_id=REGION, load_balancer_id=[balancer])
    ).body.listeners

    assert (listener.status, listener.vserver_group_id) == ("stopped", group)
    assert listener.tcplistener_config.health_check_interval == 9


def test_nlb_is_made_by_jobs(served: tuple[Site, str]) -> None:
    site, host = served
    client = connect("nlb", host)
    zones = [
        nlb.CreateLoadBalancerRequestZoneMappings(zone_id=zone, v_switch_id=vswitch)
        for zone, vswitch in site.vswitches.items()
    ]

    def wait(job: str) -> str:
        while (status := client.get_job_status(nlb.GetJobStatusRequest(job_id=job)).body.status) == "Processing":
            time.sleep(0.02)
        return str(status)

    balancer = client.create_load_balancer(
        nlb.CreateLoadBalancerRequest(address_type="Internet", vpc_id=site.vpc, zone_mappings=zones)
    ).body.loadbalancer_id
    group = client.create_server_group(
        nlb.CreateServerGroupRequest(
            server_group_name="k8s.80",
            vpc_id=site.vpc,
            health_check_config=nlb.CreateServerGroupRequestHealthCheckConfig(
                health_check_type="HTTP", health_check_http_code=["http_2xx"]
            ),
        )
    ).body
    assert wait(group.job_id) == "Succeeded"
    listener = client.create_listener(
        nlb.CreateListenerRequest(
            load_balancer_id=balancer,
            listener_port=80,
            listener_protocol="TCP",
            server_group_id=group.server_group_id,
            proxy_protocol_v2config=nlb.CreateListenerRequestProxyProtocolV2Config(ppv_2vpc_id_enabled=True),
        )
    ).body
    assert wait(listener.job_id) == "Succeeded"

    (shown,) = client.list_listeners(nlb.ListListenersRequest(load_balancer_ids=[balancer])).body.listeners
    assert (shown.listener_status, shown.proxy_protocol_v2config.ppv_2vpc_id_enabled) == ("Running", True)
    delete = nlb.DeleteServerGroupRequest(server_group_id=group.server_group_id)
    assert code_of(lambda: client.delete_server_group(delete)) == "ResourceInUse.ServerGroup"


@pytest.mark.parametrize("more", [{}, {"signature_algorithm": "v2"}], ids=["ACS3", "RPC"])
def test_a_wrong_secret_and_a_throttled_call_come_with_the_clouds_codes(
    served: tuple[Site, str], more: dict[str, str]
) -> None:
    site, host = served
    wanted = slb.DescribeLoadBalancersRequest(region_id=REGION)
    client = connect("slb", host, **more)
    forger = connect("slb", host, access_key_secret="wrong", **more)

    assert client.describe_load_balancers(wanted).body.total_count == 0
    assert code_of(lambda: forger.describe_load_balancers(wanted)) == "SignatureDoesNotMatch"
    site.cloud.faults.add(Fault("slb.*", error=Refusal(400, "Throttling.User", "Request was denied.")))
    assert code_of(lambda: client.describe_load_balancers(wanted)) == "Throttling.User"
    assert client.describe_load_balancers(wanted).body.total_count == 0


def test_a_key_of_sts_signs_requests(served: tuple[Site, str]) -> None:
    site, host = served
    with site.cloud.changing() as account:
        role = add_role(account, "me", ["*"], ["slb:Describe*"])
    wanted = sts.AssumeRoleRequest(role_arn=role, role_session_name="me")
    lent = connect("sts", host).assume_role(wanted).body.credentials

    keys = {"access_key_id": lent.access_key_id, "access_key_secret": lent.access_key_secret}
    client = connect("slb", host, security_token=lent.security_token, type="sts", **keys)

    assert client.describe_load_balancers(slb.DescribeLoadBalancersRequest(region_id=REGION)).body.total_count == 0
    create = slb.CreateLoadBalancerRequest(region_id=REGION)
    assert code_of(lambda: client.create_load_balancer(create)) == "Forbidden.RAM"
