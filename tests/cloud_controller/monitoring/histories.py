"""What Prometheus may have recorded: one healthy history, and for each alert how it fires and how it nearly does."""

from __future__ import annotations

from dataclasses import dataclass

JOB = 'job="cloud-controller-manager"'
_ONE, _TWO = (f'{JOB}, instance="10.0.0.{host}:10258"' for host in (1, 2))
API = "cloudprovider_mycloud_api_request"
MINUTES = 240
DAY = 86400

Values = list[float | None]
"""A sample a minute, from 0 to MINUTES; None: there is no such series then."""
Series = dict[str, Values]


def flat(value: float | None) -> Values:
    return [value] * (MINUTES + 1)


def rising(step: float) -> Values:
    """From 0, by `step` a minute."""
    return [step * minute for minute in range(MINUTES + 1)]


def steps(since: dict[int, float | None]) -> Values:
    """The values from these minutes on; the first is minute 0."""
    return [since[max(start for start in since if start <= minute)] for minute in range(MINUTES + 1)]


def up(instance: int) -> str:
    return f"up{{{(_ONE, _TWO)[instance]}}}"


def of(name: str, labels: str = "") -> str:
    """A series of the leader."""
    return f"{name}{{{_ONE}{labels and ', ' + labels}}}"


def standby(name: str, labels: str = "") -> str:
    return f"{name}{{{_TWO}{labels and ', ' + labels}}}"


def taints(nodes: int, values: Values) -> Series:
    key = 'key="node.cloudprovider.kubernetes.io/uninitialized"'
    return {f'kube_node_spec_taint{{node="n{number}", {key}}}': values for number in range(nodes)}


def calls(seconds: float) -> Series:
    """Ten calls a minute of `GET machines`, each of which takes this long."""
    bounds = (0.1, 1, 5, 10, 30, 60)
    request = 'request="GET machines"'
    found = {
        of(f"{API}_duration_seconds_bucket", f'{request}, le="{bound:g}"'): rising(10 if seconds <= bound else 0)
        for bound in bounds
    }
    found[of(f"{API}_duration_seconds_bucket", f'{request}, le="+Inf"')] = rising(10)
    return found | {of(f"{API}_duration_seconds_count", request): rising(10)}


def failed(a_minute: float) -> Series:
    return {of(f"{API}_errors_total", 'request="GET machines"'): rising(a_minute)}


def passes(controller: str, a_minute: float, failed: float) -> Series:
    labels = f'controller="{controller}"'
    return {
        of("cloud_controller_reconcile_seconds_count", labels): rising(a_minute),
        of("cloud_controller_reconcile_errors_total", f'{labels}, error="Unavailable"'): rising(failed),
    }


_QUEUES = ("service", "node", "node-lifecycle", "route")
_LEADER = 'name="cloud-controller-manager"'
_MACHINES_READ = of("cloud_controller_machines_read_timestamp_seconds")
_EXPIRY = of("cloud_controller_credential_expiry_timestamp_seconds")
_HELD = of("cloudcontroller_actions_held", 'controller="service"')
_DRIFT = of("cloud_controller_drift_corrections_total", 'controller="service"')
_ATTENTION, _EXCLUDED = (
    of("cloud_controller_services_needing_attention", f'reason="{reason}"')
    for reason in ("refused", "excluded-by-label")
)
_ROUTES, _QUOTA = of("cloud_controller_routes"), of("cloud_controller_route_quota")
_ZONE = 'node_collector_zone_health{job="kube-controller-manager", zone="region-1::zone-a"}'
_NOT_CHECKED = 'cloud_controller_doctor_not_checked{check="quotas"}'
_LAST_RUN, _LAST_RUN_ELSEWHERE = (
    f'cloud_controller_doctor_last_run_timestamp_seconds{{cluster="{uid}"}}' for uid in ("uid-1", "uid-2")
)


def depth(queue: str) -> str:
    return of("workqueue_depth", f'name="{queue}"')


def retries(queue: str) -> str:
    return of("workqueue_retries_total", f'name="{queue}"')


def longest(queue: str) -> str:
    return of("workqueue_longest_running_processor_seconds", f'name="{queue}"')


def findings(check: str, severity: str) -> str:
    return f'cloud_controller_doctor_findings{{check="{check}", severity="{severity}"}}'


HEALTHY: Series = {
    up(0): flat(1),
    up(1): flat(1),
    of("leader_election_master_status", _LEADER): flat(1),
    standby("leader_election_master_status", _LEADER): flat(0),
    **calls(0.5),
    **failed(0.05),
    _MACHINES_READ: rising(60),
    **{depth(queue): flat(3) for queue in _QUEUES},
    **{retries(queue): rising(0.05) for queue in _QUEUES},
    **{longest(queue): flat(2) for queue in _QUEUES},
    **passes("node", 2, 0),
    **passes("route", 2, 0),
    **passes("service", 6, 0.1),
    # A node that is new.
    'kube_node_spec_taint{node="new", key="node.cloudprovider.kubernetes.io/uninitialized"}': steps({0: 1, 4: None}),
    # A taint of somebody else's.
    'kube_node_spec_taint{node="gpu", key="nvidia.com/gpu"}': flat(1),
    _ZONE: flat(100),
    _ROUTES: flat(20),
    _QUOTA: flat(100),
    standby("cloud_controller_routes"): flat(0),
    standby("cloud_controller_route_quota"): flat(0),
    _EXPIRY: flat(90 * DAY),
    of("cloud_controller_build_info", 'version="0.1.0"'): flat(1),
    standby("cloud_controller_build_info", 'version="0.1.0"'): flat(1),
    _HELD: flat(0),
    _ATTENTION: flat(0),
    _DRIFT: flat(3),
    findings("drift", "warning"): flat(0),
    findings("quotas", "warning"): flat(0),
    findings("nodes-initialised", "critical"): flat(0),
    _NOT_CHECKED: flat(0),
    _LAST_RUN: rising(60),
    _LAST_RUN_ELSEWHERE: rising(60),
}
"""All series that alerts read, of two instances in a cluster without trouble."""


