"""A figure is one JSON object per line, with its ratio to the bound."""

from __future__ import annotations

import json

from benchmarks.figure import Figure


def test_a_figure_is_one_json_object_with_its_ratio_to_the_bound() -> None:
    line = Figure("up-local", 45.0, "s", bound=90.0).to_json()

    assert "\n" not in line
    assert json.loads(line) == {"name": "up-local", "value": 45.0, "unit": "s", "bound": 90.0, "ratio": 0.5}
