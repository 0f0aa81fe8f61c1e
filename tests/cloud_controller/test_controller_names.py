"""Which controllers a --controllers list means."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controller_names import controllers, not_offered
from cloud_controller.daemon.leader import LeaseTimes
from tests.cloud_controller.conftest import FakeCloud

ALL = ("node", "node-lifecycle", "service", "route", "volume")


@pytest.mark.parametrize(
    "given, meant",
    [
        ("*", ALL),
        ("route,node", ("node", "route")),
        ("*,-route", ("node", "node-lifecycle", "service", "volume")),
        ("-route,*", ("node", "node-lifecycle", "service", "volume")),
        ("cloud-node,cloud-node-lifecycle-controller", ("node", "node-lifecycle")),
        ("pvlabel,cloud-volume", ("volume",)),
        (" node , route ", ("node", "route")),
    ],
)
def test_a_list_of_names_means_these_controllers_in_their_order(given: str, meant: tuple[str, ...]) -> None:
    assert controllers(given.split(",")) == meant


@pytest.mark.parametrize("given", ["nodes", "*,-nodes", "", "-node"])
def test_a_list_with_an_unknown_name_or_with_nothing_left_is_refused(given: str) -> None:
    with pytest.raises(InvalidConfiguration, match="controllers"):
        controllers(given.split(","))


def test_of_all_controllers_those_without_work_on_this_cloud_are_left_out() -> None:
    assert controllers(["*"], {"route", "volume"}) == ("node", "node-lifecycle", "service")


@pytest.mark.parametrize("given", ["volume", "*,volume", "node,cloud-volume"])
def test_a_controller_without_work_on_this_cloud_is_refused_by_its_name(given: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"controllers: the cloud offers nothing to volume"):
        controllers(given.split(","), {"volume"})


def test_one_that_is_named_and_taken_out_again_is_not_missed() -> None:
    assert controllers(["node", "volume", "-volume"], {"volume"}) == ("node",)


def test_what_a_cloud_does_not_offer_has_no_work(cloud: FakeCloud) -> None:
    assert not_offered(cloud) == {"service", "volume"}


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_lease_times_that_let_two_lead_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(InvalidConfiguration, match="leader election"):
        LeaseTimes(*times)
