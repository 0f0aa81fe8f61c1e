"""Rule `lb-service-log-access`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.services import balanced, ours, port, said, vendors

RULE = "lb-service-log-access"
AWS = "service.beta.kubernetes.io/aws-load-balancer-"
TLS = {f"{AWS}ssl-cert": "arn:aws:acm:eu-central-1:123456789012:certificate/0a", f"{AWS}type": "nlb"}
LOGGED = {f"{AWS}access-log-enabled": "true", f"{AWS}access-log-s3-bucket-name": "logs"}
BY_ATTRIBUTE = {f"{AWS}attributes": "access_logs.s3.enabled=true,access_logs.s3.bucket=logs"}


def messages(pack: PolicyHost, *stack: AnalyzedResource) -> list[str]:
    return [finding.message for finding in said(pack, RULE, *stack)]


def public(annotations: Any = None, name: str = "web") -> AnalyzedResource:
    return balanced(name, port(443), annotations=annotations)


@pytest.mark.parametrize("annotations", [{}, TLS, {**TLS, f"{AWS}access-log-enabled": "false"}])
def test_a_load_balancer_that_could_log_and_does_not_is_reported(pack: PolicyHost, annotations: dict[str, str]) -> None:
    [finding] = said(pack, RULE, vendors("aws"), public(annotations))

    assert (finding.level, finding.severity) == ("advisory", "low")
    assert finding.message == (
        f'the public load balancer writes no access logs: annotation {AWS}access-log-enabled: "true"'
    )


@pytest.mark.parametrize("annotations", [LOGGED, {**TLS, **LOGGED}, {**TLS, **BY_ATTRIBUTE}])
def test_a_load_balancer_that_logs_passes(pack: PolicyHost, annotations: dict[str, str]) -> None:
    assert messages(pack, ours("aws"), public(annotations)) == []


def test_a_network_load_balancer_without_tls_has_nothing_to_log(pack: PolicyHost) -> None:
    assert messages(pack, ours("aws"), public({f"{AWS}type": "nlb"})) == []


def test_internal_ones_and_other_clouds_pass(pack: PolicyHost) -> None:
    assert messages(pack, ours("aws"), public({f"{AWS}internal": "true"})) == []
    assert messages(pack, ours("mycloud"), public()) == []
    assert messages(pack, ours("alicloud"), public()) == []


def test_an_unknown_value_is_not_evaluated(pack: PolicyHost) -> None:
    unknown = public({f"{AWS}access-log-enabled": UNKNOWN})

    assert [finding.level for finding in said(pack, RULE, ours("aws"), unknown)] == ["not-evaluated"]
