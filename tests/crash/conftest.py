"""One environment for all tests of a session, and the table at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.environment import Environment, Manager

COLUMNS = ("calls", "crash points survived", "answer-lost points survived")


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """A real cluster on a real site; tests leave nothing in it."""
    made = Environment(tmp_path_factory.mktemp("crash"))
    try:
        yield made
    finally:
        made.down()


@pytest.fixture(scope="module")
def manager(environment: Environment) -> Iterator[Manager]:
    """The manager that is killed again and again; there is one, so it needs no lease."""
    with environment.manager("manager", "--leader-elect=false", "--node-monitor-period=500ms") as made:
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Scenario, calls, points survived."""
    rows = [
        [report.nodeid.partition("[")[2].rstrip("]"), *(str(dict(report.user_properties)[each]) for each in COLUMNS)]
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
        and report.when == "call"
        and COLUMNS[0] in dict(report.user_properties)
    ]
    if rows:
        table = [["scenario", *COLUMNS], *sorted(rows)]
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        terminalreporter.section("crash points")
        for row in table:
            terminalreporter.line(
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            )
