"""Which resources of other people annotations may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from cloud_controller import clouds
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancers.catalogue import Annotation, Catalogue
from cloud_controller.load_balancers.nameable import KINDS, Nameable, Named, Naming
from cloud_controller.load_balancers.refusals import refuse
from cloud_controller.load_balancers.terms import ITEM, words
from tests.cloud_controller.load_balancers.entries import entry

ENTRY = entry("subnets", type=tuple)
CATALOGUE = Catalogue("cloud", ("example.com/",), (ENTRY,))
CATALOGUES = [kind for cloud in clouds.descriptors() for kind in cloud.catalogue.kinds or (cloud.catalogue,)]
FREE_TEXTS = [
    pytest.param(catalogue, entry, id=f"{catalogue.cloud}{catalogue.kind}-{entry.argument}")
    for catalogue in CATALOGUES
    for entry in catalogue
    if entry.type in (str, tuple) and not entry.allowed and not entry.ignored
]
CERTIFICATE = "arn:aws:acm:eu-west-1:123456789012:certificate/1"


def certificate(*, whose: str | None = None) -> Named:
    return Named("certificate", "annotation example.com/cert", (CERTIFICATE,), whose)


def group(**tags: str) -> Named:
    return Named("security-group", "annotation example.com/groups", ("sg-1", "edge"), tags=tags)


def allows(listed: str, named: Named) -> bool:
    try:
        Nameable.parse(listed.split(",")).require([named])
    except InvalidConfiguration:
        return False
    return True


@pytest.mark.parametrize(
    ("listed", "allowed"),
    [
        ("", True),
        ("subnet=subnet-1", True),
        (f"certificate={CERTIFICATE}", True),
        ("certificate=arn:aws:acm:*:123456789012:certificate/*", True),
        ("certificate=arn:aws:iam:*,certificate=arn:aws:acm:*", True),
        ("certificate=arn:aws:acm:*:999999999999:certificate/*", False),
        (f"certificate={CERTIFICATE.upper()}", False),
        ("certificate=", False),
        ("any", True),
    ],
)
def test_a_kind_with_entries_is_restricted_to_them_and_one_without_is_not(listed: str, allowed: bool) -> None:
    assert allows(listed, certificate()) == allowed


@pytest.mark.parametrize(
    ("listed", "tags", "allowed"),
    [
        ("security-group=sg-1", {}, True),
        ("security-group=edge", {}, True),
        ("security-group=tag:shared=yes", {"shared": "yes"}, True),
        ("security-group=tag:shared=y*", {"shared": "yes"}, True),
        ("security-group=tag:shared", {"shared": "no"}, True),
        ("security-group=tag:shared=yes", {"shared": "no"}, False),
        ("security-group=tag:shared=yes", {}, False),
        ("security-group=tag:a=b=c", {"a": "b=c"}, True),
    ],
)
def test_an_entry_matches_any_name_of_a_resource_or_its_tags(
    listed: str, tags: Mapping[str, str], allowed: bool
) -> None:
    assert allows(listed, group(**tags)) == allowed


@pytest.mark.parametrize(("listed", "allowed"), [("", False), (f"certificate={CERTIFICATE}", True), ("any", True)])
def test_a_resource_of_someone_else_must_be_listed(listed: str, allowed: bool) -> None:
    assert allows(listed, certificate(whose="carries the tag of cluster c-2")) == allowed


def test_tags_are_needed_only_of_kinds_with_an_entry_that_matches_tags() -> None:
    assert Nameable.parse(["subnet=subnet-*", "security-group=tag:a"]).kinds_by_tag == {"security-group"}


def test_a_refusal_names_the_annotation_the_value_and_the_list() -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        Nameable.parse(["certificate=arn:aws:iam:*"]).require([certificate()])

    assert refused.value.field == "annotation example.com/cert"
    assert CERTIFICATE in refused.value.why
    assert "certificate=arn:aws:iam:*" in str(refused.value.allowed)


@pytest.mark.parametrize("entry", ["certificates=x", "certificate", "=x", "any,subnet=x", "elastic-ip=tag:a=b"])
def test_an_invalid_annotations_may_name_entry_is_rejected(entry: str) -> None:
    with pytest.raises(ValueError, match=r"kinds: access-control-list, |can be matched by tags"):
        Nameable.parse(entry.split(","))


@pytest.mark.parametrize(
    "name", ["subnet-1", "subnet-12", "SUBNET-1", "subnet-a", "subnet-]", "subnet-^", "a.b", "a\\b", ""]
)
@pytest.mark.parametrize(
    "pattern",
    [
        *["*", "subnet-?", "subnet-[0-9]", "subnet-[!0-9]", "subnet-[]]", "subnet-[^1]", "subnet-[", "a.b", "a\\b", ""],
    ],
)
def test_the_rule_for_the_api_server_allows_what_the_list_allows(pattern: str, name: str) -> None:
    listed = Nameable.parse([f"subnet={pattern}"])
    rules = [*listed.refusals([Naming("subnet", "subnets", words("subnets"))])]

    assert said(lambda: refuse(CATALOGUE.settings({"subnets": (name,)}), {}, rules)) == said(
        lambda: listed.require([Named("subnet", f"annotation {ENTRY.name}", (name,))])
    )


def said(judge: Callable[[], None]) -> str | None:
    try:
        judge()
    except InvalidConfiguration as error:
        return str(error)
    return None


@pytest.mark.parametrize("listed", ["any", "certificate=c-1", "subnet=subnet-1,subnet=tag:shared"])
def test_the_api_server_judges_no_kind_without_entries_or_with_tags(listed: str) -> None:
    rules = Nameable.parse(listed.split(",")).refusals([Naming("subnet", "subnets", words("subnets"))])

    assert [*rules] == []


def test_a_name_that_may_not_be_the_only_one_is_left_to_the_controller() -> None:
    naming = Naming("subnet", "subnets", words("subnets"), only_name=ITEM.matches("subnet-.*"))
    rules = [*Nameable.parse(["subnet=subnet-1"]).refusals([naming])]

    refuse(CATALOGUE.settings({"subnets": ("edge",)}), {}, rules)
    with pytest.raises(InvalidConfiguration, match=r"'subnet-2' is not allowed by --annotations-may-name \(allowed: "):
        refuse(CATALOGUE.settings({"subnets": ("edge", "subnet-2")}), {}, rules)


@pytest.mark.parametrize(("catalogue", "entry"), FREE_TEXTS)
def test_an_annotation_of_free_text_has_its_kind_or_says_why_it_names_nothing(
    catalogue: Catalogue, entry: Annotation
) -> None:
    has_a_kind = any(each.argument == entry.argument for each in catalogue.namings)

    assert has_a_kind != bool(entry.names_nothing)


def test_every_kind_is_one_that_an_annotation_names() -> None:
    assert {each.kind for catalogue in CATALOGUES for each in catalogue.namings} == {*KINDS}
