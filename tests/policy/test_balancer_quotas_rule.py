"""Rule `lb-service-stay-within-quotas`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyError, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.services import balanced, ours, port, said
from tests.policy_objects import resource, start

RULE = "lb-service-stay-within-quotas"
BETA = "service.beta.kubernetes.io/"
NLB = {"loadBalancerClass": "cloud-controller/nlb"}


@pytest.fixture(scope="module")
def raised() -> Iterator[PolicyHost]:
    host = start({RULE: {"quotas": {"aws/classic": 30, "aws/addresses": 3}}})
    yield host
    host.close()


def many(number: int, cloud: str, **spec: object) -> list[AnalyzedResource]:
    return [ours(cloud), *(balanced(f"web-{each}", **spec) for each in range(number))]


@pytest.mark.parametrize(("cloud", "spec", "quota"), [("aws", {}, 20), ("aws", NLB, 50), ("alicloud", NLB, 60)])
def test_load_balancers_beyond_the_quota_are_reported_once(
    pack: PolicyHost, cloud: str, spec: dict[str, object], quota: int
) -> None:
    assert said(pack, RULE, *many(quota, cloud, **spec)) == []
    [finding] = said(pack, RULE, *many(quota + 1, cloud, **spec))
    assert (finding.level, finding.severity) == ("advisory", "low")
    assert f"load balancers are more than the quota of {quota} on {cloud}" in finding.message


def test_services_that_share_a_load_balancer_need_no_other(pack: PolicyHost) -> None:
    annotations = {f"{BETA}alibaba-cloud-loadbalancer-id": "lb-0a"}
    sharing = [balanced(f"web-{each}", port(each), annotations=annotations) for each in range(1, 70)]

    assert said(pack, RULE, ours("alicloud"), *sharing) == []


def test_addresses_beyond_the_quota_are_reported(pack: PolicyHost) -> None:
    addresses = [resource("aws:ec2/eip:Eip", {}, f"eip-{each}") for each in range(6)]

    assert said(pack, RULE, *addresses[:5]) == []
    assert said(pack, RULE, *addresses)[0].message == (
        "6 addresses are more than the quota of 5 on aws: request a higher one"
    )


def test_listeners_beyond_the_quota_are_reported_at_the_service(pack: PolicyHost) -> None:
    web = balanced("web", *(port(each) for each in range(1, 52)))

    [finding] = said(pack, RULE, ours("mycloud"), web)

    assert finding.urn == web.urn
    assert "51 listeners of a dlb load balancer are more than the quota of 50" in finding.message


def test_ports_for_tcp_and_udp_may_be_one_listener(pack: PolicyHost) -> None:
    ports = [port(each, f"{protocol}{each}", protocol=protocol) for each in range(1, 51) for protocol in ("TCP", "UDP")]

    assert said(pack, RULE, ours("aws"), balanced("web", *ports, **NLB)) == []


@pytest.mark.integration
def test_a_quota_of_the_account_replaces_the_default(raised: PolicyHost) -> None:
    addresses = [resource("aws:ec2/eip:Eip", {}, f"eip-{each}") for each in range(4)]

    assert said(raised, RULE, *many(30, "aws")) == []
    assert len(said(raised, RULE, *many(31, "aws"))) == 1
    assert len(said(raised, RULE, *addresses)) == 1


@pytest.mark.integration
def test_a_quota_that_is_no_number_is_refused() -> None:
    with pytest.raises(PolicyError, match="quotas"):
        start({RULE: {"quotas": {"aws/classic": "many"}}})


def test_unknown_ports_are_not_evaluated(pack: PolicyHost) -> None:
    unknown = balanced("web", UNKNOWN)

    assert [finding.level for finding in said(pack, RULE, ours("mycloud"), unknown)] == ["not-evaluated"]
