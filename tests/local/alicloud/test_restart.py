"""What was answered is on disk."""

from __future__ import annotations

from pathlib import Path

from local.alicloud.cloud import AliCloud
from tests.clock import Clock
from tests.local.alicloud.caller import call
from tests.local.alicloud.conftest import NOW, site_in
from tests.local.alicloud.test_clb import balancer, group, listener
from tests.local.alicloud.test_nlb import balancer as nlb
from tests.local.alicloud.test_nlb import group as server_group
from tests.local.alicloud.test_nlb import listener as nlb_listener
from tests.local.alicloud.test_routes import entry


def test_a_restart_keeps_objects_tokens_and_running_jobs(tmp_path: Path) -> None:
    clock = Clock(NOW)
    site = site_in(AliCloud(tmp_path / "cloud.db", clock=clock, job_seconds=5.0), clock)
    lb = balancer(site, ClientToken="one")
    rsp = group(site, lb, *site.machines)
    listener(site, lb, VServerGroupId=rsp)
    call(site.cloud, "vpc.CreateRouteEntries", RouteEntries=[entry(site, 1), entry(site, 2)])
    balancer_, sgp = nlb(site), server_group(site)
    nlb_listener(site, balancer_, sgp)
    servers = [{"ServerId": each, "ServerType": "Ecs", "Port": 80} for each in site.machines]
    job = call(site.cloud, "nlb.AddServersToServerGroup", ServerGroupId=sgp, Servers=servers)["JobId"]
    before = site.cloud.world.store.snapshot()
    site.cloud.world.store.close()

    again = AliCloud(tmp_path / "cloud.db", clock=clock, job_seconds=5.0)

    assert again.world.store.snapshot() == before
    made = call(
        again, "slb.CreateLoadBalancer", InstanceChargeType="PayByCLCU", LoadBalancerName="a1", ClientToken="one"
    )
    assert made["LoadBalancerId"] == lb
    clock.now += 5
    assert call(again, "nlb.GetJobStatus", JobId=job)["Status"] == "Succeeded"
    assert len(call(again, "nlb.ListServerGroupServers", ServerGroupId=sgp)["Servers"]) == 3
