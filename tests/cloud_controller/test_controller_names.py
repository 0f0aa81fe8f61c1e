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
def test_a_controllers_list_selects_controllers_in_start_order(given: str, meant: tuple[str, ...]) -> None:
    assert controllers(given.split(",")) == meant


@pytest.mark.parametrize("given", ["nodes", "*,-nodes", "", "-node"])
def test_a_controllers_list_with_an_unknown_name_or_no_controller_left_is_rejected(given: str) -> None:
    with pytest.raises(InvalidConfiguration, match="controllers"):
        controllers(given.split(","))


def test_a_star_in_the_controllers_list_leaves_out_controllers_that_the_cloud_does_not_support() -> None:
    assert controllers(["*"], {"route", "volume"}) == ("node", "node-lifecycle", "service")


@pytest.mark.parametrize("given", ["volume", "*,volume", "node,cloud-volume"])
def test_naming_a_controller_that_the_cloud_does_not_support_is_rejected(given: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"controllers: the cloud offers nothing to volume"):
        controllers(given.split(","), {"volume"})


def test_a_controller_can_be_named_and_excluded_in_one_list() -> None:
    assert controllers(["node", "volume", "-volume"], {"volume"}) == ("node",)


def test_controllers_whose_interface_a_cloud_lacks_are_unsupported(cloud: FakeCloud) -> None:
    assert not_offered(cloud) == {"service", "volume"}


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_lease_times_that_would_allow_two_leaders_are_rejected(times: tuple[float, float, float]) -> None:
    with pytest.raises(InvalidConfiguration, match="leader election"):
        LeaseTimes(*times)
