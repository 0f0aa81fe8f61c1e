"""The forms of the services' answers; what their statuses and words mean is in the contract suite."""

from __future__ import annotations

import orjson
import pytest

from cloud_controller.cloud import (
    AccessDenied,
    CloudError,
    Conflict,
    NotFound,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.clouds.openstack.errors import of_status


def neutron(kind: str, message: str) -> bytes:
    """Neutron's form."""
    return orjson.dumps({"NeutronError": {"type": kind, "message": message, "detail": ""}})


def octavia(message: str) -> bytes:
    """Octavia's form."""
    return orjson.dumps({"faultcode": "Client", "faultstring": message, "debuginfo": None})


def nova(kind: str, message: str) -> bytes:
    """Nova's form; Keystone's has `error`."""
    return orjson.dumps({kind: {"code": 0, "message": message}})


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, nova("error", "The request you have made requires authentication."), AccessDenied),
        (403, octavia("Quota has been met for resources: Load Balancer"), QuotaExceeded),
        (404, nova("itemNotFound", "Instance could not be found."), NotFound),
        (409, neutron("IpAddressInUse", "Unable to complete operation\nfor network."), Conflict),
        (400, neutron("RoutesExhausted", "The number of routes exceeds the maximum 30."), QuotaExceeded),
        (429, b"", Throttled),
        (500, b"<html>", Unavailable),
        (302, b"", CloudError),
    ],
)
def test_the_form_of_each_service_is_understood(status: int, body: bytes, kind: type[CloudError]) -> None:
    error = of_status(status, body, "GET network ports", 7.0)

    assert isinstance(error, kind)
    assert "GET network ports" in str(error)


def test_the_services_own_words_are_kept() -> None:
    error = of_status(409, neutron("IpAddressInUse", "the address is in use"), "POST network ports")

    assert str(error) == "OpenStack: POST network ports: IpAddressInUse: the address is in use"


def test_the_stack_of_a_service_that_is_being_debugged_is_in_no_event() -> None:
    fault = {"faultcode": "Server", "faultstring": "out of memory", "debuginfo": "Traceback (most recent call last)"}

    error = of_status(500, orjson.dumps(fault), "POST load-balancer lbaas/pools")

    assert str(error) == "OpenStack: POST load-balancer lbaas/pools: out of memory"


@pytest.mark.parametrize("body", [b"", b"default backend - 404", b'{"status": "404"}', b"[]"])
def test_not_found_is_only_what_a_service_says_itself(body: bytes) -> None:
    """A proxy's 404 would delete nodes, and forget load balancers."""
    error = of_status(404, body, "GET compute servers/1")

    assert not isinstance(error, NotFound)
    assert "a proxy before it may have answered" in str(error)
