"""Tests of how the tests are distributed: what is shared is started once, and files stay together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.distribution import (
    OPENSTACK,
    OPENSTACK_CONTRACT,
    SHARED,
    UNITS,
    Scheduling,
    file_of,
    sort_longest_first,
    unit_of,
)

ROOT = Path(__file__).parents[1]


def test_files_of_a_unit_exist() -> None:
    assert [file for file in UNITS if not (ROOT / file).is_file()] == []


def test_every_file_that_uses_what_is_shared_is_in_its_unit(request: pytest.FixtureRequest) -> None:
    units = {}
    for item in request.session.items:
        assert isinstance(item, pytest.Function)
        definitions = item._fixtureinfo.name2fixturedefs
        for unit, (fixture, folder) in SHARED.items():
            if fixture in definitions and definitions[fixture][-1].baseid == folder:
                units[file_of(item.nodeid)] = unit

    assert {file: UNITS.get(file) for file in units} == units


def test_a_unit_is_given_to_a_worker_as_a_whole() -> None:
    scheduling = Scheduling.__new__(Scheduling)

    units = [scheduling._split_scope(f"{file}::test_a[b::c]") for file in (*UNITS, "tests/test_other.py")]

    assert units == [*UNITS.values(), "tests/test_other.py"]


def test_one_worker_runs_the_contract_suite_at_openstacks_services_and_one_their_other_tests() -> None:
    contract = (
        "tests/contract/test_routes.py::test_a[openstack]",
        "tests/contract/test_answers.py::test_a[openstack_octavia]",
    )
    other = (
        "tests/cloud_controller/clouds/openstack/test_client.py::test_a",
        "tests/components/clouds/openstack/test_openstack_real.py::test_a",
    )

    assert {unit_of(each) for each in contract} == {OPENSTACK_CONTRACT}
    assert {unit_of(each) for each in other} == {OPENSTACK}
    assert unit_of("tests/contract/test_routes.py::test_a[aws]") == "tests/contract/test_routes.py"


CONFTEST = """
from pathlib import Path
import pytest
from tests import distribution
from tests.conftest import pytest_runtest_teardown

distribution.UNITS = {"below/test_a.py": "unit", "below/test_b.py": "unit"}
distribution.SHARED = {"unit": ("dear", "below")}

def log(what):
    with Path("log").open("a") as file:
        print(what, file=file)

@pytest.fixture(scope="session")
def dear():
    log("started")
    yield
    log("ended")

@pytest.fixture(scope="session")
def client(dear):
    yield
    log("client ended")

@pytest.fixture(autouse=True)
def _name(request):
    log(request.node.name)
"""


@pytest.mark.integration
def test_what_a_unit_shares_ends_with_the_unit_and_starts_again_where_it_is_needed_again(tmp_path: Path) -> None:
    # As here, below the root: a session's hooks are those of the root.
    folder = tmp_path / "below"
    folder.mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    for file, test in (("a", "def test_a(client): pass"), ("b", "def test_b(): pass"), ("c", "def test_c(): pass")):
        (folder / f"test_{file}.py").write_text(test)
    (folder / "test_d.py").write_text("def test_d(dear): pass")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    log = (tmp_path / "log").read_text().split("\n")
    shared = ["started", "test_a", "test_b", "client ended", "ended"]
    assert log == [*shared, "test_c", "started", "test_d", "ended", ""]


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
