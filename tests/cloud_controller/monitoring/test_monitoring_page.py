"""docs/monitoring.md describes every series and alert as it is, and every runbook that is named exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cloud_controller import clouds
from cloud_controller.doctor.checks import ALL
from cloud_controller.monitoring.alerts import ALERTS
from tests.cloud_controller.monitoring.series import FOREIGN, collector_labels, families

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "monitoring.md").read_text()
NONE = "\N{EN DASH}"
RUNBOOKS = sorted((DOCS / "runbooks").glob("*.md"))


def table(heading: str) -> dict[str, list[str]]:
    """The cells of each row of the section's table, by the name in the first."""
    section = PAGE[PAGE.index(f"## {heading}\n") :].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): row[1:] for row in rows}


def test_every_metric_is_documented_with_its_type_and_labels() -> None:
    documented = {name: (cells[0], cells[1]) for name, cells in table("Metrics").items()}

    labels = collector_labels()
    assert documented == {name: (family.type, ", ".join(labels[name]) or NONE) for name, family in families().items()}


def test_every_cloud_that_names_a_metric_is_listed() -> None:
    (listed,) = re.findall(r"`PROVIDER` is the cloud: ([^.]+)\.", PAGE)

    assert re.findall(r"`(\w+)`", listed) == clouds.names()


def test_every_metric_names_the_alerts_that_read_it() -> None:
    exprs = {alert.name: alert.rule("PROVIDER")["expr"] for alert in ALERTS}
    for name, cells in table("Metrics").items():
        reads = [alert for alert, expr in exprs.items() if re.search(rf"\b{name}(_bucket|_count)?\b", expr)]

        assert re.findall(r"`(\w+)`", cells[-1]) == reads, name


def test_every_alert_is_documented_with_its_severity_times_source_and_lines() -> None:
    documented = {name: cells[:5] for name, cells in table("Alerts").items()}

    assert documented == {
        alert.name: [alert.severity, alert.pending, alert.summary, alert.source, ", ".join(alert.lines) or NONE]
        for alert in ALERTS
    }


def test_the_series_of_others_are_named() -> None:
    assert not [each for names in FOREIGN.values() for each in names - {"up"} if f"`{each}`" not in PAGE]


def test_every_alert_and_every_check_of_doctor_has_its_runbook() -> None:
    of_alerts = {alert.page for alert in ALERTS if "{{" not in alert.page}
    of_checks = {check.page.removeprefix("runbooks/").removesuffix(".md") for check in ALL if "runbooks/" in check.page}

    assert of_alerts | of_checks <= {page.stem for page in RUNBOOKS}


@pytest.mark.parametrize("page", sorted({alert.page for alert in ALERTS if "{{" not in alert.page}))
def test_the_runbook_of_an_alert_leads_from_what_users_notice_to_the_cure(page: str) -> None:
    text = (DOCS / "runbooks" / f"{page}.md").read_text()

    parts = ["**Users notice:**", "## First look", "cloud-controller doctor", "## Causes", "## Cured when"]
    assert sorted(parts, key=text.index) == parts


@pytest.mark.parametrize("page", ["monitoring.md", "daemon.md"])
def test_every_link_leads_to_a_page_that_exists(page: str) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", (DOCS / page).read_text())

    assert not [link for link in links if not (DOCS / link).exists()]


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_every_series_in_a_runbook_exists(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"\b(?:cloud_?controller|workqueue|node_collector|leader_election)_\w+", text))
    known = {*families(), *(each for names in FOREIGN.values() for each in names), "node_collector_zone_size"}

    assert named <= known


def test_the_labels_of_a_metric_are_no_names_of_objects() -> None:
    allowed = {"controller", "error", "kind", "name", "reason", "request", "result", "version"}

    assert {label for labels in collector_labels().values() for label in labels} <= allowed
