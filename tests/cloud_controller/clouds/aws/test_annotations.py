"""AWS's catalogue: every annotation of upstream and of the requirements is in it, and users' values are taken."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import CATALOGUE, PREFIX
from cloud_controller.load_balancers.catalogue import Annotation, Mutability

OF_UPSTREAM = [
    "access-log-emit-interval",
    "access-log-enabled",
    "access-log-s3-bucket-name",
    "access-log-s3-bucket-prefix",
    "additional-resource-tags",
    "backend-protocol",
    "connection-draining-enabled",
    "connection-draining-timeout",
    "connection-idle-timeout",
    "cross-zone-load-balancing-enabled",
    "eip-allocations",
    "extra-security-groups",
    "healthcheck-healthy-threshold",
    "healthcheck-interval",
    "healthcheck-path",
    "healthcheck-port",
    "healthcheck-protocol",
    "healthcheck-timeout",
    "healthcheck-unhealthy-threshold",
    "internal",
    "private-ipv4-addresses",
    "proxy-protocol",
    "security-groups",
    "ssl-cert",
    "ssl-negotiation-policy",
    "ssl-ports",
    "subnets",
    "target-group-attributes",
    "target-node-labels",
    "type",
]

MORE_OF_THE_REQUIREMENTS = ["nlb-target-type", "scheme"]
"""The others are upstream's."""

OF_THE_AWS_LOAD_BALANCER_CONTROLLER = [
    "access-log-enabled",
    "access-log-s3-bucket-name",
    "access-log-s3-bucket-prefix",
    "additional-resource-tags",
    "alpn-policy",
    "attributes",
    "backend-protocol",
    "cross-zone-load-balancing-enabled",
    "disable-nlb-sg",
    "eip-allocations",
    "eip-allocations-discovery-tags",
    "enable-icmp-for-path-mtu-discovery",
    "enable-prefix-for-ipv6-source-nat",
    "enable-tcp-udp-listener",
    "healthcheck-healthy-threshold",
    "healthcheck-interval",
    "healthcheck-path",
    "healthcheck-port",
    "healthcheck-protocol",
    "healthcheck-success-codes",
    "healthcheck-timeout",
    "healthcheck-unhealthy-threshold",
    "inbound-sg-rules-on-private-link-traffic",
    "internal",
    "ip-address-type",
    "ipv6-addresses",
    "listener-attributes.TCP-80",
    "manage-backend-security-group-rules",
    "minimum-load-balancer-capacity",
    "multi-cluster-target-group",
    "name",
    "nlb-target-type",
    "private-ipv4-addresses",
    "proxy-protocol",
    "proxy-protocol-per-target-group",
    "quic-enabled-ports",
    "scheme",
    "security-group-prefix-lists",
    "security-groups",
    "source-nat-ipv6-prefixes",
    "ssl-cert",
    "ssl-negotiation-policy",
    "ssl-ports",
    "subnets",
    "target-group-attributes",
    "target-group-attributes.80",
    "target-node-labels",
    "type",
]
"""Its pkg/annotations/constants.go, the suffixes of Services, of 2026."""

RESTRICTING = {"inbound-sg-rules-on-private-link-traffic", "manage-backend-security-group-rules"}
"""Those of its annotations that are not honoured here and restrict access."""


def test_upstream_has_thirty_annotations_and_each_is_offered_and_says_who_else_honours_it() -> None:
    assert len(OF_UPSTREAM) == 30
    for name in OF_UPSTREAM:
        entry = CATALOGUE.by_name[f"{PREFIX}{name}"]
        assert not entry.ignored, name
        assert "cloud-provider-aws" in (entry.honoured_by or ""), name


@pytest.mark.parametrize("name", MORE_OF_THE_REQUIREMENTS)
def test_every_annotation_of_the_requirements_is_offered(name: str) -> None:
    assert not CATALOGUE.by_name[f"{PREFIX}{name}"].ignored


@pytest.mark.parametrize("name", OF_THE_AWS_LOAD_BALANCER_CONTROLLER)
def test_a_service_that_was_the_aws_load_balancer_controllers_is_not_refused_for_what_it_knew(name: str) -> None:
    entry = CATALOGUE.entry(f"{PREFIX}{name}")

    assert entry is not None
    assert entry.honoured_by


