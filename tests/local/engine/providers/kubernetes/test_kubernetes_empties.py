"""A program with empty, false and zero inputs takes the steps that the real CLI took with it, run for run."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from local.control_plane.control_plane import ControlPlane
from local.plugins.kubernetes import KubernetesProvider

pytestmark = pytest.mark.control_plane

PROGRAM = Path(__file__).parents[2] / "samples" / "kubernetes" / "__main__.py"
NEVER_SAME = {"update": 2, "same": 15}
"""`rules: []`, which the API server keeps as null, and `labels: {}` of a custom resource, which it drops."""


@pytest.fixture
def counts(stack: Any, control_plane: ControlPlane) -> Callable[..., dict[str, int]]:
    """Run the program at a step; returns the number of resources per operation."""
    kubeconfig = control_plane.kubeconfig("admin", ["system:masters"], timedelta(hours=1))
    stack.factories["kubernetes"] = lambda r: KubernetesProvider(r.inputs)

    def run(verb: str, step: int) -> dict[str, int]:
        stack.configure({"test:step": str(step), "test:kubeconfig": kubeconfig})
        outcome = getattr(stack, verb)(lambda: runpy.run_path(str(PROGRAM)))
        assert outcome.ok, outcome.errors
        return dict(outcome.counts)

    return run


def test_runs_with_empty_values_take_the_same_steps_as_the_cli(
    stack: Any, counts: Callable[..., dict[str, int]]
) -> None:
    assert counts("up", 0) == {"create": 17}
    assert counts("preview", 0) == counts("up", 0) == NEVER_SAME

    without_empties = {"update": 5, "replace": 1, "same": 11}
    assert counts("preview", 1) == counts("up", 1) == without_empties
    edited = {"update": 8, "replace": 3, "same": 6}
    assert counts("preview", 2) == counts("up", 2) == edited
    back = {"update": 10, "replace": 3, "same": 4}
    assert counts("preview", 3) == counts("up", 3) == back
    assert counts("preview", 3) == NEVER_SAME

    assert stack.refresh().ok
    assert counts("preview", 3) == NEVER_SAME
    assert counts("up", 4)["update"] == 3
    assert stack.destroy().ok
