"""Each alert fires on its history and clears once it is healthy, and fires neither on the healthy one nor on a near
miss: promtool runs the rules."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloud_controller import clouds
from cloud_controller.monitoring.alerts import ALERTS, Alert, groups
from local.control_plane.prometheus import promtool
from tests.cloud_controller.monitoring.histories import (
    CASES,
    HEALTHY,
    MINUTES,
    Series,
    Values,
    cured,
    findings,
    flat,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def program() -> Path:
    return promtool()


def run(program: Path, *arguments: str, inside: Path) -> str:
    """What promtool says; a failure of the rules or of their tests fails the test."""
    ended = subprocess.run([program, *arguments], cwd=inside, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def rules(folder: Path, provider: str = "mycloud", **given: Any) -> None:
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups(provider, **given)}))


def history(name: str, series: Series, **expected: Any) -> dict[str, Any]:
    recorded = [{"series": each, "values": notation(values)} for each, values in series.items()]
    return {"name": name, "interval": "1m", "input_series": recorded, **expected}


def notation(values: Values) -> str:
    """As promtool takes them."""
    return " ".join(sample(before, value) for before, value in pairwise([None, *values]))


def sample(before: float | None, value: float | None) -> str:
    """A series ends with `stale`, as in Prometheus after a scrape that lacks it."""
    if value is not None:
        return f"{value:.10g}"
    return "_" if before is None else "stale"


def firing(name: str, minute: int, *, fires: bool) -> dict[str, Any]:
    """Whether the alert fires then."""
    expression = f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) > bool 0'
    samples = [{"labels": "{}", "value": 1}] if fires else []
    return {"expr": expression, "eval_time": f"{minute}m", "exp_samples": samples}


def longest_window(alert: Alert) -> int:
    """How far back the alert reads, in minutes; 0: only the latest samples."""
    minutes = {"m": 1, "h": 60}
    return max((int(number) * minutes[unit] for number, unit in re.findall(r"\[(\d+)(\w)]", alert.expr)), default=0)


def check(program: Path, folder: Path, *tests: dict[str, Any]) -> None:
    rules(folder)
    # JSON is YAML, and much faster to write.
    text = json.dumps({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [*tests]})
    (folder / "tests.yaml").write_text(text)
    run(program, "test", "rules", "tests.yaml", inside=folder)


def test_each_alert_has_a_history() -> None:
    assert [*CASES] == [alert.name for alert in ALERTS]


@pytest.mark.parametrize("provider", clouds.names())
def test_the_rules_of_each_cloud_are_valid(program: Path, tmp_path: Path, provider: str) -> None:
    rules(tmp_path, provider)

    assert f"{len(ALERTS)} rules found" in run(program, "check", "rules", "rules.yaml", inside=tmp_path)


def test_rules_with_short_times_are_valid(program: Path, tmp_path: Path) -> None:
    rules(tmp_path, scale=0.01)

    run(program, "check", "rules", "rules.yaml", inside=tmp_path)


def test_each_alert_fires_on_its_history_and_clears_once_its_windows_are_healthy(program: Path, tmp_path: Path) -> None:
    tests = []
    for alert in ALERTS:
        case = CASES[alert.name]
        samples = [
            firing(alert.name, case.minute, fires=True),
            firing(alert.name, case.minute + longest_window(alert) + 1, fires=False),
        ]
        tests.append(history(alert.name, cured(case.fires, case.minute), promql_expr_test=samples))

    check(program, tmp_path, *tests)


def test_no_alert_fires_on_a_near_miss(program: Path, tmp_path: Path) -> None:
    tests = [
        history(name, HEALTHY | case.misses, promql_expr_test=[firing(name, case.minute, fires=False)])
        for name, case in CASES.items()
    ]

    check(program, tmp_path, *tests)


def test_no_alert_ever_fires_on_the_healthy_history(program: Path, tmp_path: Path) -> None:
    ever = {"expr": f'count(count_over_time(ALERTS{{alertstate="firing"}}[{MINUTES}m]))', "eval_time": f"{MINUTES}m"}

    check(program, tmp_path, history("healthy", HEALTHY, promql_expr_test=[ever | {"exp_samples": []}]))


def test_an_alert_of_doctor_leads_to_the_page_of_its_check(program: Path, tmp_path: Path) -> None:
    series = HEALTHY | {findings("quotas", "warning"): flat(3)}
    alert = {
        "exp_labels": {"severity": "warning", "check": "quotas"},
        "exp_annotations": {
            "summary": "cloud-controller doctor warns",
            "description": "Check quotas of doctor has 3 warnings.",
            "runbook_url": "docs/runbooks/quotas.md",
        },
    }
    expected = {"eval_time": "60m", "alertname": "CloudControllerDoctorFindings", "exp_alerts": [alert]}

    check(program, tmp_path, history("doctor", series, alert_rule_test=[expected]))
