"""Builds the Grafana dashboard from its panels: `python -m tools.dashboard` prints it (`make docs` stores it).

Queries name only series that the daemon exports, or, where the description says so, kube-controller-manager's.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from grafana_foundation_sdk.builders import common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from cloud_controller.monitoring.alerts import JOB

UID = "cloud-controller-manager"
_DATA_SOURCE = model.DataSourceRef(type_val="prometheus", uid="$datasource")
_CLUSTER = 'cluster=~"$cluster"'
_DAEMON = f'job=~"$job", {_CLUSTER}'
_NONE = "none"
"""What a panel shows whose series begin with the first event."""
_MISSING = ("red", "green")
_TO_DO = ("green", "orange")
"""Colours of 0 and of 1 or more."""

_Panel = TypeVar("_Panel", stat.Panel, timeseries.Panel)
Query = tuple[str, str]
"""An expression, and the legend of its series."""
Panels = list[stat.Panel | timeseries.Panel]


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana stores it."""
    builder = (
        build.Dashboard("Cloud Controller Manager")
        .uid(UID)
        .description("Whether the cloud controller manager runs, how the cloud answers, and what needs somebody.")
        .tags(["kubernetes", "cloud-controller-manager"])
        .time("now-6h", "now")
        .refresh("1m")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .with_variable(build.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        # Only this daemon exports the series; kube-controller-manager is not among the jobs.
        .with_variable(
            _variable("cluster", "label_values(cloud_controller_build_info, cluster)", ("All", "$__all"))
            .include_all(True)
            # Matches series without the label, too: most Prometheus servers watch one cluster.
            .all_value(".*")
        )
        .with_variable(_variable("job", f"label_values(cloud_controller_build_info{{{_CLUSTER}}}, job)", (JOB, JOB)))
    )
    for title, panels in _rows():
        builder = builder.with_row(build.Row(title))
        for panel in panels:
            builder = builder.with_panel(panel)
    found: dict[str, Any] = json.loads(json.dumps(builder.build(), cls=JSONEncoder))
    return found


def render() -> str:
    """The text of the generated file."""
    return json.dumps(dashboard(), indent=1, sort_keys=True) + "\n"


def _rows() -> list[tuple[str, Panels]]:
    return [
        ("Availability", _availability()),
        ("Cloud API", _cloud_api()),
        ("Work", _work()),
        ("Services and routes", _services_and_routes()),
        ("Nodes", _nodes()),
    ]


def _availability() -> Panels:
    return [
        _stat(
            "CCM availability",
            "Daemons that Prometheus reaches.",
            (f"sum(up{{{_DAEMON}}})", "Running instances"),
            _MISSING,
        ),
        _stat(
            "Leader status",
            "1: one daemon leads. 0: no daemon works.",
            (f"sum(leader_election_master_status{{{_DAEMON}}})", "Active leaders"),
            _MISSING,
        ),
        _stat(
            "Held actions",
            "Actions that wait until an administrator confirms them: `cloud-controller confirm DIGEST`.",
            (f"sum(cloudcontroller_actions_held{{{_DAEMON}}})", "Held"),
            _TO_DO,
        ),
        _stat(
            "Services needing attention",
            "For all reasons together; the row “Services and routes” has each.",
            (f"sum(cloud_controller_services_needing_attention{{{_DAEMON}}})", "Services"),
            _TO_DO,
        ),
    ]


def _cloud_api() -> Panels:
    requests = _calls("duration_seconds_count")
    errors = _calls("errors_total")
    return [
        _graph(
            "Cloud API request rate",
            "Calls to the cloud by operation, each attempt.",
            "reqps",
            (f"sum by (request) ({_rate(requests)})", "{{request}}"),
        ),
        _graph(
            "Cloud API error rate",
            "Failed calls by operation; “not found” is not a failure.",
            "reqps",
            (f"sum by (request) ({_rate(errors)})", "{{request}}"),
        ),
        _graph(
            "Cloud API failure ratio",
            "The share of calls that failed. Alerts begin at 1 %.",
            "percentunit",
            (f"sum({_rate(errors)}) / sum({_rate(requests)})", "Failed"),
        ),
        _graph(
            "Cloud API latency (P99)",
            "99 of 100 calls were faster.",
            "s",
            (_quantile(0.99, _calls("duration_seconds_bucket"), "request"), "{{request}}"),
        ),
        _graph(
            "Age of the last read of machines",
            "How long ago the leader last read the cloud's machines.",
            "s",
            (f"time() - max(cloud_controller_machines_read_timestamp_seconds{{{_DAEMON}}})", "Age"),
        ),
        _graph(
            "Time until the credential expires",
            "Of the daemons' cloud credential; “none” if no day is configured (`--credential-expires`).",
            "d",
            (f"(min(cloud_controller_credential_expiry_timestamp_seconds{{{_DAEMON}}}) - time()) / 86400", "Left"),
        ).no_value(_NONE),
    ]


def _work() -> Panels:
    passes = f"cloud_controller_reconcile_seconds_bucket{{{_DAEMON}}}"
    return [
        _graph(
            "Work queue depth",
            "Keys that wait for a worker, in the longest queue of all daemons. A standby's may hold one.",
            "short",
            (f"max by (name) (workqueue_depth{{{_DAEMON}}})", "{{name}}"),
        ),
        _graph(
            "Retries",
            "Keys that were retried after a failure, by controller.",
            "ops",
            (f"sum by (name) ({_rate(f'workqueue_retries_total{{{_DAEMON}}}')})", "{{name}}"),
        ),
        _graph(
            "Oldest work in progress",
            "How long the oldest reconciliation in progress has run.",
            "s",
            (f"max by (name) (workqueue_longest_running_processor_seconds{{{_DAEMON}}})", "{{name}}"),
        ),
        _graph(
            "Reconciliation time (P99)",
            "Of one pass of a controller, or of one Service.",
            "s",
            (
                _quantile(0.99, passes, "controller"),
                "{{controller}}",
            ),
        ),
        _graph(
            "Failed reconciliations",
            "By controller and error.",
            "ops",
            (
                f"sum by (controller, error) ({_rate(f'cloud_controller_reconcile_errors_total{{{_DAEMON}}}')})",
                "{{controller}}: {{error}}",
            ),
        ).no_value(_NONE),
        _graph(
            "Actions by result",
            "Actions of plans: done, failed or postponed.",
            "ops",
            (
                f"sum by (controller, result) ({_rate(f'cloud_controller_actions_total{{{_DAEMON}}}')})",
                "{{controller}}: {{result}}",
            ),
        ),
    ]


def _services_and_routes() -> Panels:
    # Standbys export 0 for all of these.
    return [
        _graph(
            "Services needing attention, by reason",
            "`cloud-controller plan` names each Service.",
            "short",
            (f"max by (reason) (cloud_controller_services_needing_attention{{{_DAEMON}}})", "{{reason}}"),
        ),
        _graph(
            "Reconciliations of Services",
            "Only those that had something to do.",
            "ops",
            (f"sum({_rate(f'service_controller_loadbalancer_sync_total{{{_DAEMON}}}')})", "Reconciliations"),
        ),
        _graph(
            "Routes and quota",
            "Routes in the cluster's route table, and how many it may hold (0: unknown).",
            "short",
            (f"max(cloud_controller_routes{{{_DAEMON}}})", "Routes"),
            (f"max(cloud_controller_route_quota{{{_DAEMON}}})", "Quota"),
        ),
        _graph(
            "Ignored differences",
            "What the last plan left alone, such as the routes of others.",
            "short",
            (f"max by (controller) (cloud_controller_ignored_differences{{{_DAEMON}}})", "{{controller}}"),
        ).span(12),
        _graph(
            "Corrected drift",
            "Changes of somebody else in the cloud that the controllers undid, or tried to, within an hour.",
            "short",
            (
                f"sum by (controller) (increase(cloud_controller_drift_corrections_total{{{_DAEMON}}}[1h]))",
                "{{controller}}",
            ),
        ).span(12),
    ]


def _nodes() -> Panels:
    # Nodes come rarely: the rate of a few minutes is mostly 0, of which there is no quantile.
    new = f"increase(node_controller_initial_node_sync_delay_seconds_bucket{{{_DAEMON}}}[$__range])"
    return [
        _graph(
            "Node initialisation delay",
            "From a node's creation to the removal of its taint `uninitialized`; nodes of the time range shown.",
            "s",
            (f"histogram_quantile(0.5, sum by (le) ({new}))", "P50"),
            (f"histogram_quantile(0.99, sum by (le) ({new}))", "P99"),
        ).no_value(_NONE),
        _graph(
            "Nodes by zone",
            "A series of kube-controller-manager, which Prometheus must scrape too.",
            "short",
            (_zones("node_collector_zone_size"), "{{zone}}"),
        ),
        _graph(
            "Zone health",
            "Percent of the zone's nodes that are healthy. A series of kube-controller-manager.",
            "percent",
            (_zones("node_collector_zone_health"), "{{zone}}"),
        ),
    ]


def _calls(series: str) -> str:
    # The name has the provider in it. A daemon has one, so no two series of a target differ in their name alone.
    return f'{{__name__=~"cloudprovider_.+_api_request_{series}", {_DAEMON}}}'


def _zones(series: str) -> str:
    # The label is region, colon, a NUL, colon, zone; it is empty for nodes without a zone, which are always counted.
    selector = f'{series}{{{_CLUSTER}, zone!=""}}'
    return f'max by (zone) (label_replace({selector}, "zone", "$1 $2", "zone", "(.*):.:(.*)"))'


def _rate(selector: str) -> str:
    return f"rate({selector}[$__rate_interval])"


def _quantile(quantile: float, buckets: str, *by: str) -> str:
    return f"histogram_quantile({quantile}, sum by ({', '.join(('le', *by))}) ({_rate(buckets)}))"


def _variable(name: str, query: str, at_first: tuple[str, str]) -> build.QueryVariable:
    text, value = at_first
    return (
        build.QueryVariable(name)
        .label(name.capitalize())
        .datasource(_DATA_SOURCE)
        .query(query)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .current(model.VariableOption(selected=True, text=text, value=value))
    )


def _stat(title: str, description: str, query: Query, colours: tuple[str, str]) -> stat.Panel:
    below, from_one = colours
    steps = [model.Threshold(color=below), model.Threshold(value=1, color=from_one)]
    thresholds = build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)
    latest = common.ReduceDataOptions().calcs(["lastNotNull"])
    panel = stat.Panel().title(title).description(description).thresholds(thresholds).reduce_options(latest)
    return _with_queries(panel.height(4).span(6), query)


def _graph(title: str, description: str, unit: str, *queries: Query) -> timeseries.Panel:
    panel = timeseries.Panel().title(title).description(description).unit(unit).min(0).fill_opacity(5)
    return _with_queries(panel.height(8).span(8), *queries)


def _with_queries(panel: _Panel, *queries: Query) -> _Panel:
    panel = panel.datasource(_DATA_SOURCE)
    for ref, (expression, legend) in zip("ABC", queries, strict=False):
        query = prometheus.Dataquery().ref_id(ref).datasource(_DATA_SOURCE).expr(expression).legend_format(legend)
        panel = panel.with_target(query)
    return panel


if __name__ == "__main__":
    print(render(), end="")
