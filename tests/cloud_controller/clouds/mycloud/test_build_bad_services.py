"""Whatever a Service asks for in vain, its owner reads which field, which value, and what is allowed."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from cloud_controller.load_balancers.facts import Fact
from tests.cloud_controller.clouds.mycloud.bad_services import Wrong, mistakes
from tests.cloud_controller.clouds.mycloud.services import BUILDER

BACKENDS = Backends((NodeBackend("worker-0", "i-1", "10.0.0.1"),))
EVENT = "Error syncing load balancer: "
LONGEST = 1024
"""Bytes of an event's message."""


@given(mistakes.filter(lambda wrong: not wrong.in_cloud))
def test_a_mistake_is_refused_with_field_value_and_what_is_allowed(wrong: Wrong) -> None:
    service = wrong.service("web")
    service["metadata"]["uid"] = "uid-1"
    if service["spec"].get("allocateLoadBalancerNodePorts") is not False:
        service["spec"]["ports"][0]["nodePort"] = 30080

    with pytest.raises(InvalidConfiguration) as refused:
        BUILDER.build(service, BACKENDS, Fact())

    message = f"{EVENT}{refused.value}"
    assert [words for words in wrong.told if words not in message] == []
    assert len(message.encode()) <= LONGEST
    with suppress(InvalidConfiguration):  # Nothing else: what its listeners have goes on.
        BUILDER.members(service, BACKENDS)
