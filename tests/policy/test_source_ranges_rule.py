"""Rule `lb-service-limit-sources`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, Finding, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.services import ACK, managed, ours, said
from tests.policy_objects import EXEMPT, of, service, start

RULE = "lb-service-limit-sources"
RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
SCHEME = "service.beta.kubernetes.io/dlb-scheme"
AWS = "service.beta.kubernetes.io/aws-load-balancer"


def balancer(ranges: Any = None, name: str = "web", **options: Any) -> AnalyzedResource:
    spec = {"loadBalancerSourceRanges": ranges, **options.pop("spec", {})}
    return service(name, spec=spec, **options)


def found(pack: PolicyHost, *stack: AnalyzedResource) -> list[Finding]:
    return said(pack, RULE, *stack)


def test_a_public_load_balancer_without_source_ranges_is_reported(pack: PolicyHost) -> None:
    [finding] = found(pack, balancer())

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "medium")
    assert finding.message == "the load balancer is public and has no source ranges: anyone may connect"


@pytest.mark.parametrize(
    "ranges",
    [
        ["0.0.0.0/0"],
        ["::/0"],
        ["192.0.2.0/24", "0.0.0.0/0"],
        ["10.0.0.0/0"],
        [" 0.0.0.0/0 "],
        ["0.0.0.0/1", "128.0.0.0/1"],
        ["192.0.2.0/24", "::/1", "8000::/1"],
        [UNKNOWN, "0.0.0.0/0"],
    ],
)
def test_ranges_that_together_are_every_address_are_no_limit(pack: PolicyHost, ranges: list[Any]) -> None:
    [finding] = found(pack, balancer(ranges))

    assert finding.message == "the load balancer is public and spec.loadBalancerSourceRanges allows every address"


@pytest.mark.parametrize("text", ["0.0.0.0/0", "192.0.2.0/24, ::/0"])
def test_source_ranges_of_the_annotation_are_judged_like_the_field(pack: PolicyHost, text: str) -> None:
    [finding] = found(pack, balancer(annotations={RANGES: text}))

    assert finding.message == f"the load balancer is public and annotation {RANGES} allows every address"


@pytest.mark.parametrize(
    "limited",
    [
        balancer(["192.0.2.0/24", "2001:db8::/32"]),
        balancer(["11.0.0.0/8", "2001::/16", "fc00::/7"]),
        balancer([], annotations={RANGES: "192.0.2.0/24,198.51.100.0/24"}),
        balancer(["192.0.2.0/24"], annotations={RANGES: "0.0.0.0/0"}),
    ],
)
def test_a_limit_in_the_field_or_the_annotation_passes_and_the_field_wins(
    pack: PolicyHost, limited: AnalyzedResource
) -> None:
    assert found(pack, limited) == []


def test_prefix_lists_are_a_limit_unless_ranges_allow_every_address(pack: PolicyHost) -> None:
    lists = {f"{AWS}-security-group-prefix-lists": "pl-0123456789abcdef0"}

    assert found(pack, balancer([], annotations=lists)) == []
    assert of(found(pack, balancer(["0.0.0.0/0"], annotations=lists)), RULE) == ["advisory"]


def test_an_empty_annotation_is_no_limit(pack: PolicyHost) -> None:
    assert of(found(pack, balancer([], annotations={RANGES: " , "})), RULE) == ["advisory"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (SCHEME, "internal"),
        ("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type", "intranet"),
        (f"{AWS}-internal", "true"),
        (f"{AWS}-internal", "0.0.0.0/0"),
        (f"{AWS}-scheme", "internal"),
        ("service.beta.kubernetes.io/azure-load-balancer-internal", "true"),
        ("networking.gke.io/load-balancer-type", "Internal"),
        ("cloud.google.com/load-balancer-type", "Internal"),
        ("service.beta.kubernetes.io/openstack-internal-load-balancer", "true"),
        ("service.beta.kubernetes.io/tencentcloud-loadbalancer-type", "private"),
        ("service.kubernetes.io/qcloud-loadbalancer-internal-subnetid", "subnet-1"),
        ("example.com/scheme", "private"),
    ],
)
def test_an_internal_load_balancer_needs_no_source_ranges(pack: PolicyHost, name: str, value: str) -> None:
    assert found(pack, balancer(annotations={name: value})) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (SCHEME, "internet-facing"),
        ("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type", "internet"),
        (f"{AWS}-internal", "false"),
        (f"{AWS}-scheme", "internet-facing"),
        ("service.beta.kubernetes.io/tencentcloud-loadbalancer-type", "public"),
        ("service.beta.kubernetes.io/azure-load-balancer-internal", "false"),
        ("networking.gke.io/load-balancer-type", "External"),
        ("example.com/scheme", "public"),
    ],
)
def test_an_explicitly_public_load_balancer_needs_source_ranges(pack: PolicyHost, name: str, value: str) -> None:
    assert of(found(pack, balancer(annotations={name: value})), RULE) == ["advisory"]


def test_a_class_that_the_settings_call_internal_needs_no_source_ranges(pack: PolicyHost) -> None:
    assert found(pack, balancer(spec={"loadBalancerClass": "example.com/internal"})) == []
    assert of(found(pack, balancer(spec={"loadBalancerClass": "example.com/other"})), RULE) == ["advisory"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("service.beta.kubernetes.io/dlb-id", "lb-0123"),
        (f"{AWS}-security-groups", "sg-1"),
        ("service.beta.kubernetes.io/azure-allowed-service-tags", "AzureFrontDoor"),
        ("example.com/access-list", "acl-1"),
    ],
)
def test_other_limits_of_who_may_connect_pass(pack: PolicyHost, name: str, value: str) -> None:
    assert found(pack, balancer(annotations={name: value})) == []


def test_an_access_list_counts_once_it_is_switched_on(pack: PolicyHost) -> None:
    prefix = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-acl"
    listed = {f"{prefix}-type": "white", f"{prefix}-id": "acl-1"}

    assert of(found(pack, balancer(annotations=listed)), RULE) == ["advisory"]
    assert of(found(pack, balancer(annotations={**listed, f"{prefix}-status": "off"})), RULE) == ["advisory"]
    assert found(pack, balancer(annotations={**listed, f"{prefix}-status": "on"})) == []
    assert of(found(pack, balancer(annotations={**listed, f"{prefix}-status": UNKNOWN})), RULE) == ["not-evaluated"]


def test_services_without_a_load_balancer_and_exempt_ones_are_left_alone(pack: PolicyHost) -> None:
    assert found(pack, balancer(type="ClusterIP")) == []
    assert found(pack, balancer(type=None)) == []
    assert found(pack, balancer(name=EXEMPT)) == []


@pytest.mark.parametrize(
    "unknown",
    [
        balancer(UNKNOWN),
        balancer([UNKNOWN]),
        balancer(["192.0.2.0/24", UNKNOWN]),
        balancer(annotations=UNKNOWN),
        balancer(annotations={SCHEME: UNKNOWN}),
        balancer(annotations={RANGES: UNKNOWN}),
        balancer(type=UNKNOWN),
        balancer(spec={"loadBalancerClass": UNKNOWN}),
    ],
)
def test_an_answer_that_depends_on_an_unknown_value_is_not_evaluated(
    pack: PolicyHost, unknown: AnalyzedResource
) -> None:
    assert of(found(pack, unknown), RULE) == ["not-evaluated"]


@pytest.mark.parametrize(
    "known",
    [
        balancer(["192.0.2.0/24"], annotations=UNKNOWN),
        balancer(["192.0.2.0/24"], type=UNKNOWN),
        balancer(UNKNOWN, annotations={SCHEME: "internal"}),
        balancer(UNKNOWN, type="ClusterIP"),
    ],
)
def test_an_unknown_value_that_decides_nothing_is_ignored(pack: PolicyHost, known: AnalyzedResource) -> None:
    assert of(found(pack, known), RULE) == []


@pytest.mark.parametrize(
    ("ranges", "wide"),
    [
        (["0.0.0.0/1"], "a part of IPv4 that is wider than /8"),
        (["192.0.2.0/24", "64.0.0.0/4"], "a part of IPv4 that is wider than /8"),
        (["12.0.0.0/8", "13.0.0.0/8"], "a part of IPv4 that is wider than /8"),
        (["2000::/3"], "a part of IPv6 that is wider than /16"),
        ([UNKNOWN, "0.0.0.0/1"], "a part of IPv4 that is wider than /8"),
    ],
)
def test_a_large_part_of_the_internet_is_no_limit(pack: PolicyHost, ranges: list[Any], wide: str) -> None:
    [finding] = found(pack, balancer(ranges))

    assert finding.message == f"the load balancer is public and spec.loadBalancerSourceRanges allows {wide}"


@pytest.mark.integration
def test_the_widest_prefix_is_a_setting() -> None:
    strict = start({RULE: {"widestPrefix": 24, "widestPrefixIPv6": 48}})
    try:
        assert found(strict, balancer(["192.0.2.0/24", "2001:db8::/48"])) == []
        assert "wider than /24" in found(strict, balancer(["192.0.2.0/23"]))[0].message
        assert "wider than /48" in found(strict, balancer(["2001:db8::/47"]))[0].message
    finally:
        strict.close()


@pytest.mark.parametrize("cloud", ["alicloud", "mycloud"])
def test_another_clouds_annotation_makes_no_load_balancer_internal(pack: PolicyHost, cloud: str) -> None:
    internal = balancer([], annotations={f"{AWS}-internal": "true"})

    assert found(pack, ours("aws"), internal) == []
    assert [finding.level for finding in found(pack, ours(cloud), internal)] == ["advisory"]
    assert [finding.level for finding in found(pack, managed(ACK), internal)] == ["advisory"]


@pytest.mark.parametrize("cloud", ["alicloud", "mycloud"])
@pytest.mark.parametrize(
    ("name", "value"), [("security-groups", "sg-0123456789abcdef0"), ("security-group-prefix-lists", "pl-1")]
)
def test_another_clouds_annotation_limits_nobody(pack: PolicyHost, cloud: str, name: str, value: str) -> None:
    limited = balancer([], annotations={f"{AWS}-{name}": value})

    assert found(pack, ours("aws"), limited) == []
    assert [finding.level for finding in found(pack, ours(cloud), limited)] == ["advisory"]
