"""The alert rules as data: the series that they read, the rows that they are for, and what can be set."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cloud_controller import clouds
from cloud_controller.monitoring.alerts import ALERTS, Alert, Severity, Source, groups
from tests.cloud_controller.monitoring.series import FOREIGN, samples

KEYWORDS = {
    *("absent", "by", "count", "histogram_quantile", "increase", "max", "min", "rate", "sum", "time"),
    *("le", "request", "name", "controller", "reason", "check", "cluster", "version"),
}


def rendered(provider: str = "mycloud", **given: Any) -> dict[str, dict[str, Any]]:
    (group,) = groups(provider, **given)
    return {rule["alert"]: rule for rule in group["rules"]}


def series(expr: str) -> set[str]:
    """What a query names besides functions and labels."""
    outside = re.sub(r"\{[^}]*\}|\[[^]]*\]", "", expr)
    return set(re.findall(r"\b[a-z_]\w*", outside)) - KEYWORDS


@pytest.mark.parametrize("provider", clouds.names())
@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_series_of_an_alert_exists_where_it_says(alert: Alert, provider: str) -> None:
    named = series(alert.rule(provider)["expr"])

    assert named
    assert named <= (samples(provider) if alert.source is Source.DAEMON else FOREIGN[alert.source])


def test_names_are_unique() -> None:
    assert len(rendered()) == len(ALERTS)


def test_every_row_of_the_seed_with_a_threshold_has_an_alert() -> None:
    held = {line for alert in ALERTS for line in alert.lines}

    # 11.4.6 to 11.4.8 also read doctor's findings.
    assert held >= {"9.1", "9.2", *(f"11.4.{number}" for number in range(1, 9))}


SEED = {
    *("CloudControllerManagerDown", "CloudControllerManagerNoLeader", "CloudAPIErrorRateHigh", "CloudAPILatencyHigh"),
    *("LoadBalancerSyncFailed", "CCMWorkQueueBacklog", "NodeInitializationTimeout", "CloudZoneUnhealthy"),
}


def test_the_alerts_of_the_seed_keep_their_names() -> None:
    assert set(rendered()) >= SEED


def test_of_two_thresholds_the_lower_one_warns_and_the_higher_one_is_critical() -> None:
    rules = rendered()
    high, very_high = rules["CloudAPIErrorRateHigh"], rules["CloudAPIErrorRateVeryHigh"]

    assert (high["expr"][-6:], high["labels"]) == ("> 0.01", {"severity": Severity.WARNING.value})
    assert (very_high["expr"][-5:], very_high["labels"]) == ("> 0.1", {"severity": Severity.CRITICAL.value})


def test_one_factor_scales_windows_ages_and_pending_times() -> None:
    rules = rendered(scale=0.01)

    assert "[3000ms]" in rules["CloudAPIErrorRateHigh"]["expr"]
    assert rules["CloudAPIErrorRateHigh"]["for"] == "6000ms"
    assert rules["CloudControllerMachinesNotRead"]["expr"].endswith("> 9")
    assert not [rule for rule in rules.values() if re.search(r"\d[mhd]\b", f"{rule['expr']} {rule['for']}")]


def test_nothing_is_left_to_be_filled_in() -> None:
    assert not [rule for rule in rendered().values() if "$" in rule["expr"] or "seconds(" in rule["expr"]]


def test_every_alert_about_the_daemon_is_about_the_given_job() -> None:
    exprs = [
        alert.rule("mycloud", job="other")["expr"]
        for alert in ALERTS
        if alert.source in (Source.DAEMON, Source.PROMETHEUS)
    ]

    for expr in exprs:
        assert expr.count('job="other"') == len(re.findall(r"\b(?:cloud\w+|leader\w+|workqueue\w+|up)\{", expr))


def test_the_runbooks_may_be_published_elsewhere() -> None:
    rule = rendered(runbooks="https://pages.example/runbooks")["CloudControllerManagerNoLeader"]

    assert rule["annotations"]["runbook_url"] == "https://pages.example/runbooks/leader.md"
