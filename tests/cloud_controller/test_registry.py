"""Descriptors are found by entry points, and an entry point that does not work is named."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from cloud_controller.registry import InvalidEntryPoint, Registry, UnknownName

GROUP = "tests.registry"
NAMED = SimpleNamespace(name="other")


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with entry points that work and others that do not."""
    info = tmp_path / "registered-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: registered\nVersion: 1\n")
    points = {
        "good": "builtins:int",
        "missing": "no_such_module_anywhere:CLOUD",
        "nameless": "builtins:no_such_name",
        "renamed": "tests.cloud_controller.test_registry:NAMED",
        "wrong": "builtins:print",
    }
    lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_broken_entry_point_does_not_hinder_others() -> None:
    registry = Registry(GROUP, type)

    assert registry.names() == ["good", "missing", "nameless", "renamed", "wrong"]
    assert registry.get("good") is int


@pytest.mark.parametrize(
    ("name", "point", "why"),
    [
        ("missing", "no_such_module_anywhere:CLOUD", "ModuleNotFoundError: No module named"),
        ("nameless", "builtins:no_such_name", "AttributeError"),
    ],
)
def test_an_entry_point_that_cannot_be_loaded_is_named_with_its_group_and_the_cause(
    name: str, point: str, why: str
) -> None:
    with pytest.raises(
        InvalidEntryPoint, match=rf"entry point '{name}' of {GROUP} \({point}\) cannot be loaded: {why}"
    ):
        Registry(GROUP, type).get(name)


def test_an_entry_point_that_leads_to_something_else_is_named_with_what_it_must_be() -> None:
    with pytest.raises(InvalidEntryPoint, match=rf"entry point 'wrong' of {GROUP} \(builtins:print\) is not a type"):
        Registry(GROUP, type).get("wrong")


def test_a_descriptor_of_another_name_is_refused() -> None:
    with pytest.raises(InvalidEntryPoint, match=r"entry point 'renamed' .* has the name 'other'"):
        Registry(GROUP, SimpleNamespace).get("renamed")


def test_an_unknown_name_has_the_nearest_known_one_as_a_hint() -> None:
    with pytest.raises(UnknownName) as caught:
        Registry(GROUP, type).get("god")

    assert caught.value.hint == "did you mean 'good'?"
