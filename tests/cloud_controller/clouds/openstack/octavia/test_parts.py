"""Parts that Octavia could not change, does not change now, or that somebody else has changed: on the real Octavia."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import Conflict
from cloud_controller.clouds.openstack.octavia import changes
from cloud_controller.clouds.openstack.octavia.failed_parts import FailedParts
from local.openstack.api import Object
from local.openstack.proxy import Fault
from tests.cloud_controller.clouds.openstack.octavia.account import OctaviaAccount
from tests.cloud_controller.clouds.openstack.octavia.services import named, nodes
from tests.cloud_controller.load_balancing import Running, changed, port, served, service

pytestmark = pytest.mark.integration

PARTS = {
    "listeners": "listeners/ID",
    "pools": "pools/ID",
    "healthmonitors": "healthmonitors/ID",
    "members": "pools/ID/members",
}
"""The path at which the controller changes each kind of part."""


class Part:
    """The only part of its kind, as a person sees and changes it."""

    def __init__(self, account: OctaviaAccount, kind: str) -> None:
        self._account = account
        self._kind = kind
        (pool,) = account.parts("pools")
        self._list = f"pools/{pool['id']}/members" if kind == "members" else kind

    @property
    def view(self) -> Object:
        (found,) = self._account.api.get("load-balancer", f"lbaas/{self._list}")[self._kind]
        return dict(found)

    def change(self, **fields: Any) -> None:
        """Change it, and wait until Octavia has finished."""
        path = f"lbaas/{self._list}/{self.view['id']}"
        self._account.api.put("load-balancer", path, {self._kind.removesuffix("s"): fields})
        self._account.settle()

    def fail(self) -> None:
        """It is in ERROR after a change, and so it is after each further one."""
        self._let(fail=True)
        self.change(admin_state_up=True)
        assert self.view["provisioning_status"] == "ERROR"

    def mend(self) -> None:
        """Changes of it succeed from now on."""
        self._let(fail=False)

    def _let(self, *, fail: bool) -> None:
        path = f"{self._kind}/{self.view['id']}"
        self._account.site.peer.admin.put("load-balancer-peer", path, {"fails": fail})


def checked(account: OctaviaAccount) -> Running:
    """A Service with a health monitor is served by one node."""
    return served(account, nodes("node1"), service(named(enable_health_monitor=True), port(80)))


# ------------------------------------------------------------------------------------------------------------ in ERROR


@pytest.mark.parametrize("kind", [*PARTS])
def test_a_part_in_error_is_sent_again(account: OctaviaAccount, kind: str) -> None:
    running = checked(account)
    part = Part(account, kind)
    part.fail()
    part.mend()

    running.resync()
    running.settle()

    assert part.view["provisioning_status"] == "ACTIVE"
    assert running.calls.writes == {f"PUT load-balancer lbaas/{PARTS[kind]}": 1}
    assert any("is in ERROR" in message for _, message in running.cluster.events)
    assert not running.plan().changes


@pytest.mark.parametrize("kind", [*PARTS])
def test_while_a_part_stays_in_error_its_service_gets_the_reason_and_nothing_more_is_sent(
    account: OctaviaAccount, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, the rounds below take longer than the ten seconds until the second attempt.
    monkeypatch.setattr(changes, "FailedParts", lambda: FailedParts(clock=lambda: 0.0))
    running = checked(account)
    Part(account, kind).fail()

    running.resync()
    for _ in range(3):
        with pytest.raises(Conflict, match="is in ERROR: Octavia could not apply its last change"):
            running.settle()

    assert running.calls.writes == {f"PUT load-balancer lbaas/{PARTS[kind]}": 1}
    assert any(reason.endswith("Failed") and "is in ERROR" in message for reason, message in running.cluster.events)


def test_a_node_becomes_a_member_of_a_pool_that_has_fallen_into_error(account: OctaviaAccount) -> None:
    running = checked(account)
    part = Part(account, "pools")
    part.fail()
    part.mend()

    nodes("node2", cluster=running.cluster)
    running.take_nodes()
    running.settle(rounds=6)

    assert [each["name"] for each in account.members(part.view)] == ["node1", "node2"]
    assert part.view["provisioning_status"] == "ACTIVE"


# ------------------------------------------------------------------------------------------------------------ not now


def test_a_change_that_octavia_does_not_accept_now_is_made_later(account: OctaviaAccount) -> None:
    running = checked(account)
    said = {"faultcode": "Client", "faultstring": "Load Balancer 1 is immutable and cannot be updated."}
    account.site.fails("PUT load-balancer /v2/lbaas/listeners/ID", Fault(409, said))

    changed(running.cluster, named(connection_limit=2000))
    running.handle()

    assert Part(account, "listeners").view["connection_limit"] == -1
    assert any(reason == "Waiting" and "immutable" in message for reason, message in running.cluster.events)

    running.settle()

    assert Part(account, "listeners").view["connection_limit"] == 2000
    assert not running.plan().changes


# --------------------------------------------------------------------------------------------------- changed by others


def test_a_load_balancer_that_somebody_switched_off_is_switched_on(account: OctaviaAccount) -> None:
    running = checked(account)
    (lb,) = account.load_balancers()
    account.api.put("load-balancer", f"lbaas/loadbalancers/{lb['id']}", {"loadbalancer": {"admin_state_up": False}})
    account.settle()

    running.resync()
    running.settle()

    assert [each["admin_state_up"] for each in account.load_balancers()] == [True]
    assert running.calls.writes == {"PUT load-balancer lbaas/loadbalancers/ID": 1}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("listeners", {"admin_state_up": False}),
        ("pools", {"admin_state_up": False}),
        ("healthmonitors", {"admin_state_up": False}),
        ("members", {"admin_state_up": False}),
        ("members", {"backup": True, "monitor_address": "10.1.0.9"}),
    ],
)
def test_what_somebody_else_changed_of_a_part_is_put_right(
    account: OctaviaAccount, kind: str, fields: dict[str, Any]
) -> None:
    running = checked(account)
    part = Part(account, kind)
    before = {name: part.view[name] for name in fields}
    part.change(**fields)

    running.resync()
    running.settle()

    assert {name: part.view[name] for name in fields} == before
    assert running.calls.writes == {f"PUT load-balancer lbaas/{PARTS[kind]}": 1}
    assert not running.plan().changes