def test_what_is_not_honoured_is_marked_by_whether_it_restricts_access() -> None:
    others = {entry.name.removeprefix(PREFIX): entry for entry in CATALOGUE if entry.ignored}

    assert {name for name, entry in others.items() if entry.restricts} == RESTRICTING


@pytest.mark.parametrize("entry", [each for each in CATALOGUE if each.ignored], ids=lambda each: each.argument)
def test_what_is_not_honoured_is_ignored_by_name_unless_it_restricts_access(entry: Annotation) -> None:
    if entry.restricts:
        with pytest.raises(InvalidConfiguration, match="'whatever': "):
            CATALOGUE.parse({entry.name: "whatever"})
    texts = entry.harmless if entry.restricts else ("whatever",)

    assert all(CATALOGUE.parse({entry.name: text}).ignored == (entry,) for text in texts)


@pytest.mark.parametrize(
    "name",
    [
        "internl",
        "intern",
        "internal-lb",
        "schema",
        "sheme",
        "private",
        "inbound-cidrs",
        "source-ranges",
        "wafv2-acl-arn",
    ],
)
@pytest.mark.parametrize("text", ["true", "internal", "10.0.0.0/8", "false"])
def test_a_name_that_no_controller_knows_is_refused_whatever_it_says(name: str, text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="unknown on aws"):
        CATALOGUE.parse({f"{PREFIX}{name}": text})


def test_every_entry_says_who_else_honours_it_and_those_that_do_nothing_why() -> None:
    assert [entry.name for entry in CATALOGUE if not entry.honoured_by] == []
    controllers = [entry for entry in CATALOGUE if entry.ignored]
    assert controllers
    assert all("AWS Load Balancer Controller" in (entry.honoured_by or "") for entry in controllers)


@pytest.mark.parametrize("argument", ["type", "internal", "scheme", "eip_allocations", "private_ipv4_addresses"])
def test_what_aws_cannot_change_replaces_the_load_balancer(argument: str) -> None:
    entry = CATALOGUE.by_argument[argument]

    assert CATALOGUE.mutability(entry.sets) is Mutability.REPLACE


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("internal", "true", True),
        ("internal", "false", False),
        ("internal", "0.0.0.0/0", True),
        ("internal", "True", True),
        ("internal", "yes", True),
        ("access-log-enabled", "True", True),
        ("access-log-enabled", "0", False),
        ("healthcheck-protocol", "http", "HTTP"),
        ("backend-protocol", "HTTPS", "https"),
        ("healthcheck-port", "traffic-port", "traffic-port"),
        ("type", "clb", "clb"),
        ("ssl-ports", "443, https", ("443", "https")),
    ],
)
def test_the_values_that_users_have_are_taken(name: str, text: str, value: object) -> None:
    (found,) = CATALOGUE.parse({f"{PREFIX}{name}": text}).given.values()

    assert found == value


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("internal", "False", "true, false"),
        ("internal", "no", "true, false"),
        ("type", "alb", "are for Ingresses"),
        ("type", "network", "nlb, classic"),
        ("proxy-protocol", "true", r"\*"),
        ("access-log-emit-interval", "10", "5, 60"),
        ("healthcheck-interval", "4", "from 5 to 300"),
        ("healthcheck-path", "ready", "begins with /"),
        ("healthcheck-port", "http", "traffic-port"),
        ("ssl-negotiation-policy", "a policy", "security policy"),
        ("manage-backend-security-group-rules", "false", "DisableSecurityGroupIngress"),
        ("manage-backend-security-group-rules", "False", "DisableSecurityGroupIngress"),
        ("conection-idle-timeout", "60", "did you mean .*connection-idle-timeout"),
    ],
)
def test_what_could_be_meant_otherwise_is_refused_and_says_what_is_allowed(name: str, text: str, hint: str) -> None:
    with pytest.raises(InvalidConfiguration, match=hint):
        CATALOGUE.parse({f"{PREFIX}{name}": text})


def test_an_empty_annotation_says_nothing() -> None:
    assert CATALOGUE.parse({f"{PREFIX}ssl-cert": "", f"{PREFIX}type": " ", "a": "b"}).given == {}
