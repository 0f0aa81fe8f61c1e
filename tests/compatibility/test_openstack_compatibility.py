"""This controller leaves of each recorded Service what the Go controller left in Octavia and Neutron after each phase,
and says the same of it in Kubernetes, but for what is listed.
"""

from __future__ import annotations

import pytest

from local.openstack.peer import Peer
from tests.compatibility.differences import Found, outdated, unlisted
from tests.compatibility.openstack_differences import DIFFERENCES
from tests.compatibility.openstack_driven import of_ours
from tests.compatibility.openstack_page import PAGE, page
from tests.compatibility.openstack_recorded import PEER, REFUSED, Json, named, of_peer
from tests.compatibility.phases import differences, refused

pytestmark = pytest.mark.timeout(3000)


@pytest.fixture(scope="module")
def peer() -> dict[str, Json]:
    """What the Go controller left after each phase."""
    return {name: state for recorded in PEER.values() for name, state in named(recorded, of_peer(recorded)).items()}


@pytest.fixture(scope="module")
def ours(openstack_peer: Peer) -> dict[str, Json]:
    return of_ours(openstack_peer, PEER.values())


@pytest.fixture(scope="module")
def differing(peer: dict[str, Json], ours: dict[str, Json]) -> list[Found]:
    return differences(peer, ours)


def test_the_page_tells_of_each_listed_difference() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m tests.compatibility.openstack_page"


def test_nothing_differs_that_is_not_listed(differing: list[Found]) -> None:
    assert unlisted(differing, DIFFERENCES) == []


def test_nothing_is_listed_that_differs_no_more(differing: list[Found]) -> None:
    assert outdated(differing, DIFFERENCES) == []


def test_the_scenarios_whose_later_phases_are_not_compared_are_listed(
    peer: dict[str, Json], ours: dict[str, Json]
) -> None:
    assert refused(peer, ours) == {*REFUSED}


def test_a_restart_with_nothing_changed_writes_nothing(ours: dict[str, Json]) -> None:
    restarts = {name: state["writes"] for name, state in ours.items() if name.endswith(": restart")}

    assert restarts
    of_another_config = {"conf-changed: restart", "security-groups-off: restart"}
    assert {name for name, writes in restarts.items() if writes} == of_another_config


def test_nothing_is_left_of_a_deleted_service_but_what_is_its_users(ours: dict[str, Json]) -> None:
    kinds = ("load balancers", "floating IPs", "VIP ports", "security groups", "unused pools")
    deletions = {name: state for name, state in ours.items() if name.endswith(": deletion")}
    left = {
        name
        for name, state in deletions.items()
        if any(state[kind] for kind in kinds) or any(field.startswith("listener ") for field in state)
    }

    keeping = {f"{name}: deletion" for name in ("keep-floatingip", "load-balancer-id", "loadbalancerip")}
    assert len(deletions) > 40
    assert left == keeping
