"""The suite is tested by clouds that have a defect: each of them fails it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest

from tests.contract.clouds import of
from tests.contract.mutants import MUTANTS, Mutant, Planted


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_suite_finds_the_defect_of(mutant: Mutant, request: pytest.FixtureRequest) -> None:
    planted: Any
    with contextmanager(of(mutant.of).running)(request) as harness:
        planted = Planted(harness, mutant.plant)
        try:
            mutant.found_by(planted)
        except (Exception, pytest.fail.Exception) as error:
            print(f"found by {mutant.found_by.__name__}: {type(error).__name__}: {error}")
        else:
            pytest.fail(f"{mutant.found_by.__name__} did not find it")
