"""The suite is tested by clouds that have a defect: each of them fails it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest

from tests.contract.clouds import of
from tests.contract.mutants import MUTANTS, Mutant, Planted


@pytest.mark.parametrize("mutant", [pytest.param(each, marks=of(each.of).MARKS, id=str(each)) for each in MUTANTS])
def test_the_suite_finds_the_defect_of(mutant: Mutant, request: pytest.FixtureRequest) -> None:
    planted: Any
    with contextmanager(of(mutant.of).running)(request) as harness:
        planted = Planted(harness, mutant.plant)
        with pytest.raises((Exception, pytest.fail.Exception)) as found:
            mutant.found_by(planted)
    print(f"{mutant.found_by.__name__}: {found.value!r}")
