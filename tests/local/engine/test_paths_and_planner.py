"""Property paths, differences, and the resulting steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.engine.stack.resource import ResourceState
from local.engine.steps.planner import (
    Op,
    ProtectedError,
    check_protection,
    decide,
    default_provider_name,
    goes_with,
)
from local.plugins import paths
from local.plugins.differences import differences
from local.plugins.provider import DiffKind, DiffResult, PropertyDiff
from local.plugins.values import UNKNOWN, Secret


def resource(name: str, **fields: Any) -> ResourceState:
    return ResourceState(f"urn:pulumi:s::p::t:m:T::{name}", "t:m:T", custom=True, **fields)


def urn(name: str) -> str:
    return resource(name).urn


def test_an_invalid_path_from_a_provider_is_one_name() -> None:
    assert paths.named("spec[0]") == ("spec", 0) and paths.named("spec[") == ("spec[",)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("spec", ("spec",)),
        ("spec.ports[0].port", ("spec", "ports", 0, "port")),
        ('metadata.annotations["a.b/c"]', ("metadata", "annotations", "a.b/c")),
        ('["a\\"b"]', ('a"b',)),
        ("spec.*", ("spec", "*")),
        ("items[*].name", ("items", "*", "name")),
    ],
)
def test_a_path_is_parsed_into_steps(text: str, steps: tuple[str | int, ...]) -> None:
    assert paths.parse(text) == steps


@given(st.lists(st.text(min_size=1) | st.integers(0, 99), min_size=1).filter(lambda p: isinstance(p[0], str)))
def test_a_written_path_reads_back(steps: list[str | int]) -> None:
    assert paths.parse(paths.write(steps)) == tuple(steps)


@pytest.mark.parametrize("text", ["a..b", "a[", 'a["b', "[x]"])
def test_an_invalid_path_is_an_error_that_contains_it(text: str) -> None:
    with pytest.raises(paths.PathError) as caught:
        paths.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("ignored", "expected"),
    [
        ("a", {"a": 1, "l": [{"x": 8, "y": 9}]}),
        ("l[0].x", {"a": 2, "l": [{"x": 3, "y": 9}]}),
        ("l[*].y", {"a": 2, "l": [{"x": 8, "y": 4}]}),
        ("*", {"a": 1, "l": [{"x": 3, "y": 4}], "gone": 5}),
        ("absent", {"a": 2, "l": [{"x": 8, "y": 9}]}),
    ],
)
def test_ignored_paths_keep_the_old_values(ignored: str, expected: Any) -> None:
    olds = {"a": 1, "l": [{"x": 3, "y": 4}], "gone": 5}
    news = {"a": 2, "l": [{"x": 8, "y": 9}]}
    assert paths.keep_old(news, olds, [ignored]) == expected
    assert news == {"a": 2, "l": [{"x": 8, "y": 9}]}, "the given values stay as they are"


def test_differences_are_keyed_by_path_and_secrets_differ_as_a_whole() -> None:
    old = {"a": 1, "b": {"c": [1, 2]}, "s": Secret({"k": "x"}), "t": Secret("same"), "gone": 1}
    new = {"a": 1, "b": {"c": [1, 3, 4]}, "s": Secret({"k": "y"}), "t": "same", "more": 1}
    assert {path: str(d.kind) for path, d in differences(old, new).items()} == {
        "b.c[1]": "update",
        "b.c[2]": "add",
        "s": "update",
        "gone": "delete",
        "more": "add",
    }


def test_true_and_1_are_different_values() -> None:
    assert differences({"a": True}, {"a": 1})


def test_a_provider_that_does_not_know_leaves_the_comparison_to_the_engine() -> None:
    old = resource("x", inputs={"a": 1})
    assert decide(old, resource("x", inputs={"a": 1}), DiffResult(None)).op is Op.SAME
    assert decide(old, resource("x", inputs={"a": 2}), DiffResult(None)).op is Op.UPDATE


def test_a_provider_that_reports_no_change_is_final() -> None:
    old, new = resource("x", inputs={"plan": 1}), resource("x", inputs={"plan": 2}, replace_on_changes=("plan",))
    assert decide(old, new, DiffResult(False)).op is Op.SAME


def test_replacement_follows_from_the_provider_the_program_or_another_provider() -> None:
    old, new = resource("x", inputs={"a": {"b": 1}}), resource("x", inputs={"a": {"b": 2}})
    detailed = {"a.b": PropertyDiff(DiffKind.UPDATE)}
    assert decide(old, new, DiffResult(True, replaces=("a",))).replace_keys == ("a",)
    assert decide(old, new, DiffResult(True, detailed={"a.b": PropertyDiff(DiffKind.UPDATE_REPLACE)})).op is Op.REPLACE
    forced = resource("x", inputs=new.inputs, replace_on_changes=("a",))
    assert decide(old, forced, DiffResult(True, detailed=detailed)).op is Op.REPLACE
    elsewhere = resource("x", inputs={"a": {"b": 1}}, provider="urn:pulumi:s::p::pulumi:providers:t::two::i")
    moved = resource("x", inputs={"a": {"b": 1}}, provider="urn:pulumi:s::p::pulumi:providers:t::one::i")
    assert decide(moved, elsewhere, DiffResult(False)).op is Op.REPLACE


def test_a_newer_default_provider_replaces_nothing() -> None:
    one = resource("x", provider="urn:pulumi:s::p::pulumi:providers:t::default_1_0_0::i")
    two = resource("x", provider="urn:pulumi:s::p::pulumi:providers:t::default_1_1_0::j")
    assert decide(one, two, DiffResult(False)).op is Op.SAME
    assert default_provider_name("kubernetes", "4.34.2") == "default_4_34_2"
    assert default_provider_name("pulumi-python", "") == "default"


def test_the_programs_delete_before_replace_overrides_the_providers() -> None:
    diff = DiffResult(True, replaces=("a",), delete_before_replace=True)
    old = resource("x", inputs={"a": 1})
    assert decide(old, resource("x", inputs={"a": 2}), diff).delete_first
    assert not decide(old, resource("x", inputs={"a": 2}, delete_before_replace=False), diff).delete_first


def test_a_protected_resource_is_replaced_only_if_the_program_removes_the_protection() -> None:
    diff = DiffResult(True, replaces=("a",))
    with pytest.raises(ProtectedError, match="because of a"):
        decide(resource("x", protect=True), resource("x", protect=True), diff)
    assert decide(resource("x", protect=True), resource("x"), diff).op is Op.REPLACE


@pytest.mark.parametrize(
    ("pattern", "path", "replaced"),
    [
        ("*", "spec.a", True),
        ("spec", "spec.a[1].b", True),
        ("spec.a[*].b", "spec.a[1].b", True),
        ("spec.a[0]", "spec.a[1].b", False),
        ("spec.a[1].b", "spec", False),
    ],
)
def test_replace_on_changes_matches_at_or_under_its_path(pattern: str, path: str, replaced: bool) -> None:
    new = resource("x", replace_on_changes=(pattern,))
    diff = DiffResult(True, detailed={path: PropertyDiff(DiffKind.UPDATE)})
    assert (decide(resource("x"), new, diff).op is Op.REPLACE) == replaced


def test_replace_on_any_change_includes_a_failed_readiness() -> None:
    broken = resource("x", init_errors=("no",))
    assert decide(broken, resource("x", replace_on_changes=("*",)), DiffResult(False)).replace_keys == ("#initerror",)
    assert decide(broken, resource("x", replace_on_changes=("a",)), DiffResult(False)).op is Op.UPDATE


@pytest.mark.parametrize(
    ("old", "new", "replaced"),
    [
        (1, 1, False),
        (1, 2, True),
        (1, True, True),
        (None, 1, False),
        (1, None, False),
        (Secret("a"), "a", False),
        ("a", UNKNOWN, True),
    ],
)
def test_a_changed_replacement_trigger_causes_a_replacement(old: Any, new: Any, replaced: bool) -> None:
    decision = decide(resource("x", replacement_trigger=old), resource("x", replacement_trigger=new), DiffResult(False))
    assert decision.replace_keys == (("replacementTrigger",) if replaced else ())


def test_a_resource_that_is_not_ready_is_updated_even_without_a_difference() -> None:
    assert decide(resource("x", init_errors=("no",)), resource("x"), DiffResult(False)).op is Op.UPDATE


def test_deleted_with_skips_the_call_only_if_the_other_resource_is_deleted_too() -> None:
    parent = resource("parent")
    assert goes_with(resource("x", deleted_with=parent.urn), [parent])
    assert not goes_with(resource("x", deleted_with=parent.urn), [resource("child")])


def test_all_protected_resources_are_named_at_once() -> None:
    with pytest.raises(ProtectedError) as caught:
        check_protection([resource("a", protect=True), resource("b"), resource("c", protect=True)])
    what, first, second, steps = str(caught.value).splitlines()
    assert what == "protected resources would be deleted:"
    assert (first, second) == ("  t:m:T a", "  t:m:T c")
    assert steps.startswith("declare it in the program without `protect`") and "run `up`" in steps


def test_an_error_names_the_first_of_many_protected_resources_and_counts_the_others() -> None:
    with pytest.raises(ProtectedError) as caught:
        check_protection([resource(f"r{index}", protect=True) for index in range(60)])
    assert "\n  t:m:T r4\n  55 more\n" in str(caught.value)
