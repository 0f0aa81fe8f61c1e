"""What the policy pack adds to the preview of a production stack, planned without a cloud."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure
from cloud_stacks.checkouts import working_folder
from cloud_stacks.offline import preview, rehearsal
from local.pulumi.rehearsal import Runs
from local.pulumi.toolchain import find

ROOT = Path(__file__).parents[1]
PROMISED_SECONDS = 2.0
RUNS = 5


def measure() -> list[Figure]:
    """For each stack with policy settings: the seconds with all rules less those without, medians of several runs."""
    figures = []
    for settings in sorted((ROOT / "stacks").glob("policies.*.json")):
        stack = settings.name.split(".")[1]
        packs = [(ROOT / "policy", json.loads(settings.read_text()))]
        without = [_seconds(stack, ()) for _ in range(RUNS)]
        added = statistics.median(_seconds(stack, packs) for _ in range(RUNS)) - statistics.median(without)
        figures.append(Figure(f"preview-policies.{stack}", added, "s", PROMISED_SECONDS))
    return figures


def _seconds(stack: str, packs: Sequence[tuple[Path, Mapping[str, Any] | None]]) -> float:
    with rehearsal(find(print), stack, Runs()) as folder:
        started = time.monotonic()
        outcome = preview(folder, working_folder(ROOT), packs)
        seconds = time.monotonic() - started
    assert not [each for each in outcome.problems if each.severity == "error"], outcome.problems
    return seconds
