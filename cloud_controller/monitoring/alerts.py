"""The alert rules, as plain data. Pure.

Seed 002 §9.1, §9.2 and §11.4, corrected where a series does not exist or a query does not parse, and what only this
project's daemon has. Where §9.2 and §11.4 name two thresholds, the lower one warns and the higher one is critical.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from string import Template
from typing import Any, Final

from cloud_controller.series import api_prefix

JOB: Final = "cloud-controller-manager"
GROUP: Final = "cloud-controller-manager"
RUNBOOKS: Final = "docs/runbooks"
"""Where the pages of the runbooks are, unless a user publishes them."""


class Severity(StrEnum):
    """The label by which Alertmanager's routes send alerts."""

    CRITICAL = "critical"
    """What the CCM is there for does not work, or stops soon: wake somebody."""
    WARNING = "warning"
    """It works, and will hurt later: during working hours."""


class Source(StrEnum):
    """What exports the series of an alert."""

    DAEMON = "the daemon"
    PROMETHEUS = "Prometheus"
    KUBE_CONTROLLER_MANAGER = "kube-controller-manager"
    KUBE_STATE_METRICS = "kube-state-metrics"
    DOCTOR = "cloud-controller doctor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert.

    `expr`: in PromQL, with `$job` (the daemon's job label) and `$api` (what the names of the cloud API's series start
    with); ranges as `[5m]` and ages as `seconds(15m)` are scaled, as `pending` is. `pending`: how long the expression
    must hold (Prometheus' `for`). `lines`: of seed 002 (`11.4.2`, or a section). `page`: its runbook, without `.md`.
    """

    name: str
    expr: str
    pending: str
    severity: Severity
    summary: str
    description: str
    page: str
    lines: tuple[str, ...] = ()
    source: Source = Source.DAEMON

    def rule(self, provider: str, *, job: str = JOB, scale: float = 1.0, runbooks: str = RUNBOOKS) -> dict[str, Any]:
        """The rule of a Prometheus rule file for a daemon of this cloud; `scale` multiplies all its times."""
        expr = Template(self.expr).substitute(job=f'job="{job}"', api=api_prefix(provider))
        expr = re.sub(r"\[(\w+)\]", lambda found: f"[{_scaled(found[1], scale)}]", expr)
        expr = re.sub(r"seconds\((\w+)\)", lambda found: f"{_milliseconds(found[1], scale) / 1000:g}", expr)
        return {
            "alert": self.name,
            "expr": expr,
            "for": _scaled(self.pending, scale),
            "labels": {"severity": self.severity.value},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": f"{runbooks}/{self.page}.md",
            },
        }


def groups(provider: str, *, job: str = JOB, scale: float = 1.0, runbooks: str = RUNBOOKS) -> list[dict[str, Any]]:
    """The groups of a rule file, and of a PrometheusRule: all alerts for a daemon of this cloud.

    `provider`: `Cloud.provider_name`. `job`: the label of the daemon's scrapes. `scale`: multiplies windows, ages and
    `for`; tests make them short. `runbooks`: the URL of the pages.
    """
    rules = [alert.rule(provider, job=job, scale=scale, runbooks=runbooks) for alert in ALERTS]
    return [{"name": GROUP, "rules": rules}]


def _scaled(duration: str, scale: float) -> str:
    if scale == 1.0:
        return duration
    # Prometheus takes whole milliseconds; a range must not be empty.
    return f"{max(1, round(_milliseconds(duration, scale)))}ms"


def _milliseconds(duration: str, scale: float) -> float:
    number, unit = int(duration[:-1]), duration[-1]
    return number * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit] * 1000 * scale


_ERROR_RATE = "sum(rate(${api}_errors_total{$job}[5m])) / sum(rate(${api}_duration_seconds_count{$job}[5m]))"

ALERTS: Final = (
    Alert(
        name="CloudControllerManagerDown",
        expr="absent(up{$job} == 1)",
        pending="5m",
        severity=Severity.CRITICAL,
        summary="The cloud controller manager is down",
        description="No instance of the cloud controller manager has answered Prometheus for 5 minutes: new nodes stay "
        "unusable, and Services get no load balancer.",
        page="ccm-pods",
        lines=("9.1", "9.2", "11.4.1"),
        source=Source.PROMETHEUS,
    ),
    Alert(
        name="CloudControllerManagerInstanceDown",
        expr="up{$job} == 0",
        pending="10m",
        severity=Severity.WARNING,
        summary="An instance of the cloud controller manager is down",
        description="Instance {{ $labels.instance }} has not answered Prometheus for 10 minutes; if the others fail "
        "too, nobody takes over.",
        page="ccm-pods",
        lines=("9.1", "11.4.1"),
        source=Source.PROMETHEUS,
    ),
    Alert(
        name="CloudControllerManagerNoLeader",
        expr="sum(leader_election_master_status{$job}) == 0",
        pending="5m",
        severity=Severity.CRITICAL,
        summary="The cloud controller manager has no leader",
        description="No instance has held the Lease for 5 minutes: nothing is reconciled.",
        page="leader",
        lines=("9.1", "9.2", "11.4.4"),
    ),
    Alert(
        name="CloudAPIErrorRateHigh",
        expr=f"{_ERROR_RATE} > 0.01",
        pending="10m",
        severity=Severity.WARNING,
        summary="More than 1 % of the cloud's answers are errors",
        description="{{ $value | humanizePercentage }} of the calls to the cloud have failed over 5 minutes.",
        page="api-errors",
        lines=("11.4.2",),
    ),
    Alert(
        name="CloudAPIErrorRateVeryHigh",
        expr=f"{_ERROR_RATE} > 0.1",
        pending="10m",
        severity=Severity.CRITICAL,
        summary="More than 10 % of the cloud's answers are errors",
        description="{{ $value | humanizePercentage }} of the calls to the cloud have failed over 5 minutes: changes "
        "of nodes and Services reach the cloud late, or not at all.",
        page="api-errors",
        lines=("9.1", "9.2"),
    ),
    Alert(
        name="CloudAPILatencyHigh",
        expr="histogram_quantile(0.99, sum by (le, request) (rate(${api}_duration_seconds_bucket{$job}[5m]))) > 10",
        pending="10m",
        severity=Severity.WARNING,
        summary="The cloud answers slowly",
        description="99 % of the calls {{ $labels.request }} take up to {{ $value | humanizeDuration }}; 10 s are "
        "allowed.",
        page="api-latency",
        lines=("9.1", "9.2", "11.4.3"),
    ),
    Alert(
        name="CloudControllerMachinesNotRead",
        expr="time() - cloud_controller_machines_read_timestamp_seconds{$job} > seconds(15m)",
        pending="5m",
        severity=Severity.CRITICAL,
        summary="The cloud's machines have not been read",
        description="Instance {{ $labels.instance }} leads, and last read the cloud's machines "
        "{{ $value | humanizeDuration }} ago: new nodes wait, and gone machines keep their nodes.",
        page="cloud-api",
    ),
    Alert(
        name="LoadBalancerSyncFailed",
        # §9.2 has 20, which one broken Service never reaches: backing off to 5 minutes, it is retried 12 times an hour.
        expr='increase(workqueue_retries_total{name="service", $job}[1h]) > 6',
        pending="5m",
        severity=Severity.WARNING,
        summary="Services fail to get their load balancers again and again",
        description="Services were retried {{ $value | humanize }} times within an hour.",
        page="load-balancers",
        lines=("9.2",),
    ),
    Alert(
        name="WorkQueueRetriesHigh",
        expr="sum by (name) (rate(workqueue_retries_total{$job}[5m])) > 1",
        pending="10m",
        severity=Severity.WARNING,
        summary="A controller retries more than once a second",
        description="Queue {{ $labels.name }} retries {{ $value | humanize }} keys a second.",
        page="work-queues",
        lines=("9.1",),
    ),
    Alert(
        name="CCMWorkQueueBacklog",
        expr='workqueue_depth{name!~"node.*", $job} > 100',
        pending="15m",
        severity=Severity.WARNING,
        summary="A work queue of the cloud controller manager is long",
        description="In queue {{ $labels.name }}, {{ $value }} keys have waited for 15 minutes.",
        page="work-queues",
        lines=("9.1", "9.2"),
    ),
    Alert(
        name="CCMNodeQueueBacklog",
        expr='workqueue_depth{name=~"node.*", $job} > 50',
        pending="15m",
        severity=Severity.WARNING,
        summary="Nodes wait for the cloud controller manager",
        description="In queue {{ $labels.name }}, {{ $value }} nodes have waited for 15 minutes.",
        page="work-queues",
        lines=("9.1",),
    ),
    Alert(
        name="WorkQueueStuck",
        expr="workqueue_longest_running_processor_seconds{$job} > seconds(5m)",
        pending="1m",
        severity=Severity.WARNING,
        summary="A controller works on one thing for minutes",
        description="Queue {{ $labels.name }} has worked on one key for {{ $value | humanizeDuration }}.",
        page="work-queues",
        lines=("9.1",),
    ),
    Alert(
        name="CloudControllerReconcileFailing",
        # Without service: one user's mistake in the only Service that changes fails all its passes.
        expr='sum by (controller) (increase(cloud_controller_reconcile_errors_total{controller!="service", $job}[15m]))'
        ' / sum by (controller) (increase(cloud_controller_reconcile_seconds_count{controller!="service", $job}[15m]))'
        " > 0.5",
        pending="10m",
        severity=Severity.CRITICAL,
        summary="Most passes of a controller fail",
        description="{{ $value | humanizePercentage }} of the passes of controller {{ $labels.controller }} have "
        "failed over 15 minutes.",
        page="daemon-health",
        lines=("11.4.1",),
    ),
    Alert(
        name="NodeInitializationTimeout",
        expr='count(kube_node_spec_taint{key="node.cloudprovider.kubernetes.io/uninitialized"} == 1) > 0',
        pending="10m",
        severity=Severity.WARNING,
        summary="Nodes wait for their initialisation",
        description="{{ $value }} nodes have waited for the cloud controller manager for 10 minutes: no pod is "
        "scheduled to them.",
        page="nodes-initialised",
        lines=("9.2",),
        source=Source.KUBE_STATE_METRICS,
    ),
    Alert(
        name="ManyNodesUninitialised",
        expr='count(kube_node_spec_taint{key="node.cloudprovider.kubernetes.io/uninitialized"} == 1) >= 10',
        pending="5m",
        severity=Severity.CRITICAL,
        summary="Ten nodes or more wait for their initialisation",
        description="{{ $value }} nodes have waited for the cloud controller manager for 5 minutes.",
        page="nodes-initialised",
        lines=("11.4.5",),
        source=Source.KUBE_STATE_METRICS,
    ),
    Alert(
        name="CloudZoneUnhealthy",
        # In percent. From 55 % of unready nodes on, kube-controller-manager itself calls the zone disrupted.
        expr="node_collector_zone_health <= 45",
        pending="5m",
        severity=Severity.WARNING,
        summary="Most nodes of a zone are not ready",
        description="Only {{ $value | humanize }} % of the nodes in zone {{ $labels.zone }} are ready.",
        page="zones",
        lines=("9.1", "9.2"),
        source=Source.KUBE_CONTROLLER_MANAGER,
    ),
    Alert(
        name="CloudZoneDown",
        expr="node_collector_zone_health < 1",
        pending="5m",
        severity=Severity.CRITICAL,
        summary="No node of a zone is ready",
        description="No node in zone {{ $labels.zone }} is ready.",
        page="zones",
        lines=("9.1", "9.2"),
        source=Source.KUBE_CONTROLLER_MANAGER,
    ),
    Alert(
        name="CloudRouteQuotaNearlyUsed",
        # A standby reports 0 of 0.
        expr="cloud_controller_routes{$job} / (cloud_controller_route_quota{$job} > 0) >= 0.8",
        pending="15m",
        severity=Severity.WARNING,
        summary="The cluster's route table is nearly full",
        description="{{ $value | humanizePercentage }} of the route quota is used: when it is full, pods of new nodes "
        "are unreachable.",
        page="quotas",
        lines=("11.4.6",),
    ),
    Alert(
        name="CloudCredentialExpiresSoon",
        expr="min(cloud_controller_credential_expiry_timestamp_seconds{$job}) - time() < 14 * 86400",
        pending="1h",
        severity=Severity.WARNING,
        summary="The cloud credential expires within two weeks",
        description="It expires in {{ $value | humanizeDuration }}: replace it.",
        page="credential-expiry",
        lines=("11.4.7",),
    ),
    Alert(
        name="CloudCredentialExpires",
        expr="min(cloud_controller_credential_expiry_timestamp_seconds{$job}) - time() < 2 * 86400",
        pending="5m",
        severity=Severity.CRITICAL,
        summary="The cloud credential expires within two days, or has expired",
        description="It expires in {{ $value | humanizeDuration }} (negative: it has expired): without it, every call "
        "to the cloud fails.",
        page="credential-expiry",
        lines=("11.4.7",),
    ),
    Alert(
        name="CloudControllerVersionsDiffer",
        expr="count(count by (version) (cloud_controller_build_info{$job})) > 1",
        pending="1h",
        severity=Severity.WARNING,
        summary="Instances of different versions run",
        description="{{ $value }} versions of the cloud controller manager have run for an hour: a rollout is stuck, "
        "or an instance runs that is not the workload's.",
        page="ccm-version",
        lines=("11.4.8",),
    ),
    Alert(
        name="CloudControllerActionsHeld",
        expr="max by (controller) (cloudcontroller_actions_held{$job}) > 0",
        pending="30m",
        severity=Severity.WARNING,
        summary="Actions wait for a confirmation",
        description="Controller {{ $labels.controller }} holds {{ $value }} actions back until somebody confirms "
        "them: cloud-controller confirm DIGEST.",
        page="held-actions",
    ),
    Alert(
        name="CloudControllerServicesNeedAttention",
        expr='max by (reason) (cloud_controller_services_needing_attention{reason!="excluded-by-label", $job}) > 0',
        pending="15m",
        severity=Severity.WARNING,
        summary="Services are refused, or do not work",
        description="{{ $value }} Services need somebody's attention: {{ $labels.reason }}.",
        page="load-balancers",
    ),
    Alert(
        name="CloudControllerNodesExcludedByLabel",
        expr='max(cloud_controller_services_needing_attention{reason="excluded-by-label", $job}) > 0',
        pending="5m",
        severity=Severity.CRITICAL,
        summary="A label excludes all nodes that serve a load balancer",
        description="{{ $value }} load balancers keep their last members only because they would have none otherwise: "
        "somebody labelled the nodes.",
        page="backends",
    ),
    Alert(
        name="CloudControllerDriftCorrected",
        expr="sum by (controller) (increase(cloud_controller_drift_corrections_total{$job}[1h])) > 0",
        pending="0s",
        severity=Severity.WARNING,
        summary="Somebody else changes what the cloud controller manager makes in the cloud",
        description="Controller {{ $labels.controller }} has undone, or tries to undo, about {{ $value | humanize }} "
        "changes of somebody else within an hour.",
        page="drift",
    ),
    Alert(
        name="CloudControllerDriftFound",
        expr='sum(cloud_controller_doctor_findings{check="drift"}) > 0',
        pending="0s",
        severity=Severity.WARNING,
        summary="Something differs from what the cloud controller manager makes",
        description="doctor found {{ $value }} differences that lasted: somebody changed them, or another controller.",
        page="drift",
        source=Source.DOCTOR,
    ),
    Alert(
        name="CloudControllerDoctorFindings",
        expr='sum by (check) (cloud_controller_doctor_findings{check!="drift", severity="warning"}) > 0',
        pending="0s",
        severity=Severity.WARNING,
        summary="cloud-controller doctor warns",
        description="Check {{ $labels.check }} of doctor has {{ $value }} warnings.",
        page="{{ $labels.check }}",
        lines=("11.2", "11.4.6", "11.4.7", "11.4.8"),
        source=Source.DOCTOR,
    ),
    Alert(
        name="CloudControllerDoctorCriticalFindings",
        expr='sum by (check) (cloud_controller_doctor_findings{check!="drift", severity="critical"}) > 0',
        pending="0s",
        severity=Severity.CRITICAL,
        summary="cloud-controller doctor found something that does not work",
        description="Check {{ $labels.check }} of doctor has {{ $value }} critical findings.",
        page="{{ $labels.check }}",
        lines=("11.2", "11.4.6", "11.4.7", "11.4.8"),
        source=Source.DOCTOR,
    ),
    Alert(
        name="CloudControllerDoctorNotRun",
        expr="time() - max by (cluster) (cloud_controller_doctor_last_run_timestamp_seconds) > seconds(3h)",
        pending="5m",
        severity=Severity.WARNING,
        summary="cloud-controller doctor has not run",
        description="The last run of doctor ended {{ $value | humanizeDuration }} ago: its findings are old.",
        page="doctor-not-run",
        source=Source.DOCTOR,
    ),
    Alert(
        name="CloudControllerDoctorBlind",
        expr="max by (check) (cloud_controller_doctor_not_checked) > 0",
        pending="2h",
        severity=Severity.WARNING,
        summary="cloud-controller doctor cannot do one of its checks",
        description="Doctor runs, but could not do check {{ $labels.check }} for 2 hours: it would find nothing.",
        page="doctor-not-run",
        source=Source.DOCTOR,
    ),
)
"""In the order of the page docs/monitoring.md. Trends without a threshold (§9.1) are panels of the dashboard."""
