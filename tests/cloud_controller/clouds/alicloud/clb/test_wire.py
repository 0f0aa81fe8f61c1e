"""CLB's words on the wire."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.alicloud.clb.listener_fields import attributes_of, set_parameters
from cloud_controller.clouds.alicloud.clb.wire import balancer_attributes, state_of
from cloud_controller.load_balancers.model import LoadBalancerState


@pytest.mark.parametrize(
    ("shown", "port"), [({}, None), ({"HealthCheckConnectPort": -520}, None), ({"HealthCheckConnectPort": 81}, 81)]
)
def test_the_backends_own_port_is_shown_in_several_ways(shown: dict[str, int], port: int | None) -> None:
    found = attributes_of({"ListenerProtocol": "tcp", "Status": "running", "TCPListenerConfig": shown})

    assert found["health_check_port"] == port


def test_a_set_call_takes_settings_back_to_the_backends_own() -> None:
    found = set_parameters({"protocol": "http", "health_check_port": None, "health_check_domain": None})

    assert found == {"HealthCheckConnectPort": -520, "HealthCheckDomain": "$_ip"}


@pytest.mark.parametrize(
    ("word", "state", "reason"),
    [
        ("active", "READY", None),
        ("inactive", "FAILED", "it is stopped"),
        ("locked", "FAILED", "overdue"),
        ("new", "FAILED", "new"),
    ],
)
def test_a_load_balancer_that_does_not_serve_says_why(word: str, state: str, reason: str | None) -> None:
    found, why = state_of({"LoadBalancerStatus": word})

    assert found is LoadBalancerState[state]
    assert (reason or "") in (why or "")


@pytest.mark.parametrize(
    ("shown", "charge"),
    [
        ({"InternetChargeType": "4"}, "paybytraffic"),
        ({"InternetChargeTypeAlias": "paybybandwidth"}, "paybybandwidth"),
        ({}, None),
    ],
)
def test_the_charge_for_traffic_is_read_in_numbers_and_words(shown: dict[str, str], charge: str | None) -> None:
    found = balancer_attributes(shown)

    assert (found["internet_charge_type"], found["instance_charge_type"]) == (charge, "PayByCLCU")
