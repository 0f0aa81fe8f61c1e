"""Tokens, errors and lost answers, at the real services."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import AccessDenied, NotFound, Throttled, Unavailable
from local.openstack.proxy import Fault
from tests.cloud_controller.clouds.openstack.site import Site

pytestmark = pytest.mark.integration

ROUTERS = "GET network /v2.0/routers"
TOKENS = "POST identity /v3/auth/tokens"


def test_one_token_serves_all_services(openstack: Site) -> None:
    client = openstack.cloud()._client

    calls = openstack.calls(
        lambda: [
            client.list("network", "routers", "routers"),
            client.list("load-balancer", "lbaas/loadbalancers", "loadbalancers"),
            client.list("compute", "servers", "servers"),
        ]
    )

    assert calls == {
        TOKENS: 1,
        ROUTERS: 1,
        "GET load-balancer /v2/lbaas/loadbalancers": 1,
        "GET compute /v2.1/servers": 1,
    }


def test_a_refused_token_is_replaced_once(openstack: Site) -> None:
    client = openstack.cloud()._client
    client.list("network", "routers", "routers")
    openstack.fails(ROUTERS, Fault(401))

    calls = openstack.calls(lambda: client.list("network", "routers", "routers"))

    assert calls == {ROUTERS: 2, TOKENS: 1}


def test_a_token_is_replaced_before_it_ends(openstack: Site) -> None:
    client = openstack.cloud()._client
    ends_at = client.session.token().ends_at
    client.session._clock = lambda: ends_at - 30

    calls = openstack.calls(lambda: client.list("network", "routers", "routers"))

    assert calls == {ROUTERS: 1, TOKENS: 1}


def test_a_service_that_refuses_every_token_is_a_lack_of_access(openstack: Site) -> None:
    client = openstack.cloud()._client
    openstack.fails(ROUTERS, Fault(401), times=9)

    with pytest.raises(AccessDenied):
        client.list("network", "routers", "routers")

    assert openstack.proxy.counts[ROUTERS] == 2


def test_a_write_whose_answer_is_lost_is_not_sent_again_unless_it_may_be(openstack: Site) -> None:
    client = openstack.cloud()._client
    openstack.fails("POST network /v2.0/networks", Fault(loses_answer=True))

    with pytest.raises(Unavailable):
        client.post("network", "networks", {"network": {"name": "lost"}})

    assert len(client.list("network", "networks", "networks", name="lost")) == 1


def test_a_deletion_whose_answer_is_lost_succeeds(openstack: Site) -> None:
    client = openstack.cloud()._client
    network = client.post("network", "networks", {"network": {"name": "n"}})["network"]["id"]
    openstack.fails("DELETE network /v2.0/networks/ID", Fault(loses_answer=True))

    client.delete("network", f"networks/{network}")

    with pytest.raises(NotFound):
        client.get("network", f"networks/{network}")


def test_the_service_says_how_long_to_wait(openstack: Site) -> None:
    client = openstack.cloud()._client
    openstack.fails(ROUTERS, Fault(429, headers={"Retry-After": "90"}), times=9)

    with pytest.raises(Throttled) as throttled:
        client.list("network", "routers", "routers")

    assert throttled.value.retry_after == 90


def test_the_password_is_in_no_error(openstack: Site) -> None:
    client = openstack.cloud()._client
    openstack.fails(
        TOKENS, Fault(401, body={"error": {"message": "The request you have made requires authentication."}})
    )

    with pytest.raises(AccessDenied) as denied:
        client.list("network", "routers", "routers")

    assert "secret" not in str(denied.value)
    assert "requires authentication" in str(denied.value)
