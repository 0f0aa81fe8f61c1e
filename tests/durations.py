"""A pytest plugin that prints how long each file takes: `python -m pytest -p tests.durations`, also with workers.

Processor time is the worker's and that of its processes that have ended; a server counts where it ends.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator

import pytest

_PROCESSOR = "processor seconds"
_wall: defaultdict[str, float] = defaultdict(float)
_processor: defaultdict[str, float] = defaultdict(float)
_counted = 0.0


def _since_last() -> float:
    global _counted
    before, _counted = _counted, sum(os.times()[:4])
    return _counted - before


def pytest_runtest_logstart() -> None:
    """What was spent between tests, such as collection, is no test's."""
    _since_last()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.user_properties.append((_PROCESSOR, _since_last()))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    file = report.nodeid.partition("::")[0]
    _wall[file] += report.duration
    _processor[file] += sum(float(str(value)) for name, value in report.user_properties if name == _PROCESSOR)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each folder and file, by processor time."""
    terminalreporter.section("seconds: wall, processor")
    for file in sorted(_wall, key=lambda each: -_processor[each]):
        terminalreporter.line(f"{_wall[file]:9.1f} {_processor[file]:9.1f} {file}")
