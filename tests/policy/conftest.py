from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cloud_stacks.policies.host import PolicyHost
from policy.checklist import POLICIES
from tests.policy_objects import EXEMPT, exemption, start

SETTINGS: dict[str, dict[str, Any]] = {
    "lb-service-depend-on-ccm": {"loadBalancerClasses": ["mycloud.io/ours"]},
    "ccm-use-internal-endpoints": {"reached": ["vpc"]},
    "ccm-workload-pin-image": {"tags": ["build-[0-9]+"]},
    "ccm-workload-set-priority": {"classes": ["platform-critical"]},
    "lb-service-check-health": {"offAnnotations": {"example.com/health-check": "never"}},
    "lb-service-limit-sources": {
        "internalAnnotations": {"example.com/scheme": "private"},
        "internalClasses": ["example.com/internal"],
        "limitingAnnotations": ["example.com/access-list"],
    },
}


@pytest.fixture(scope="session")
def pack() -> Iterator[PolicyHost]:
    """One server for all tests: a start takes a second."""
    exempt = {"exempt": [exemption(f"kube-system/{EXEMPT}")]}
    with_exempt = {policy.name: {**exempt, **SETTINGS.get(policy.name, {})} for policy in POLICIES}
    host = start(with_exempt)
    yield host
    host.close()
