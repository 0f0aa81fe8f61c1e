"""Tests of how the tests are distributed: what is shared is started once, and files stay together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.distribution import CONTROL_PLANE, CRASH_ENVIRONMENT, UNITS, Scheduling, file_of, sort_longest_first

ROOT = Path(__file__).parents[1]
SHARED = {("control_plane", "tests/cloud_controller"): CONTROL_PLANE, ("environment", "tests/crash"): CRASH_ENVIRONMENT}
"""By fixture and the folder of its conftest: the unit of all files that use it."""


def test_files_of_a_unit_exist() -> None:
    assert [file for file in UNITS if not (ROOT / file).is_file()] == []


def test_every_file_that_uses_what_is_shared_is_in_its_unit(request: pytest.FixtureRequest) -> None:
    units = {}
    for item in request.session.items:
        assert isinstance(item, pytest.Function)
        definitions = item._fixtureinfo.name2fixturedefs
        for (fixture, folder), unit in SHARED.items():
            if fixture in definitions and definitions[fixture][-1].baseid == folder:
                units[file_of(item.nodeid)] = unit

    assert {file: UNITS.get(file) for file in units} == units


def test_a_unit_is_given_to_a_worker_as_a_whole() -> None:
    scheduling = Scheduling.__new__(Scheduling)

    units = [scheduling._split_scope(f"{file}::test_a[b::c]") for file in (*UNITS, "tests/test_other.py")]

    assert units == [*UNITS.values(), "tests/test_other.py"]


class _Item:
    """What the order asks of a test."""

    def __init__(self, nodeid: str, **marks: float | None) -> None:
        self.nodeid = nodeid
        self._marks = marks

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return pytest.Mark(name, (self._marks[name],), {}, _ispytest=True) if name in self._marks else None


def test_long_files_start_first_and_a_files_tests_stay_together() -> None:
    items: list[Any] = [
        _Item("tests/fast.py::a"),
        _Item("tests/engine.py::a", integration=None),
        _Item("tests/mixed.py::a"),
        _Item("tests/plane.py::a", control_plane=None),
        _Item("tests/mixed.py::b", timeout=900),
        _Item("tests/short.py::a", timeout=60),
    ]

    sort_longest_first(items)

    files = ["mixed.py::a", "mixed.py::b", "plane.py::a", "engine.py::a", "fast.py::a", "short.py::a"]
    assert [item.nodeid for item in items] == [f"tests/{file}" for file in files]
