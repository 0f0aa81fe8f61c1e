"""NLB's catalogue: every annotation with its lowest, highest, refused and default value."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.annotation_entries import LEGACY_PREFIX, PREFIX
from cloud_controller.clouds.alicloud.nlb.annotations import NLB
from cloud_controller.load_balancers.catalogue import Annotation

NUMBERS = [entry for entry in NLB if entry.type is int]
CHOICES = [entry for entry in NLB if entry.allowed and not entry.ignored]

RANGES = {
    "cps": (0, 1_000_000, 0),
    "idle_timeout": (10, 900, 900),
    "connection_drain_timeout": (10, 900, 10),
    "weight": (1, 100, 100),
    "health_check_connect_port": (0, 65535, 0),
    "health_check_connect_timeout": (1, 300, 5),
    "health_check_interval": (1, 50, 10),
    "healthy_threshold": (2, 10, 2),
    "unhealthy_threshold": (2, 10, 2),
}
"""By argument: lowest, highest, default, as requirements 002 (section 4.4.1) and the API say."""


def name(entry: Annotation) -> str:
    return entry.argument


def test_every_number_has_the_documented_range_and_default() -> None:
    assert {entry.argument: (entry.minimum, entry.maximum, entry.default) for entry in NUMBERS} == RANGES


@pytest.mark.parametrize("entry", NUMBERS, ids=name)
def test_a_number_is_accepted_up_to_its_bounds_and_refused_beyond_them(entry: Annotation) -> None:
    low, high, _ = RANGES[entry.argument]

    assert [entry.parse(str(low)), entry.parse(f" {high} ")] == [low, high]
    for text in (str(low - 1), str(high + 1), "many", "", "1.5"):
        with pytest.raises(InvalidConfiguration, match=entry.name.rpartition("/")[2]):
            entry.parse(text)


@pytest.mark.parametrize("entry", CHOICES, ids=name)
def test_a_choice_accepts_its_words_alone(entry: Annotation) -> None:
    assert [entry.parse(word) for word in entry.allowed] == [*entry.allowed]
    assert entry.default is None or entry.default in entry.allowed
    with pytest.raises(InvalidConfiguration, match=entry.allowed[-1]):
        entry.parse("something-else")


@pytest.mark.parametrize(
    ("argument", "good", "bad"),
    [
        ("name", ("ab", "a" * 128), ("a", "1b", "a" * 129, "a b")),
        ("id", ("nlb-1",), ("lb-1", "nlb-", "NLB-1")),
        ("resource_group_id", ("rg-1",), ("1",)),
        ("bandwidth_package_id", ("cbwp-1",), ("cbw-1",)),
        ("cert_id", ("1-cn-hangzhou",), ("a,b",)),
        ("cacert_id", ("1ef1-2a",), ("a b",)),
        (
            "tls_cipher_policy",
            ("tls_cipher_policy_1_1", "tls_cipher_policy_1_2_strict_with_1_3", "tls-own"),
            ("tls_cipher_policy_1_3", "strict"),
        ),
        ("health_check_uri", ("/", "/a?b=c", "/" + "a" * 79), ("healthz", "/" + "a" * 80, "/a b")),
        ("health_check_domain", ("$SERVER_IP", "a.example.com"), ("a_b", "a" * 81)),
        ("health_check_httpcode", ("http_2xx", "http_2xx,http_5xx"), ("200", "http_1xx")),
        ("backend_label", ("a=b", "a=b,c="), ("a", "a=b c=d")),
    ],
)
def test_a_text_has_its_form(argument: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    entry = NLB.by_argument[argument]

    assert tuple(map(entry.parse, good)) == good
    for text in bad:
        with pytest.raises(InvalidConfiguration):
            entry.parse(text)


def test_every_annotation_has_a_legacy_name_and_a_tested_form() -> None:
    tested = {*RANGES, *(entry.argument for entry in CHOICES)}
    tested |= {entry.argument for entry in NLB if entry.pattern or entry.type in (bool, tuple) or entry.ignored}

    assert {entry.argument for entry in NLB} == tested
    assert {entry.aliases for entry in NLB if entry.name.startswith(PREFIX)} == {
        (entry.name.replace(PREFIX, LEGACY_PREFIX),) for entry in NLB if entry.name.startswith(PREFIX)
    }
    assert len([entry for entry in NLB if not entry.ignored]) >= 40


def test_empty_annotations_count_as_missing_except_the_security_groups() -> None:
    given = {f"{PREFIX}cps": " ", f"{PREFIX}security-group-ids": "", f"{LEGACY_PREFIX}weight": "5"}

    assert NLB.parse(given).given == {"security_group_ids": (), "weight": 5}
    assert NLB.value(given, "security_group_ids") == ()


@pytest.mark.parametrize("entry", [entry for entry in NLB if entry.argument != "security_group_ids"], ids=name)
def test_an_empty_annotation_has_the_default_whichever_name_it_has(entry: Annotation) -> None:
    for given in ({each: " "} for each in (entry.name, *entry.aliases)):
        assert NLB.value(given, entry.argument) == entry.default
        assert not NLB.parse(given).given
