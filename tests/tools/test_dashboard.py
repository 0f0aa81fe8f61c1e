"""The Grafana dashboard in the repository; its queries are asked in tests/e2e."""

from __future__ import annotations

from pathlib import Path

from tools.dashboard import render

FILE = Path(__file__).parents[2] / "cloud_controller" / "monitoring" / "dashboard.json"


def test_the_stored_dashboard_is_what_its_panels_say() -> None:
    assert FILE.read_text() == render(), "run `make docs`"
