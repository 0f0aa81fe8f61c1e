"""What a Service's spec asks of its load balancer, read alike for every cloud."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.clouds.common.service_spec import (
    affinity_timeout,
    ignored_affinity_timeout,
    is_local,
)
from cloud_controller.load_balancers.model import Ignored


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, None),
        ({"sessionAffinity": "None", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}, None),
        ({"sessionAffinity": "ClientIP"}, 10_800),
        ({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {}}}, 10_800),
        ({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}}, 60),
    ],
)
def test_the_affinity_timeout_is_the_services_or_kubernetes_default(spec: dict[str, Any], expected: int | None) -> None:
    assert affinity_timeout(spec) == expected


def test_a_timeout_other_than_the_default_is_ignored_where_the_cloud_supports_none() -> None:
    affine = {"sessionAffinity": "ClientIP"}
    given = affine | {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}}

    assert [*ignored_affinity_timeout({}, "why"), *ignored_affinity_timeout(affine, "why")] == []
    assert [*ignored_affinity_timeout(given, "why")] == [
        Ignored("spec.sessionAffinityConfig.clientIP.timeoutSeconds", 60, "why")
    ]


def test_only_traffic_policy_local_is_local() -> None:
    assert is_local({"externalTrafficPolicy": "Local"})
    assert not is_local({"externalTrafficPolicy": "Cluster"})
    assert not is_local({})
