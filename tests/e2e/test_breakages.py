"""The breakages of stack `local` cover what seed 002 says may go wrong: mycloud can break every row."""

from __future__ import annotations

import pytest

from cloud_controller.doctor.checks import ALL
from tests.e2e.breakages import BREAKAGES, Breakage

LINES = {check.name: check.lines for check in ALL}
SECTIONS = {"10.1": 8, "11.2": 9, "11.4": 8}
"""Seed 002's tables of symptoms, of what is verified after the installation, and of what is watched: their rows."""


def test_each_row_of_the_tables_is_broken_by_at_least_one_of_thirty_breakages() -> None:
    rows = {f"{section}.{row}" for section, count in SECTIONS.items() for row in range(1, count + 1)}

    assert rows - {row for breakage in BREAKAGES for row in breakage.rows} == set()
    assert len(rows) == 25
    assert len(BREAKAGES) >= 30


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda each: each.name)
def test_each_row_is_asked_by_a_check_that_must_find_the_breakage(breakage: Breakage) -> None:
    asserted = {breakage.found_by, *(check for check, _ in breakage.follows)}

    assert {*breakage.rows} <= {line for check in asserted for line in LINES[check]}
