"""Which tests carry the mark `integration`: all that start a process or a simulated cloud.

So do those that run the program of a whole stack, or take seconds. Those of OpenStack's services are `nightly`, too.

`make test-fast` leaves them out. A test without the mark that starts one of these fails, so the rest stays fast.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pytest

MARK = "integration"
MARKS_WITH_IT = frozenset({"cli", "control_plane", "e2e"})
FIXTURES_WITH_IT = frozenset(
    {
        "_moto",
        "_server",
        "aws_site",
        "openstack_peer",
        "pack",
        "run_stack",
        "sample",
        "sample_runs",
        "shared",
        "simulator",
        "strict",
        "wheels",
    }
)

FIXTURES_OF_THE_NIGHT = frozenset({"openstack_peer"})
"""OpenStack's own services answer one request at a time."""

_PROCESS_EVENTS = frozenset({"os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen"})

_fast_test: str | None = None
"""The test that runs, if it is one that may start nothing."""


def add_marks(items: Iterable[pytest.Item]) -> None:
    """Mark every test whose other marks or fixtures start something, or something slow."""
    for item in items:
        fixtures: Iterable[str] = getattr(item, "fixturenames", ())
        if not FIXTURES_WITH_IT.isdisjoint(fixtures) or any(mark.name in MARKS_WITH_IT for mark in item.iter_markers()):
            item.add_marker(MARK)
        if not FIXTURES_OF_THE_NIGHT.isdisjoint(fixtures):
            item.add_marker("nightly")


def watch(item: pytest.Item | None) -> None:
    """Tell `refuse_in_fast_test` which test runs from now on."""
    global _fast_test
    _fast_test = None if item is None or item.get_closest_marker(MARK) else item.nodeid


def refuse_in_fast_test(what: str) -> None:
    """Fail a test that starts `what` without the mark."""
    if _fast_test is not None:
        raise AssertionError(f"{_fast_test} starts {what}; mark it `{MARK}`, or test the rule without it")


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event in _PROCESS_EVENTS:
        refuse_in_fast_test(f"a process ({arguments[0] if arguments else event})")


sys.addaudithook(_audit)
