"""An account with one VPC over two zones and three machines."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from local.alicloud import machines
from local.alicloud.cloud import AliCloud
from tests.clock import Clock

NOW = 1_795_420_800.0
ZONES = ("cn-hangzhou-h", "cn-hangzhou-k")


@dataclass(frozen=True)
class Site:
    """A stand-in in this process, and what is in its account."""

    cloud: AliCloud
    clock: Clock
    vpc: str
    vswitches: dict[str, str]
    machines: list[str]
    table: str


def site_in(cloud: AliCloud, clock: Clock) -> Site:
    """Put the network and the machines into an account."""
    with cloud.changing() as account:
        vpc = machines.add_vpc(account)
        subnets = {zone: machines.add_vswitch(account, vpc, zone, f"192.168.{n}.0/24") for n, zone in enumerate(ZONES)}
        made = [machines.add_instance(account, subnets[ZONES[0]], name=f"node-{n}") for n in range(3)]
        table = account.store.all(machines.ROUTE_TABLE)[0]["id"]
    return Site(cloud, clock, vpc, subnets, made, table)


@pytest.fixture
def site() -> Site:
    """A fresh account, on a clock that stands still."""
    clock = Clock(NOW)
    return site_in(AliCloud(clock=clock, job_seconds=5.0), clock)
