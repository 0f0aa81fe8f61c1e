"""docs/daemon.md names each series and each option that it explains as it really is."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from cloud_controller.cli import commands as cli
from cloud_controller.cli import upstream as cli_upstream
from cloud_controller.controllers.queue import WorkQueue
from cloud_controller.metrics import Metrics

PAGE = (Path(__file__).parents[3] / "docs" / "daemon.md").read_text()


def served() -> set[str]:
    """The series of a daemon, as its page writes them."""
    metrics = Metrics()
    metrics.cloud_calls("PROVIDER")
    metrics.will_read_machines()
    metrics.credential_expires(date(2027, 1, 31))
    metrics.watch_queue("node", WorkQueue())
    types = re.findall(r"^# TYPE (\S+) (\w+)", metrics.render().decode(), re.MULTILINE)
    names = {name for name, _ in types}
    return {name for name in names if not name.startswith("process_")}


def test_every_metric_is_documented() -> None:
    assert served() <= set(re.findall(r"`(\w+)`", PAGE))


def test_every_documented_metric_is_served() -> None:
    tables = PAGE[PAGE.index("## Metrics") : PAGE.index("`node_collector_zone_health`")]
    rows = [line.split("|")[1] for line in tables.splitlines() if line.startswith("| `")]

    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} <= served()


def test_every_documented_daemon_option_exists() -> None:
    _, commands = cli._parsers()
    known = {option for parser in commands.values() for option in parser._option_string_actions}

    named = {name for name in re.findall(r"`(--[a-z-]+)", PAGE) if not name.endswith("-")}

    assert named <= known


@pytest.mark.parametrize("flag", ["use-service-account-credentials", "allocate-node-cidrs", "enable-leader-migration"])
def test_every_unsupported_upstream_flag_in_the_docs_is_rejected_with_advice(flag: str) -> None:
    assert flag in cli_upstream.FLAGS
    assert f"`--{flag}`" in PAGE
