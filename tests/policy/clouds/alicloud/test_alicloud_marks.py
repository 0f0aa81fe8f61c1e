"""What Alibaba Cloud's annotations mean to the rules for all clouds, under each of their names."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import PolicyHost
from tests.policy_objects import of, service

PREFIXES = (
    "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-",
    "service.beta.kubernetes.io/alicloud-loadbalancer-",
)


def annotated(prefix: str, values: dict[str, str]) -> Any:
    annotations = {f"{prefix}{name}": value for name, value in values.items()}
    return service(annotations=annotations, spec={"loadBalancerSourceRanges": []})


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("values", "reported"),
    [
        ({"address-type": "intranet"}, False),
        ({"address-type": "internet"}, True),
        ({"acl-id": "acl-1", "acl-type": "white", "acl-status": "on"}, False),
        ({"acl-id": "acl-1", "acl-type": "white"}, True),
        ({"acl-id": "acl-1", "acl-type": "black", "acl-status": "on"}, True),
        ({"security-group-ids": "sg-1"}, False),
        ({"name": "web"}, True),
    ],
)
def test_a_load_balancer_that_everyone_reaches_is_reported(
    prefix: str, values: dict[str, str], reported: bool, pack: PolicyHost
) -> None:
    found = of(pack.analyze_stack([annotated(prefix, values)]), "lb-service-limit-sources")

    assert found == (["advisory"] if reported else [])


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("switch", ["health-check-flag", "health-check-switch"])
@pytest.mark.parametrize("value", ["on", "off"])
def test_a_health_check_that_is_switched_off_is_reported(
    prefix: str, switch: str, value: str, pack: PolicyHost
) -> None:
    found = of(pack.analyze(annotated(prefix, {switch: value})), "lb-service-check-health")

    assert found == (["advisory"] if value == "off" else [])
