"""A cloud's annotations: what is taken, what is refused and how, and the page that is made of them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.cli import annotation_docs
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import CATALOGUE as AWS
from cloud_controller.clouds.mycloud.annotations import CATALOGUE as MYCLOUD
from cloud_controller.load_balancers.catalogue import Annotation, Catalogue, Mutability, Value
from tests.cloud_controller.load_balancers import entries

PREFIX = "service.example.com/lb-"


def entry(name: str = "limit", **more: Any) -> Annotation:
    given = {"argument": name.replace("-", "_"), "sets": f"listener.{name}", "type": int, **more}
    return entries.entry(**given, name=f"{PREFIX}{name}")


def catalogue(*given: Annotation) -> Catalogue:
    return Catalogue("example", (PREFIX,), given or (entry(minimum=1, maximum=9, default=5),))


@pytest.mark.parametrize(
    ("more", "text", "value"),
    [
        ({"minimum": 1, "maximum": 9}, "9", 9),
        ({"minimum": 1, "maximum": 9}, " 1 ", 1),
        ({"minimum": -5}, "-5", -5),
        ({"type": bool}, "true", True),
        ({"type": bool}, "false", False),
        ({"type": str, "allowed": ("a", "b")}, "b", "b"),
        ({"type": str}, "anything", "anything"),
        ({"type": str, "pattern": "/.*"}, "/ready", "/ready"),
        ({"type": tuple}, "a, b,,c", ("a", "b", "c")),
    ],
)
def test_a_text_becomes_a_typed_value(more: dict[str, Any], text: str, value: object) -> None:
    settings = catalogue(entry(**more)).parse({f"{PREFIX}limit": text})

    assert settings.given == {"limit": value}


@pytest.mark.parametrize(
    ("more", "text", "allowed"),
    [
        ({"minimum": 1, "maximum": 9, "unit": "seconds"}, "10", "from 1 to 9, in seconds"),
        ({"minimum": 1, "maximum": 9}, "0", "from 1 to 9"),
        ({"minimum": 1}, "1_0", "from 1 to any"),
        ({"minimum": 1}, "1.0", "integer"),
        ({"minimum": 1}, "٣", "integer"),
        ({"minimum": 1}, "", "integer"),
        ({"type": bool}, "True", "true, false"),
        ({"type": str, "allowed": ("a", "b")}, "A", "a, b"),
        ({"type": str}, " ", "text"),
        ({"type": str, "pattern": "/.*", "form": "a path"}, "ready", "a path"),
    ],
)
def test_a_value_that_is_not_allowed_names_annotation_value_and_what_is(
    more: dict[str, Any], text: str, allowed: str
) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        catalogue(entry(**more)).parse({f"{PREFIX}limit": text})

    assert refused.value.field == f"annotation {PREFIX}limit"
    assert repr(text) in str(refused.value)
    assert allowed in (refused.value.allowed or "")


@pytest.mark.parametrize("name", [f"{PREFIX}limt", f"{PREFIX}Limit", "service.example.com/bl-limit"])
def test_a_misspelt_name_is_refused_with_the_nearest(name: str) -> None:
    with pytest.raises(InvalidConfiguration, match=f"{name}.*did you mean {PREFIX}limit"):
        catalogue().parse({name: "1"})


@pytest.mark.parametrize("name", ["example.com/team", "service.example.com/aws-load-balancer-type", "limit"])
def test_unrelated_annotations_are_ignored(name: str) -> None:
    assert catalogue().parse({name: "x"}).given == {}


@pytest.mark.parametrize("text", ["9" * 5000, f"-{'9' * 5000}", "0" * 5000])
def test_a_number_of_thousands_of_digits_is_an_error_like_any_other_and_is_quoted_in_part(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="is not a valid value") as refused:
        catalogue(entry(minimum=1, maximum=9)).parse({f"{PREFIX}limit": text})

    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("known", [MYCLOUD, AWS], ids=lambda known: known.cloud)
@pytest.mark.parametrize("form", ["azure-load-balancer-mode-{:05}", "aws-load-blaancer-{:05}", "{:05}"])
def test_thousands_of_names_of_others_cost_few_comparisons_and_none_the_second_time(
    known: Catalogue, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []
    compare = difflib.get_close_matches

    def counting(name: str, possibilities: Sequence[str], **more: Any) -> list[str]:
        compared.extend(possibilities)
        return compare(name, possibilities, **more)

    monkeypatch.setattr(difflib, "get_close_matches", counting)
    names = {f"service.beta.kubernetes.io/{form.format(number)}": "x" for number in range(4000)}

    known.parse(names)

    assert len(compared) <= 64 * len(known.entries)
    compared.clear()
    known.parse(names)
    assert compared == []


def test_a_wrong_name_of_our_own_is_told_whatever_names_of_others_are_there() -> None:
    others = {f"service.example.com/aa-{number:05}": "x" for number in range(4000)}

    with pytest.raises(InvalidConfiguration, match=f"did you mean {PREFIX}limit"):
        catalogue().parse({**others, f"{PREFIX}limt": "1"})


def test_an_unset_annotation_has_its_default() -> None:
    settings = catalogue().parse(None)

    assert (settings.given, settings.number("limit")) == ({}, 5)


def test_an_entry_that_the_cloud_does_not_offer_is_ignored_by_name_whatever_its_value() -> None:
    unoffered = entry(ignored="it has no limits")

    settings = catalogue(unoffered).parse({f"{PREFIX}limit": "not even a number"})

    assert (settings.given, settings.ignored) == ({}, (unoffered,))


def test_a_value_that_would_restrict_access_is_refused_where_the_entry_is_ignored() -> None:
    unoffered = catalogue(entry(type=bool, ignored="it can't be off", restricts=True, harmless=("true",)))

    assert unoffered.parse({f"{PREFIX}limit": "true"}).ignored
    with pytest.raises(InvalidConfiguration, match="' false ': it can't be off"):
        unoffered.parse({f"{PREFIX}limit": " false "})
    with pytest.raises(InvalidConfiguration, match="'maybe': it can't be off"):
        unoffered.parse({f"{PREFIX}limit": "maybe"})


# -------------------------------------------------------------------------------------------------------- families


def family(**more: Any) -> Annotation:
    return entry("limit.PORT", argument="limit_of_port", type=tuple, suffix="PORT", suffix_pattern="[0-9]+", **more)


def test_a_member_of_a_family_is_an_annotation_of_its_own() -> None:
    known = catalogue(entry(), family())

    settings = known.parse({f"{PREFIX}limit": "3", f"{PREFIX}limit.80": "a,b", f"{PREFIX}limit.443": "c"})

    assert settings.given["limit"] == 3
    assert settings.members("limit_of_port") == {"80": ("a", "b"), "443": ("c",)}


@pytest.mark.parametrize("suffix", ["http", "", "PORT", "80.1"])
def test_an_invalid_suffix_of_a_family_is_an_unknown_annotation(suffix: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"unknown on .*; did you mean service.example.com/lb-limit.PORT"):
        catalogue(family()).parse({f"{PREFIX}limit.{suffix}": "a"})


def test_typed_arguments_of_a_family_are_a_mapping_by_suffix() -> None:
    known = catalogue(family())

    assert known.annotations({"limit_of_port": {"80": ("a", "b")}}) == {f"{PREFIX}limit.80": "a,b"}
    with pytest.raises(InvalidConfiguration, match=r"lb-limit.PORT: 'http' is not a valid PORT"):
        known.annotations({"limit_of_port": {"http": ("a",)}})
    assert known.of_argument("limit_of_port.80").name == f"{PREFIX}limit.80"


def test_a_list_of_only_commas_is_an_error_not_an_empty_list() -> None:
    names = catalogue(entry(type=tuple))

    assert names.parse({f"{PREFIX}limit": " "}).given == {"limit": ()}
    with pytest.raises(InvalidConfiguration, match="', ,' is not a valid value"):
        names.parse({f"{PREFIX}limit": ", ,"})


def test_a_list_of_too_many_words_is_refused_with_their_number_and_the_bound() -> None:
    names = catalogue(entry(type=tuple, most=3))

    assert names.parse({f"{PREFIX}limit": "a,b,c"}).given == {"limit": ("a", "b", "c")}
    with pytest.raises(InvalidConfiguration, match=r"limit: 4 words are too many \(allowed: at most 3 comma-separated"):
        names.parse({f"{PREFIX}limit": "a,b,c,d"})


def test_typed_arguments_become_the_annotations_that_parse_to_them() -> None:
    wide = catalogue(
        entry("limit", minimum=1), entry("safe", type=bool), entry("names", type=tuple), entry("mode", type=str)
    )
    arguments: dict[str, Value] = {"limit": 3, "safe": True, "names": ("a", "b"), "mode": "x"}

    annotations = wide.annotations(arguments)

    assert wide.parse(annotations).given == arguments


def test_an_unknown_or_impossible_argument_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="did you mean limit"):
        catalogue().annotations({"limits": 1})
    with pytest.raises(InvalidConfiguration, match="10"):
        catalogue().annotations({"limit": 10})


def test_mutability_comes_from_the_catalogue_entry_and_defaults_to_in_place() -> None:
    known = catalogue(entry(sets="scheme", mutability=Mutability.REPLACE))

    assert known.mutability("scheme") is Mutability.REPLACE
    assert known.mutability("name") is Mutability.IN_PLACE


@pytest.mark.parametrize("twin", [{"argument": "limit"}, {"name": "limit", "argument": "other"}])
def test_duplicate_names_or_arguments_in_a_catalogue_are_an_error(twin: dict[str, str]) -> None:
    name = twin.pop("name", "second")

    with pytest.raises(ValueError, match="duplicate"):
        catalogue(entry(), entry(name, **twin))


# ------------------------------------------------------------------------------------------- older names and kinds

OLD = "old.example.com/limit"


@pytest.mark.parametrize(
    ("annotations", "limit"),
    [({OLD: "3"}, 3), ({f"{PREFIX}limit": "4"}, 4), ({f"{PREFIX}limit": "4", OLD: " 4"}, 4), ({}, 5)],
)
def test_an_older_name_sets_the_same_annotation(annotations: dict[str, str], limit: int) -> None:
    known = catalogue(entry(aliases=(OLD,), minimum=1, maximum=9, default=5))

    assert known.parse(annotations).number("limit") == limit
    assert known.value(annotations, "limit") == limit


def test_two_names_of_an_annotation_must_not_contradict_each_other() -> None:
    known = catalogue(entry(aliases=(OLD,), mutability=Mutability.REPLACE))
    both = {f"{PREFIX}limit": "4", OLD: "5"}

    for read in (known.parse, lambda given: known.value(given, "limit")):
        with pytest.raises(InvalidConfiguration, match=f"lb-limit: '4' contradicts '5' of {OLD}") as refused:
            read(both)
        assert refused.value.allowed == f"one of the two; remove {OLD}"
    assert [was for _, was, _ in known.readdressing({OLD: "5"}, {f"{PREFIX}limit": "4"})] == [5]
    assert not known.readdressing({OLD: "5"}, {f"{PREFIX}limit": "5"})


def test_an_empty_annotation_counts_as_unset_where_clouds_ignore_it_unless_it_is_a_value() -> None:
    limit = entry(aliases=(OLD,), mutability=Mutability.REPLACE, minimum=1, maximum=9, default=5)
    groups = entry("groups", type=tuple, harmless=("",))
    known = replace(catalogue(limit, groups), empty_is_unset=True)
    given = {f"{PREFIX}limit": " ", OLD: "4", f"{PREFIX}groups": ""}

    assert known.parse(given).given == {"limit": 4, "groups": ()}
    assert [known.value(given, "limit"), known.value(given, "groups")] == [4, ()]
    assert known.value({f"{PREFIX}limit": ""}, "limit") == 5
    assert [to for _, _, to in known.readdressing({OLD: "4"}, {OLD: ""})] == [5]
    with pytest.raises(InvalidConfiguration):
        catalogue(limit).parse({OLD: ""})


def kind(name: str, classes: tuple[str | None, ...], *given: Annotation) -> Catalogue:
    return Catalogue("example", (PREFIX,), given, kind=name, classes=classes)


def two_kinds() -> Catalogue:
    flat = kind("flat", (None, "example.com/flat"), entry(default=5), entry("mode", type=str))
    tall = kind("tall", ("example.com/tall",), entry(default=9, maximum=9), entry("zones", type=tuple))
    return Catalogue.joined(flat, tall)


@pytest.mark.parametrize(("of_class", "default"), [(None, 5), ("example.com/flat", 5), ("example.com/tall", 9)])
def test_a_services_class_selects_the_kinds_defaults(of_class: str | None, default: int) -> None:
    assert two_kinds().of_class(of_class).parse({}).number("limit") == default


def test_a_cloud_with_one_kind_has_the_same_annotations_for_every_class() -> None:
    known = catalogue()

    assert known.of_class("example.com/any") is known


def test_an_annotation_that_only_another_kind_has_is_reported_as_ignored() -> None:
    settings = two_kinds().of_class(None).parse({f"{PREFIX}zones": "a,b"})

    assert [(each.argument, each.ignored) for each in settings.ignored] == [
        ("zones", "only tall load balancers have it")
    ]


def test_the_joined_catalogue_offers_what_any_kind_offers() -> None:
    known = two_kinds()

    assert {each.argument for each in known if not each.ignored} == {"limit", "mode", "zones"}
    assert known.of_class("example.com/unknown") is known


def test_kinds_must_agree_on_what_an_annotation_is() -> None:
    with pytest.raises(ValueError, match="kinds differ"):
        Catalogue.joined(kind("flat", (None,), entry()), kind("tall", ("x",), entry(type=str)))


@pytest.mark.parametrize("known", MYCLOUD.entries, ids=lambda known: known.argument)
def test_every_default_and_example_of_mycloud_is_a_value_of_its_annotation(known: Annotation) -> None:
    if known.default is not None:
        assert known.parse(known.to_text(known.default)) == known.default
    if known.example is not None:
        known.parse(known.example)


def test_the_reference_page_is_current() -> None:
    page = Path(__file__).parents[3] / "docs" / "annotations.md"

    assert page.read_text() == annotation_docs.page(), (
        "run: python -m cloud_controller.cli.annotation_docs > docs/annotations.md"
    )


class Texts(dict[str, str]):
    """Annotations of which one must not be read."""

    def __getitem__(self, name: str) -> str:
        if name == UNREADABLE:
            raise AssertionError(f"{name} is read")
        return super().__getitem__(name)


UNREADABLE = "service.beta.kubernetes.io/dlb-scheme"


def test_checks_find_every_fault_and_each_reads_its_own_annotation_alone() -> None:
    prefix = "service.beta.kubernetes.io/dlb-"
    wrong = Texts({UNREADABLE: "x", f"{prefix}scheduler": "x", f"{prefix}schema": "x", f"{prefix}id": "x"})
    faults = []

    for check in MYCLOUD.checks(wrong):
        if check.name != UNREADABLE:
            with pytest.raises(InvalidConfiguration) as fault:
                check.run()
            faults.append(fault.value.field)

    assert sorted(faults) == sorted(f"annotation {prefix}{name}" for name in ("id", "scheduler", "schema"))
