"""Whether the numbers of the CCM's metrics are within bounds: errors and latency of cloud calls, and work queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.scraping import Labels, Reading, readings
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import key

_PREFIX = "cloudprovider_"
_ERRORS, _REQUESTS, _BUCKETS = (
    "_api_request_errors_total",
    "_api_request_duration_seconds_count",
    "_api_request_duration_seconds_bucket",
)
# Seed 002, sections 9.1 and 11.4; where they differ, a warning from the lower value on.
_SHARE, _HIGH_SHARE = 0.01, 0.10
_QUANTILE, _LATENCY = 0.99, 10.0
_NODE_DEPTH, _DEPTH = 50.0, 100.0
_LONGEST = 300.0
_RETRIES = 1.0


def _errors(seen: Seen) -> Iterator[Finding]:
    failed, all_, seconds = defaultdict[str, float](float), defaultdict[str, float](float), 0.0
    for reading in readings(seen):
        seconds = reading.seconds
        _add(failed, reading.growth(_ERRORS, _PREFIX))
        _add(all_, reading.growth(_REQUESTS, _PREFIX))
    wrong, total = sum(failed.values()), sum(all_.values())
    if total <= 0 or wrong / total <= _SHARE:
        return
    yield Finding(
        what=f"{wrong / total:.0%} of the CCM's calls to the cloud fail",
        evidence=tuple(
            f"{failed[request]:.0f} of {all_[request]:.0f} calls {request} failed within {seconds:.0f} s"
            for request in sorted(failed, key=lambda each: -failed[each])
            if failed[request] > 0
        ),
        remedy="the CCM's log says why, except where a repeat succeeded (that needs --log-level=debug): kubectl logs "
        f"-n {seen.target.namespace} -l k8s-app={seen.target.workload} --tail=500 | grep -i error",
        # One call that failed may be chance.
        severity=Severity.CRITICAL if wrong / total > _HIGH_SHARE and wrong > 1 else Severity.WARNING,
    )


def _latency(seen: Seen) -> Iterator[Finding]:
    by_request: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for reading in readings(seen):
        for labels, grown in reading.growth(_BUCKETS, _PREFIX).items():
            by_request[dict(labels).get("request", "")][float(dict(labels)["le"])] += grown
    slow = {request: p99 for request, buckets in by_request.items() if (p99 := quantile(_QUANTILE, buckets)) > _LATENCY}
    if slow:
        yield Finding(
            what=f"the cloud answers slowly: the slowest hundredth of calls takes more than {_LATENCY:.0f} s",
            evidence=tuple(f"P99 of {request}: {slow[request]:.0f} s" for request in sorted(slow)),
            remedy="look at the cloud's status page, and at the network in between; calls may also wait for a limit",
            severity=Severity.WARNING,
        )


def quantile(share: float, buckets: Mapping[float, float]) -> float:
    """As PromQL's histogram_quantile, of cumulative counts by upper bound; 0 of nothing."""
    total = max(buckets.values(), default=0.0)
    if total <= 0:
        return 0.0
    rank, lower, below = share * total, 0.0, 0.0
    for upper, count in sorted(buckets.items()):
        if count >= rank:
            # Of the last bucket, only its lower bound is known.
            return lower if upper == float("inf") else lower + (upper - lower) * (rank - below) / (count - below)
        lower, below = upper, count
    return lower


def _queues(seen: Seen) -> Iterator[Finding]:
    for reading in readings(seen):
        for labels, depth in reading.now("workqueue_depth").items():
            queue = dict(labels).get("name", "")
            usual = _NODE_DEPTH if queue.startswith("node") else _DEPTH
            if depth > usual:
                yield _of_queue(
                    reading,
                    f"{depth:.0f} keys wait in its queue {queue}",
                    f"workqueue_depth{{name={queue!r}}} is {depth:.0f}; at most {usual:.0f} is usual",
                )
        for labels, longest in reading.now("workqueue_longest_running_processor_seconds").items():
            queue = dict(labels).get("name", "")
            if longest > _LONGEST:
                yield _of_queue(
                    reading,
                    f"one key of its queue {queue} has been in work for {longest:.0f} s",
                    f"workqueue_longest_running_processor_seconds{{name={queue!r}}} is {longest:.0f}",
                )
        for labels, retries in reading.growth("workqueue_retries_total").items():
            queue = dict(labels).get("name", "")
            if retries / reading.seconds > _RETRIES:
                yield _of_queue(
                    reading,
                    f"it retries keys of its queue {queue} again and again",
                    f"workqueue_retries_total{{name={queue!r}}} grew by {retries:.0f} within {reading.seconds:.0f} s",
                )


def _of_queue(reading: Reading, what: str, evidence: str) -> Finding:
    return Finding(
        subject=f"pod/{key(reading.pod)}",
        what=what,
        evidence=(evidence,),
        remedy="events of Services and nodes name what fails; if nothing does, the cloud limits or slows its calls",
        severity=Severity.WARNING,
    )


def _add(sums: dict[str, float], grown: Mapping[Labels, float]) -> None:
    for labels, value in grown.items():
        sums[dict(labels).get("request", "")] += value


_AFTER = frozenset({"api-server", "cloud-api", "ccm-pods", "daemon-health", "metrics"})
ERRORS = Check(
    name="api-errors",
    holds="the CCM's calls to the cloud succeed",
    why="a call that fails is repeated later, and what it was for waits as long",
    lines=("11.4.2", "9.1"),
    page="runbooks/api-errors.md",
    run=_errors,
    after=_AFTER,
    needs="scrape",
)
LATENCY = Check(
    name="api-latency",
    holds="the cloud answers the CCM's calls within seconds",
    why="nodes, load balancers and routes follow changes only as fast as the cloud answers",
    lines=("11.4.3", "9.1"),
    page="runbooks/api-latency.md",
    run=_latency,
    after=_AFTER,
    needs="scrape",
)
QUEUES = Check(
    name="work-queues",
    holds="the CCM keeps up with its work",
    why="what waits in a queue has not happened yet: nodes are not initialised, load balancers not changed",
    lines=("11.4.5", "9.1"),
    page="runbooks/work-queues.md",
    run=_queues,
    after=_AFTER | {"api-errors", "api-latency"},
    needs="scrape",
)
