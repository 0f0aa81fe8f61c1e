"""Every benchmark that `make bench NAME=…` offers exists."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from importlib import import_module

import pytest

from benchmarks.__main__ import BENCHMARKS


@pytest.mark.parametrize("benchmark", [pytest.param(each, id=name) for name, each in BENCHMARKS.items()])
def test_a_benchmark_takes_what_its_name_passes(benchmark: Callable[[], object]) -> None:
    assert isinstance(benchmark, partial)
    module, *counts = benchmark.args
    function, options = benchmark.keywords.get("function", "measure"), dict(benchmark.keywords)
    options.pop("function", None)

    measured = getattr(import_module(f"benchmarks.{module}"), function)

    inspect.signature(measured).bind(*counts, **options)
