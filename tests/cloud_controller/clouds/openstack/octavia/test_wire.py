"""How the JSON of Octavia is read; nothing here needs a service of OpenStack."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.openstack.octavia.wire import Known, member_addresses, observed, tag_list
from cloud_controller.load_balancers.model import Owner


def checked_on(monitor: str, *ports: int | None) -> int | None:
    """The port of the health check of a pool whose monitor has this name, and whose members have these ports."""
    view = {"id": "lb", "name": "lb", "provisioning_status": "ACTIVE"}
    pool = {"id": "p", "name": "tcp-80", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "admin_state_up": True}
    times = {"type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1, "max_retries_down": 3}
    members = [
        {"address": f"10.1.0.{n}", "protocol_port": 30080, "name": "n", "weight": 1, "monitor_port": port}
        for n, port in enumerate(ports)
    ]
    known = Known(
        view,
        pools={"p": {**pool, "healthmonitor_id": "m"}},
        monitors={"m": {"id": "m", "name": monitor, **times}},
        members={"p": members},
    )
    (found,) = observed(known).model.pools
    return found.health_check.port


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


def test_members_of_other_services_on_a_shared_load_balancer_are_not_its_owners() -> None:
    ours, others = (tag_list(Owner("c-1", f"uid-{name}", "default", name).tags) for name in ("web", "api"))
    known = Known(
        {"id": "lb", "tags": ours},
        pools={"p": {"protocol": "TCP", "tags": ours}, "q": {"protocol": "TCP", "tags": others}},
        members={"p": [{"address": "10.1.0.1"}], "q": [{"address": "10.1.0.2"}]},
    )

    assert member_addresses(known) == {"10.1.0.1"}
