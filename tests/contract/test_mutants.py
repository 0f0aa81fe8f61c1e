"""The suite is tested by clouds that have a defect: each of them fails it."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cloud_controller.cloud import CloudError
from cloud_controller.fence import WriteRefused
from tests.contract.clouds import of
from tests.contract.harness import Harness
from tests.contract.mutants import MUTANTS, Mutant

FAILURES = (AssertionError, CloudError, ValueError, WriteRefused, pytest.fail.Exception)
"""How a test finds a defect. ValueError: too many or too few results. Others, such as AttributeError, are faults of the
defect itself, which would otherwise find nothing for ever."""

NO_MUTANT = {
    "test_harness.test_every_registered_cloud_has_a_harness": "about harnesses, not about a cloud",
    "test_harness.test_a_harness_offers_every_part_that_its_cloud_has": "about harnesses, not about a cloud",
    "test_mutants.test_the_suite_finds_the_defect_of": "about the mutants themselves",
    "test_mutants.test_every_test_of_the_suite_finds_a_defect": "about the mutants themselves",
    "test_mutants.test_a_defect_that_cannot_be_planted_is_not_found": "about the mutants themselves",
}
"""Tests that are to find no mutant, and why."""


@pytest.mark.parametrize("mutant", [pytest.param(each, marks=of(each.of).MARKS, id=str(each)) for each in MUTANTS])
def test_the_suite_finds_the_defect_of(mutant: Mutant, request: pytest.FixtureRequest) -> None:
    with contextmanager(of(mutant.of).running)(request) as harness:
        find(mutant, harness)


def find(mutant: Mutant, harness: Any) -> None:
    """Require that the mutant's test fails because of the defect."""
    with mutant.planted(harness) as planted, pytest.raises(FAILURES) as found:
        mutant.found_by(planted)
    print(f"{mutant.found_by.__name__}: {found.value!r}")


def test_every_test_of_the_suite_finds_a_defect() -> None:
    modules = {path.stem: import_module(f"tests.contract.{path.stem}") for path in Path(__file__).parent.glob("test_*")}
    tests = {f"{of}.{name}" for of, module in modules.items() for name in vars(module) if name.startswith("test_")}
    finding = {f"{each.found_by.__module__.rpartition('.')[2]}.{each.found_by.__name__}" for each in MUTANTS}

    assert finding | NO_MUTANT.keys() == tests
    assert not finding & NO_MUTANT.keys()


def test_a_defect_that_cannot_be_planted_is_not_found() -> None:
    def plant(cloud: Any) -> None:
        cloud.renamed_meanwhile()

    def found_by(harness: Harness) -> None:
        harness.new_cloud()

    mutant = Mutant("tinycloud", "none", plant, found_by)
    with pytest.raises(AttributeError, match="renamed_meanwhile"):
        find(mutant, SimpleNamespace(new_cloud=object))
