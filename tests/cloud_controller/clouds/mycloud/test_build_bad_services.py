"""Whatever a Service asks for in vain, its owner reads which field, which value, and what is allowed."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.mycloud.build import build, members
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from tests.cloud_controller.clouds.mycloud.bad_services import Wrong, mistakes

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
        build(service, BACKENDS, cluster_id="c-1", default_scheme="internet-facing")

    message = f"{EVENT}{refused.value}"
    assert [words for words in wrong.told if words not in message] == []
    assert len(message.encode()) <= LONGEST
    with suppress(InvalidConfiguration):  # Nothing else: what its listeners have goes on.
        members(service, BACKENDS)
