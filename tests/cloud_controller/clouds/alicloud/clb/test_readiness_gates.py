"""What readiness gates wait for behind a CLB, whose listeners check the health of their groups."""

from __future__ import annotations

from cloud_controller.clouds.alicloud.annotation_entries import BACKEND_TYPE, PREFIX
from local.alicloud import machines
from tests.cloud_controller.clouds.alicloud.clb.balancing import Balancing
from tests.cloud_controller.gates import unready_slice, verdict
from tests.cloud_controller.load_balancing import Running, service

ADDRESS = "192.168.0.101"


def running_with(account: Balancing, given: dict[str, str]) -> tuple[Running, str]:
    """A controller that has made the pod a backend, and the pod's node."""
    running = Running(account, account.cluster())
    machine = account.objects(machines.INSTANCE)[0]["id"]
    with account.standin.changing() as world:
        machines.add_eni(world, account.vswitch, "eni-101", address=ADDRESS, instance=machine)
    node = min(running.cluster.objects["nodes"])
    running.cluster.put(service({BACKEND_TYPE: "eni", **given}))
    found = unready_slice(node, ADDRESS)
    running.cluster.put_slice(found)
    ready = {**found, "endpoints": [{**found["endpoints"][0], "conditions": {"ready": True}}]}
    running.take_slice(ready)
    return running.settle(), node


def test_a_pod_waits_until_its_listener_finds_it_healthy(account: Balancing) -> None:
    running, node = running_with(account, {})
    load_balancers = running.cloud.load_balancers
    known = load_balancers.health(running.observed()[0].id)
    assert [key[1] for key in known] == [ADDRESS]

    for fit, expected in ((True, (True, "Healthy")), (False, (False, "Unhealthy"))):
        health = dict.fromkeys(known, fit)
        load_balancers.health = lambda _, health=health: health
        assert verdict(running, node, ADDRESS) == expected


def test_a_pod_behind_a_listener_without_health_check_needs_no_health(account: Balancing) -> None:
    running, node = running_with(account, {f"{PREFIX}health-check-switch": "off"})

    assert verdict(running, node, ADDRESS) == (True, "Registered")
