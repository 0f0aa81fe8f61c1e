"""What holds for every test: how hard properties are tried, that Ctrl-C reaches what tests start, which are fast.

Properties: the same bounded examples every time, or, with HYPOTHESIS_PROFILE=thorough, many.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

from local.blocks import BlockRegistry, default_registry
from tests import distribution, integration, sampling
from tests.leftovers import move_sites_of_ended_runs

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("thorough", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Plugins of Pulumi's CLI are built or there; a missing one is an error.
os.environ["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"

# A shell makes what it runs in the background, and all that this starts, deaf to Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Before any worker starts, decide what samples are taken, and end the sites that killed runs left."""
    if not hasattr(config, "workerinput"):
        sampling.commit()
        if config.option.collectonly:
            return  # Nobody may read what it prints.
        for site in move_sites_of_ended_runs(BlockRegistry(default_registry())):
            print(f"a run of the tests that has ended left a site: moved to {site}")


def pytest_report_header() -> str:
    """What chose the calls at which crash tests strike."""
    return f"samples: SAMPLES_OF={sampling.commit()} (docs/testing.md#every-night)"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Without garbage collection: it took a third of the time in a fresh clone, among objects that all stay.

    It never looks at those again, and less often at what tests make: memory is cheaper.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(7_000, 10, 20)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m` selects."""
    integration.add_marks(items)
    distribution.sort_longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> distribution.Scheduling | None:
    """By units instead of files."""
    return distribution.Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    integration.watch(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """A session's fixture may start a process to end what it made, whichever test is the last."""
    integration.watch(None)
    try:
        return (yield)
    finally:
        distribution.end_what_was_shared(item, nextitem)