@dataclass(frozen=True)
class Case:
    """What differs from the healthy history: so that the alert fires, and so that it just does not; at `minute`."""

    fires: Series
    misses: Series
    minute: int = 120


CASES: dict[str, Case] = {
    "CloudControllerManagerDown": Case({up(0): flat(0), up(1): flat(0)}, {up(0): flat(0)}),
    "CloudControllerManagerInstanceDown": Case(
        {up(1): flat(0)},
        {up(1): steps({0: 1, 112: 0, 121: 1})},
    ),
    "CloudControllerManagerNoLeader": Case(
        {of("leader_election_master_status", _LEADER): flat(0)},
        {
            of("leader_election_master_status", _LEADER): flat(0),
            standby("leader_election_master_status", _LEADER): flat(1),
        },
    ),
    "CloudAPIErrorRateHigh": Case(failed(0.2), failed(0.09)),
    "CloudAPIErrorRateVeryHigh": Case(failed(1.2), failed(0.9)),
    "CloudAPILatencyHigh": Case(calls(20), calls(8)),
    "CloudControllerMachinesNotRead": Case({_MACHINES_READ: flat(90 * 60)}, {_MACHINES_READ: flat(106 * 60)}),
    "LoadBalancerSyncFailed": Case({retries("service"): rising(0.2)}, {retries("service"): rising(0.09)}),
    "WorkQueueRetriesHigh": Case({retries("node"): rising(70)}, {retries("node"): rising(50)}),
    "CCMWorkQueueBacklog": Case({depth("service"): flat(101)}, {depth("service"): flat(100)}),
    "CCMNodeQueueBacklog": Case({depth("node-lifecycle"): flat(51)}, {depth("node"): flat(50)}),
    "WorkQueueStuck": Case({longest("service"): flat(301)}, {longest("service"): flat(300)}),
    "CloudControllerReconcileFailing": Case(passes("route", 2, 2), passes("route", 2, 0.9) | passes("service", 6, 6)),
    "NodeInitializationTimeout": Case(taints(1, flat(1)), taints(1, steps({0: None, 111: 1, 119: None}))),
    "ManyNodesUninitialised": Case(taints(10, flat(1)), taints(9, flat(1))),
    "CloudZoneUnhealthy": Case({_ZONE: flat(45)}, {_ZONE: flat(50)}),
    "CloudZoneDown": Case({_ZONE: flat(0)}, {_ZONE: flat(10)}),
    "CloudRouteQuotaNearlyUsed": Case({_ROUTES: flat(80)}, {_ROUTES: flat(79)}),
    "CloudCredentialExpiresSoon": Case({_EXPIRY: flat(14 * DAY)}, {_EXPIRY: flat(15 * DAY)}),
    "CloudCredentialExpires": Case({_EXPIRY: flat(2 * DAY)}, {_EXPIRY: flat(3 * DAY)}),
    "CloudControllerVersionsDiffer": Case(
        {standby("cloud_controller_build_info", 'version="0.2.0"'): flat(1)},
        {standby("cloud_controller_build_info", 'version="0.2.0"'): steps({0: None, 90: 1, 111: None})},
    ),
    "CloudControllerActionsHeld": Case({_HELD: flat(1)}, {_HELD: steps({0: 0, 96: 1})}),
    "CloudControllerServicesNeedAttention": Case({_ATTENTION: flat(2)}, {_ATTENTION: steps({0: 0, 107: 2})}),
    "CloudControllerNodesExcludedByLabel": Case({_EXCLUDED: flat(1)}, {_EXCLUDED: steps({0: 0, 117: 1})}),
    "CloudControllerDriftCorrected": Case({_DRIFT: steps({0: 3, 101: 4})}, {_DRIFT: steps({0: 3, 51: 4})}),
    "CloudControllerDriftFound": Case(
        {findings("drift", "warning"): flat(1)}, {findings("routes", "critical"): flat(1)}
    ),
    "CloudControllerDoctorFindings": Case(
        {findings("quotas", "warning"): flat(1)}, {findings("quotas", "critical"): flat(1)}
    ),
    "CloudControllerDoctorCriticalFindings": Case(
        {findings("nodes-initialised", "critical"): flat(2)}, {findings("drift", "warning"): flat(1)}
    ),
    "CloudControllerDoctorNotRun": Case({_LAST_RUN: flat(10 * 60)}, {_LAST_RUN: flat(30 * 60)}, minute=200),
    "CloudControllerDoctorBlind": Case(
        {_NOT_CHECKED: steps({0: 0, 60: 1})}, {_NOT_CHECKED: steps({0: 0, 70: 1})}, minute=185
    ),
}


def cured(fires: Series, minute: int) -> Series:
    """The history of what fires until this minute, and is as the healthy history then; counters count on."""
    found = dict(HEALTHY)
    for name, values in fires.items():
        healthy = HEALTHY.get(name, flat(None))
        counted = (values[minute] or 0) - (healthy[minute] or 0) if _is_counter(name) else 0
        found[name] = values[: minute + 1] + [
            None if value is None else value + counted for value in healthy[minute + 1 :]
        ]
    return found


def _is_counter(series: str) -> bool:
    return series.partition("{")[0].endswith(("_total", "_count", "_bucket"))
