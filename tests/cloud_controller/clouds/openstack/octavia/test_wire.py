"""How the JSON of Octavia is read; nothing here needs a service of OpenStack."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.clouds.openstack.octavia.wire import MEMBERS_IN, Known, member_addresses, observed, tag_list
from cloud_controller.load_balancers.model import Owner, Pool


def pool_of(*members: dict[str, Any], monitor: str = "tcp-80:", balancer: str = "ACTIVE", **pool: Any) -> Pool:
    """The pool with these members of a load balancer in this status, as the plan sees it."""
    view = {"id": "lb", "name": "lb", "provisioning_status": balancer}
    fields = {"id": "p", "name": "tcp-80", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "admin_state_up": True}
    times = {"type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1, "max_retries_down": 3}
    usual = {"protocol_port": 30080, "name": "node", "weight": 1, "monitor_port": None}
    found = Known(
        view,
        pools={"p": {**fields, "healthmonitor_id": "m", **pool}},
        monitors={"m": {"id": "m", "name": monitor, **times}},
        members={"p": [{"address": f"10.1.0.{n}", **usual, **each} for n, each in enumerate(members)]},
    )
    return observed(found).model.pools[0]


def checked_on(monitor: str, *ports: int | None) -> int | None:
    """The port of the health check of a pool whose monitor has this name, and whose members have these ports."""
    pool = pool_of(*({"monitor_port": each} for each in ports), monitor=monitor)
    return pool.health_check.port


@pytest.mark.parametrize(
    ("monitor", "ports", "shown"),
    [
        ("tcp-80:32000", (32000, 32000), 32000),
        ("tcp-80:", (None, None), None),
        ("tcp-80:32000", (32000, None), None),
        ("tcp-80:", (None, 32000), 32000),
    ],
)
def test_a_health_check_shows_the_port_of_members_that_are_checked_elsewhere(
    monitor: str, ports: tuple[int | None, ...], shown: int | None
) -> None:
    assert checked_on(monitor, *ports) == shown


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, "node"),
        ({"admin_state_up": False}, "node (switched off)"),
        ({"provisioning_status": "ERROR", "backup": True}, "node (in ERROR, backup)"),
        ({"monitor_address": "10.1.0.9"}, "node (checked at 10.1.0.9)"),
        ({"subnet_id": "other"}, "node (in subnet other)"),
    ],
)
def test_a_member_shows_what_makes_it_differ_from_the_wanted_one(fields: dict[str, Any], shown: str) -> None:
    pool = pool_of({"subnet_id": "s", **fields}, description=f"{MEMBERS_IN}s")

    assert [each.instance_id for each in pool.members] == [shown]


def test_parts_of_a_load_balancer_in_error_do_not_differ_because_it_refuses_every_change() -> None:
    pool = pool_of({"provisioning_status": "ERROR"}, balancer="ERROR", provisioning_status="ERROR")

    assert pool.attributes["enabled"] is True
    assert [each.instance_id for each in pool.members] == ["node"]


def test_members_of_other_services_on_a_shared_load_balancer_are_not_its_owners() -> None:
    ours, others = (tag_list(Owner("c-1", f"uid-{name}", "default", name).tags) for name in ("web", "api"))
    known = Known(
        {"id": "lb", "tags": ours},
        pools={"p": {"protocol": "TCP", "tags": ours}, "q": {"protocol": "TCP", "tags": others}},
        members={"p": [{"address": "10.1.0.1"}], "q": [{"address": "10.1.0.2"}]},
    )

    assert member_addresses(known) == {"10.1.0.1"}
