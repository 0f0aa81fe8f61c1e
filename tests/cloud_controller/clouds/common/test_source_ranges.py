"""Source ranges: the field or else the annotation, in the IP versions that the load balancer has."""

from __future__ import annotations

import pytest

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.common.source_ranges import EVERYBODY, FIELD, field_and_texts, source_ranges
from cloud_controller.load_balancers.annotation import Annotation, Mutability
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.restrictions import SOURCE_RANGES

CATALOGUE = Catalogue(
    "a cloud",
    ("a-cloud/",),
    (
        Annotation(
            name=SOURCE_RANGES,
            argument="load_balancer_source_ranges",
            sets="source_ranges",
            type=tuple,
            description="The clients.",
            applies_to="the load balancer",
            mutability=Mutability.IN_PLACE,
            since="1",
            source="Kubernetes",
        ),
    ),
)


def ranges(field: list[str] | None = None, annotation: str | None = None, *versions: int) -> tuple[str, ...]:
    settings = CATALOGUE.parse({SOURCE_RANGES: annotation} if annotation else None)
    return tuple(map(str, source_ranges({"loadBalancerSourceRanges": field}, settings, versions or (4,))))


@pytest.mark.parametrize(
    ("field", "annotation", "expected"),
    [
        (None, None, ()),
        (None, "10.0.0.0/8, 192.0.2.7/24", ("10.0.0.0/8", "192.0.2.0/24")),
        (["203.0.113.0/24"], "10.0.0.0/8", ("203.0.113.0/24",)),
        (["203.0.113.0/24", "10.0.0.0/8", " 10.1.2.3/8"], None, ("10.0.0.0/8", "203.0.113.0/24")),
        (["2001:db8::/32", "10.0.0.0/8"], None, ("10.0.0.0/8",)),
    ],
)
def test_ranges_are_the_fields_or_else_the_annotations(
    field: list[str] | None, annotation: str | None, expected: tuple[str, ...]
) -> None:
    assert ranges(field, annotation) == expected


def test_a_load_balancer_with_both_ip_versions_takes_the_ranges_of_both() -> None:
    assert ranges(["2001:db8::/32", "10.0.0.0/8"], None, 4, 6) == ("10.0.0.0/8", "2001:db8::/32")
    assert ranges(["2001:db8::/32"], None, 4, 6) == ("2001:db8::/32",)
    assert {str(network) for network in EVERYBODY.values()} == {"0.0.0.0/0", "::/0"}


@pytest.mark.parametrize(
    ("field", "annotation", "message"),
    [
        (["10.0.0.0/33"], None, r"^spec.loadBalancerSourceRanges: '10.0.0.0/33' is not a CIDR \(allowed: such as 192"),
        (None, "home", f"^annotation {SOURCE_RANGES}: 'home' is not a CIDR"),
        (["::/0"], None, f"^{FIELD}: contains only IPv6 ranges, .* only IPv4 .*at least one IPv4 range"),
    ],
)
def test_ranges_that_would_admit_all_clients_or_none_are_refused(
    field: list[str] | None, annotation: str | None, message: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=message):
        ranges(field, annotation)


def test_only_ipv4_ranges_are_refused_for_a_load_balancer_with_only_ipv6_addresses() -> None:
    with pytest.raises(InvalidConfiguration, match=r"only IPv4 ranges, .* only IPv6 addresses"):
        ranges(["10.0.0.0/8"], None, 6)


def test_the_texts_are_as_written_with_their_field() -> None:
    settings = CATALOGUE.parse({SOURCE_RANGES: "home"})

    assert field_and_texts({}, settings) == (f"annotation {SOURCE_RANGES}", ("home",))
    assert field_and_texts({"loadBalancerSourceRanges": ["x"]}, settings) == (FIELD, ("x",))
