"""What Prometheus may have recorded: one healthy history, and for each alert how it fires and how it nearly does.

Values are in promtool's notation (`1x60`: 61 samples of 1, a minute apart; `0+2x60`: 2 more every minute).
"""

from __future__ import annotations

from dataclasses import dataclass

JOB = 'job="cloud-controller-manager"'
_ONE, _TWO = (f'{JOB}, instance="10.0.0.{host}:10258"' for host in (1, 2))
API = "cloudprovider_mycloud_api_request"
MINUTES = 240
DAY = 86400

Series = dict[str, str]


def flat(value: float) -> str:
    return f"{value:g}x{MINUTES}"


def rising(step: float) -> str:
    """From 0, by `step` a minute."""
    return f"0+{step:g}x{MINUTES}"


def up(instance: int) -> str:
    return f"up{{{(_ONE, _TWO)[instance]}}}"


def of(name: str, labels: str = "") -> str:
    """A series of the leader."""
    return f"{name}{{{_ONE}{labels and ', ' + labels}}}"


def standby(name: str, labels: str = "") -> str:
    return f"{name}{{{_TWO}{labels and ', ' + labels}}}"


def taints(nodes: int, values: str) -> Series:
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


_LEADER = 'name="cloud-controller-manager"'
_MACHINES_READ = of("cloud_controller_machines_read_timestamp_seconds")
_EXPIRY = of("cloud_controller_credential_expiry_timestamp_seconds")
_HELD = of("cloudcontroller_actions_held", 'controller="service"')
_DRIFT = of("cloud_controller_drift_corrections_total", 'controller="service"')
_ATTENTION = of("cloud_controller_services_needing_attention", 'reason="refused"')
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
    _MACHINES_READ: f"0+60x{MINUTES}",
    **{depth(queue): flat(3) for queue in ("service", "node", "route")},
    **{retries(queue): rising(0.05) for queue in ("service", "node", "route")},
    **{longest(queue): flat(2) for queue in ("service", "node", "route")},
    **passes("node", 2, 0),
    **passes("service", 6, 0.1),
    # A node that is new.
    'kube_node_spec_taint{node="new", key="node.cloudprovider.kubernetes.io/uninitialized"}': f"1x3 stale _x{MINUTES}",
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
    _LAST_RUN: f"0+60x{MINUTES}",
    _LAST_RUN_ELSEWHERE: f"0+60x{MINUTES}",
}
"""All series that alerts read, of two instances in a cluster without trouble."""


@dataclass(frozen=True)
class Case:
    """What differs from the healthy history: so that the alert fires, and so that it just does not; after `minute`."""

    fires: Series
    misses: Series
    minute: int = 120


CASES: dict[str, Case] = {
    "CloudControllerManagerDown": Case({up(0): flat(0), up(1): flat(0)}, {up(0): flat(0)}),
    "CloudControllerManagerInstanceDown": Case(
        {up(1): flat(0)},
        {up(1): f"1x111 0x8 1x{MINUTES}"},
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
    "CloudControllerMachinesNotRead": Case(
        {_MACHINES_READ: f"{90 * 60}x{MINUTES}"}, {_MACHINES_READ: f"{106 * 60}x{MINUTES}"}
    ),
    "LoadBalancerSyncFailed": Case({retries("service"): rising(0.2)}, {retries("service"): rising(0.09)}),
    "WorkQueueRetriesHigh": Case({retries("node"): rising(70)}, {retries("node"): rising(50)}),
    "CCMWorkQueueBacklog": Case({depth("service"): flat(101)}, {depth("service"): flat(100)}),
    "CCMNodeQueueBacklog": Case({depth("node-lifecycle"): flat(51)}, {depth("node"): flat(50)}),
    "WorkQueueStuck": Case({longest("service"): flat(301)}, {longest("service"): flat(300)}),
    "CloudControllerReconcileFailing": Case(passes("route", 2, 2), passes("route", 2, 0.9) | passes("service", 6, 6)),
    "NodeInitializationTimeout": Case(taints(1, flat(1)), taints(1, f"_x111 1x7 stale _x{MINUTES}")),
    "ManyNodesUninitialised": Case(taints(10, flat(1)), taints(9, flat(1))),
    "CloudZoneUnhealthy": Case({_ZONE: flat(45)}, {_ZONE: flat(50)}),
    "CloudZoneDown": Case({_ZONE: flat(0)}, {_ZONE: flat(10)}),
    "CloudRouteQuotaNearlyUsed": Case({_ROUTES: flat(80)}, {_ROUTES: flat(79)}),
    "CloudCredentialExpiresSoon": Case({_EXPIRY: flat(14 * DAY)}, {_EXPIRY: flat(15 * DAY)}),
    "CloudCredentialExpires": Case({_EXPIRY: flat(2 * DAY)}, {_EXPIRY: flat(3 * DAY)}),
    "CloudControllerVersionsDiffer": Case(
        {standby("cloud_controller_build_info", 'version="0.2.0"'): flat(1)},
        {standby("cloud_controller_build_info", 'version="0.2.0"'): f"_x90 1x20 stale _x{MINUTES}"},
    ),
    "CloudControllerActionsHeld": Case({_HELD: flat(1)}, {_HELD: f"0x95 1x{MINUTES}"}),
    "CloudControllerServicesNeedAttention": Case({_ATTENTION: flat(2)}, {_ATTENTION: f"0x106 2x{MINUTES}"}),
    "CloudControllerDriftCorrected": Case({_DRIFT: f"3x100 4x{MINUTES}"}, {_DRIFT: f"3x50 4x{MINUTES}"}),
    "CloudControllerDriftFound": Case(
        {findings("drift", "warning"): flat(1)}, {findings("routes", "critical"): flat(1)}
    ),
    "CloudControllerDoctorFindings": Case(
        {findings("quotas", "warning"): flat(1)}, {findings("quotas", "critical"): flat(1)}
    ),
    "CloudControllerDoctorCriticalFindings": Case(
        {findings("nodes-initialised", "critical"): flat(2)}, {findings("drift", "warning"): flat(1)}
    ),
    "CloudControllerDoctorNotRun": Case(
        {_LAST_RUN: f"{10 * 60}x{MINUTES}"}, {_LAST_RUN: f"{30 * 60}x{MINUTES}"}, minute=200
    ),
    "CloudControllerDoctorBlind": Case(
        {_NOT_CHECKED: f"0x59 1x{MINUTES}"}, {_NOT_CHECKED: f"0x69 1x{MINUTES}"}, minute=185
    ),
}
