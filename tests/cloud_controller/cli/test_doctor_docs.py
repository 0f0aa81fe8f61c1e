"""What is made from doctor's checks is up to date."""

from __future__ import annotations

from pathlib import Path

from cloud_controller.cli import doctor_docs

ROOT = Path(__file__).parents[3]


def test_the_page_of_the_checks_is_up_to_date() -> None:
    assert (ROOT / "docs/doctor-checks.md").read_text() == doctor_docs.page(), "run `make docs`"


def test_what_the_checklist_knows_of_the_checks_is_up_to_date() -> None:
    assert (ROOT / "policy/data/doctor.json").read_text() == doctor_docs.checks(), "run `make docs`"
