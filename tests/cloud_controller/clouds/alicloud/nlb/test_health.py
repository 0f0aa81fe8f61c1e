"""What is known of members' health, by whole answers of GetListenerHealthStatus and by cut ones."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.clouds.alicloud.nlb.health import health_of
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import HealthCheck, Pool

NODE, POD, OTHER = Member("i-1", 30080, "i-1"), Member("192.168.0.7", 8080, "eni"), Member("i-2", 30443, "i-2")
POOLS = {
    "sgp-1": Pool("tcp-80", HealthCheck("TCP"), (NODE, POD)),
    "sgp-2": Pool("tcp-443", HealthCheck("TCP"), (OTHER,)),
}
Health = dict[tuple[str, str, int], bool]


def server(member: Member, status: str | None = "Unhealthy") -> dict[str, Any]:
    """A server that is not normal. Of a pod, the ID is its network interface's."""
    of_pod = member.instance_id == "eni"
    found = {"ServerId": "eni-7" if of_pod else member.address, "Port": member.port, "Status": status}
    return {**found, "ServerIp": member.address if of_pod else "10.0.0.1"}


def group(id: str, *servers: dict[str, Any]) -> dict[str, Any]:
    return {"ServerGroupId": id, "HeathCheckEnabled": True, "NonNormalServers": [*servers]}


def answer(*groups: dict[str, Any], token: str | None = None) -> dict[str, Any]:
    return {"ListenerHealthStatus": [{"ListenerId": "lsn-1", "ServerGroupInfos": [*groups]}], "NextToken": token}


def test_servers_that_the_api_does_not_name_are_healthy() -> None:
    assert health_of(answer(group("sgp-1", server(NODE))), POOLS) == {("tcp-80", *NODE.key): False} | fit(POD)
    assert health_of(answer(group("sgp-1", server(POD))), POOLS) == {("tcp-80", *POD.key): False} | fit(NODE)


@pytest.mark.parametrize(("state", "known"), [("Unavailable", {True}), ("Unhealthy", {False})])
def test_a_server_in_a_known_state_has_its_health(state: str, known: set[bool]) -> None:
    assert {*health_of(answer(group("sgp-2", server(OTHER, state))), POOLS).values()} == known


@pytest.mark.parametrize("state", ["Initial", "Removing", "", None])
def test_a_server_that_was_not_checked_or_in_another_state_has_no_health(state: str | None) -> None:
    assert health_of(answer(group("sgp-2", server(OTHER, state))), POOLS) == {}


@pytest.mark.parametrize(
    "cut", [{}, {"ListenerHealthStatus": None}, {"ListenerHealthStatus": [{"ListenerId": "lsn-1"}]}, answer()]
)
def test_nothing_is_known_of_members_whose_server_group_the_answer_lacks(cut: dict[str, Any]) -> None:
    assert health_of(cut, POOLS) == {}


def test_a_server_group_that_the_answer_lacks_does_not_touch_those_that_it_has() -> None:
    assert health_of(answer(group("sgp-1"), group("sgp-of-others")), POOLS) == fit(NODE) | fit(POD)


def test_in_a_cut_answer_only_servers_that_it_names_have_a_health() -> None:
    """Others may be on the page that is missing."""
    cut = answer(group("sgp-1", server(NODE)), group("sgp-2"), token="next")

    assert health_of(cut, POOLS) == {("tcp-80", *NODE.key): False}


def test_a_server_group_that_is_told_in_parts_is_one() -> None:
    parts = answer(group("sgp-1", server(NODE)), group("sgp-1"))

    assert health_of(parts, POOLS) == {("tcp-80", *NODE.key): False} | fit(POD)


def fit(member: Member) -> Health:
    return {("tcp-80", *member.key): True}
