"""AWS against moto: classic load balancers, beside the machines and routes of `of_aws`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from cloud_controller.cloud import Cloud
from tests.cloud_controller.clouds.aws.services import named
from tests.contract.of_aws import MARKS as MARKS
from tests.contract.of_aws import AwsHarness

OFFERS = frozenset({"load_balancers"})


def running(request: pytest.FixtureRequest) -> Iterator[AwsClassicHarness]:
    """An empty account for each test, on moto's server that they share."""
    harness = AwsClassicHarness(request.getfixturevalue("account"))
    try:
        yield harness
    finally:
        harness.release()


class AwsClassicHarness(AwsHarness):
    """See `Harness`. The API has no tokens: a load balancer's name, which is unique, stands for one."""

    has_udp = False  # The API's protocols are TCP, SSL, HTTP and HTTPS.
    # This kind is the default. Each of these settings makes a creation take further calls.
    annotations: Mapping[str, str] = named(proxy_protocol="*", connection_idle_timeout=120)
    changed_annotations: Mapping[str, str] = {
        **named(
            connection_idle_timeout=60,
            connection_draining_enabled=True,
            healthcheck_healthy_threshold=5,
            additional_resource_tags="team=web",
            load_balancer_source_ranges="10.0.0.0/8",
        ),
        **dict.fromkeys(named(proxy_protocol="*"), ""),
    }

    def ask(self, cloud: Cloud) -> None:
        assert cloud.load_balancers is not None
        cloud.load_balancers.read()
