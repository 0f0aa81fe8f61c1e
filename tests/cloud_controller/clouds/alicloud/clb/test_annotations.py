"""CLB's catalogue: every annotation of the requirements and of Alibaba's controller, with limits and effect."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.annotation_entries import LEGACY_PREFIX, PREFIX
from cloud_controller.clouds.alicloud.clb.annotations import CLB
from cloud_controller.load_balancers.catalogue import Annotation, Mutability
from tests.cloud_controller.clouds.alicloud.clb.services import built, effect

_REQUIRED = """
address-type id spec name vswitch-id instance-charge-type charge-type bandwidth protocol-port scheduler
persistence-timeout sticky-session sticky-session-type cookie-timeout health-check-flag health-check-type
health-check-connect-port health-check-connect-timeout health-check-interval healthy-threshold unhealthy-threshold
health-check-uri health-check-domain health-check-method cert-id tls-cipher-policy forward-port backend-label
service.beta.kubernetes.io/backend-type delete-protection modification-protection force-override-listeners
additional-resource-tags resource-group-id ip-version
"""
_OF_THE_PEER = """
idle-timeout connection-drain connection-drain-timeout ignore-weight-update preserve-lb-on-delete network-type
master-zoneid slave-zoneid external-ip-type hostname ip acl-status acl-id acl-type http2-enabled health-check-switch
health-check-timeout health-check-httpcode cookie vgroup-port xforwardedfor-proto xforwardedfor-slbport
xforwardedfor-clientsrcport request-timeout established-timeout proxy-protocol domain-extensions backend-ip-version
remove-unscheduled-backend weight default-weight type tunnel-type service.beta.kubernetes.io/class
"""
REQUIRED, OF_THE_PEER = _REQUIRED.split(), _OF_THE_PEER.split()
NUMBERS = [entry for entry in CLB if entry.type is int and not entry.ignored]
BESIDE = {
    "bandwidth": {"charge-type": "paybybandwidth", "instance-charge-type": "PayBySpec"},
    "connection_drain_timeout": {"connection-drain": "on"},
    "cookie_timeout": {"protocol-port": "http:80", "sticky-session": "on"},
    "health_check_timeout": {"protocol-port": "http:80", "health-check-flag": "on"},
    "idle_timeout": {"protocol-port": "http:80"},
    "request_timeout": {"protocol-port": "http:80"},
    "spec": {"instance-charge-type": "PayBySpec"},
    "charge_type": {"instance-charge-type": "PayBySpec"},
    "ip": {"address-type": "intranet"},
    "vswitch_id": {"address-type": "intranet"},
    "health_check_uri": {"health-check-type": "http"},
    "health_check_domain": {"health-check-type": "http"},
    "health_check_httpcode": {"health-check-type": "http"},
    "health_check_method": {"protocol-port": "http:80", "health-check-flag": "on"},
    "sticky_session": {"protocol-port": "http:80"},
    "sticky_session_type": {"protocol-port": "http:80", "sticky-session": "on", "cookie": "SID"},
    "cookie": {"protocol-port": "http:80", "sticky-session": "on", "sticky-session-type": "server"},
    "cert_id": {"protocol-port": "https:443"},
    "tls_cipher_policy": {"protocol-port": "https:443", "cert-id": "cert-1"},
    "http2_enabled": {"protocol-port": "https:443", "cert-id": "cert-1"},
    "acl_type": {"acl-status": "on", "acl-id": "acl-1"},
    **{f"xforwardedfor_{each}": {"protocol-port": "http:80"} for each in ("proto", "slbport", "clientsrcport")},
}
"""What an annotation needs beside it to have an effect."""
TEXTS = [
    ("address-type", "intranet", "internet"),
    ("vswitch-id", "vsw-h", "vsw-k"),
    ("ip", "192.168.0.200", None),
    ("ip-version", "ipv6", "ipv4"),
    ("master-zoneid", "cn-hangzhou-h", None),
    ("slave-zoneid", "cn-hangzhou-k", None),
    ("resource-group-id", "rg-1", None),
    ("instance-charge-type", "PayBySpec", "PayByCLCU"),
    ("spec", "slb.s3.large", "slb.s1.small"),
    ("charge-type", "paybybandwidth", "paybytraffic"),
    ("delete-protection", "off", "on"),
    ("modification-protection", "NonProtection", "ConsoleProtection"),
    ("cert-id", "cert-2", ...),
    ("tls-cipher-policy", "tls_cipher_policy_1_2_strict_with_1_3", "tls_cipher_policy_1_0"),
    ("http2-enabled", "off", "on"),
    *(("scheduler", each, "wrr") for each in ("rr", "wlc", "sch", "tch")),
    ("connection-drain", "on", "off"),
    ("proxy-protocol", "on", "off"),
    ("sticky-session", "on", "off"),
    ("sticky-session-type", "server", "insert"),
    ("cookie", "SESSION", ...),
    *((f"xforwardedfor-{each}", "on", "off") for each in ("proto", "slbport", "clientsrcport")),
    ("acl-type", "black", "white"),
    ("health-check-flag", "off", "on"),
    ("health-check-switch", "off", "on"),
    ("health-check-type", "http", "tcp"),
    ("health-check-uri", "/ready", "/"),
    ("health-check-domain", "a.example.com", None),
    ("health-check-method", "get", "head"),
    ("health-check-httpcode", "http_2xx,http_3xx", "http_2xx"),
]


def port_of(beside: dict[str, str]) -> int:
    return 443 if "https:443" in beside.values() else 80


@pytest.mark.parametrize("name", [*REQUIRED, *OF_THE_PEER])
def test_every_required_annotation_is_known_under_both_prefixes(name: str) -> None:
    entry = CLB.by_name.get(name if "/" in name else PREFIX + name)

    assert entry is not None
    assert entry.source
    assert entry.ignored or entry.default is not None or entry.default_note
    assert "/" in name or CLB.by_name[LEGACY_PREFIX + name] is entry


def test_all_annotations_of_the_requirements_are_offered() -> None:
    assert len(REQUIRED) == 35
    assert not [name for name in REQUIRED if CLB.by_name[name if "/" in name else PREFIX + name].ignored]


@pytest.mark.parametrize("entry", NUMBERS, ids=lambda entry: entry.argument)
def test_a_number_is_taken_from_lowest_to_highest_and_refused_beyond(entry: Annotation) -> None:
    assert entry.minimum is not None and entry.maximum is not None
    short, beside = entry.name.removeprefix(PREFIX), BESIDE.get(entry.argument, {})
    for number in (entry.minimum, entry.maximum):
        found = built({**beside, short: str(number)})
        if entry.argument != "default_weight":
            assert effect(found, entry.sets) == number
        else:
            assert {member.weight for member in found.model.pools[0].members} == {number}
    for text in (str(entry.minimum - 1), str(entry.maximum + 1), "soon"):
        with pytest.raises(InvalidConfiguration, match=f"{short}: .*allowed: an integer from {entry.minimum:,} to"):
            built({**beside, short: text})
    if entry.argument != "default_weight":
        assert effect(built(beside), entry.sets) == entry.default


@pytest.mark.parametrize(("name", "text", "default"), TEXTS)
def test_a_text_has_its_effect_and_a_wrong_one_is_refused(name: str, text: str, default: object) -> None:
    entry = CLB.by_name[PREFIX + name]
    beside = BESIDE.get(entry.argument, {})

    assert effect(built({**beside, name: text}), entry.sets, port_of(beside)) == text
    if default is not ...:
        assert effect(built(beside), entry.sets, port_of(beside)) == default
    with pytest.raises(InvalidConfiguration, match=name):
        built({**beside, name: " ; "})


REPLACING = {"address-type", "vswitch-id", "ip", "ip-version", "id", "type"}
ONLY_AT_CREATION = {"master-zoneid", "slave-zoneid", "resource-group-id"}


def test_only_a_change_of_the_address_replaces_the_load_balancer() -> None:
    def of(mutability: Mutability) -> set[str]:
        return {entry.name.removeprefix(PREFIX) for entry in CLB if entry.mutability is mutability}

    assert of(Mutability.REPLACE) == REPLACING
    assert of(Mutability.CREATE_ONLY) == ONLY_AT_CREATION


@pytest.mark.parametrize(
    ("kind", "words"), [("alb", "Ingress of class alb with an AlbConfig"), ("nlb", "alibabacloud.com/nlb")]
)
def test_a_service_that_asks_for_another_kind_is_told_how_to_get_one(kind: str, words: str) -> None:
    with pytest.raises(InvalidConfiguration, match=words):
        built({"type": kind})


def test_annotations_under_the_older_prefix_have_the_same_effect() -> None:
    found = built({f"{LEGACY_PREFIX}scheduler": "wlc", f"{LEGACY_PREFIX}bandwidth": "7"})

    assert effect(found, "listener.scheduler") == "wlc"
    assert [each.value for each in found.ignored] == [7]
