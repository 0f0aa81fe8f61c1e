"""Sends the findings of a run to a Prometheus Pushgateway: a run ends before anything could scrape it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from http.client import HTTPException, InvalidURL

from prometheus_client import CollectorRegistry, Gauge, push_to_gateway

from cloud_controller.doctor.findings import Result, Severity

JOB = "cloud-controller-doctor"
_TIMEOUT = 10.0


def push(url: str, results: Sequence[Result], now: float, cluster: str) -> None:
    """Replace what the gateway has of the cluster's last run. `now`: seconds since 1970; `cluster`: the cluster's
    identity, so that clusters can share a gateway. Raises ConnectionError."""
    found = registry(results, now)
    try:
        push_to_gateway(url, job=JOB, registry=found, grouping_key={"cluster": cluster}, timeout=_TIMEOUT)
    except (OSError, ValueError, HTTPException) as error:
        # The error about a URL may quote the password in it.
        why = "not a valid URL, such as http://HOST:9091" if isinstance(error, InvalidURL) else error
        raise ConnectionError(f"cannot push the findings to the gateway: {why}") from None


def registry(results: Sequence[Result], now: float) -> CollectorRegistry:
    """The findings as metrics. Of a check that could not be done there is no 0, which would say that all is well."""
    made = CollectorRegistry()
    findings = Gauge(
        "cloud_controller_doctor_findings",
        "Findings of `cloud-controller doctor` in its last run.",
        ["check", "severity"],
        registry=made,
    )
    not_checked = Gauge(
        "cloud_controller_doctor_not_checked",
        "1 if the check could not be done in the last run, else 0.",
        ["check"],
        registry=made,
    )
    for result in results:
        counts = Counter(finding.severity for finding in result.findings)
        not_checked.labels(result.check.name).set(result.not_done is not None)
        for severity in Severity:
            if counts[severity] or result.not_done is None:
                findings.labels(result.check.name, severity.value).set(counts[severity])
    Gauge(
        "cloud_controller_doctor_last_run_timestamp_seconds",
        "When the last run ended, in seconds since 1970.",
        registry=made,
    ).set(now)
    return made
