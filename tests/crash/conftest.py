"""One environment for all tests of a session, and the table at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.crash.environment import Environment, Manager
from tests.crash.trial import COLUMNS
from tests.crash.under_fault import COSTS


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
    flags = ("--leader-elect=false", "--node-monitor-period=500ms", "--address-changes=acknowledge")
    with environment.manager("manager", *flags) as made:
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What survived, scenario by scenario, and what each fault cost."""
    done = [
        (report.nodeid.partition("[")[2].rstrip("]") or report.nodeid.rpartition("::")[2], dict(report.user_properties))
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
    ]
    for title, first, columns in (("crash points", "scenario", COLUMNS), ("faults", "fault", COSTS)):
        rows = [[name, *(str(said[each]) for each in columns)] for name, said in done if columns[0] in said]
        if rows:
            terminalreporter.section(title)
            for line in _table([[first, *columns], *sorted(rows)]):
                terminalreporter.line(line)


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
