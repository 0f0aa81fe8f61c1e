"""Whether the cloud's quotas leave room for more routes, load balancers and whatever else the CCM creates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cloud_controller.cloud import Quota, Quotas, Routes
from cloud_controller.controllers.route_plan import QUOTA_WARNING
from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen


def _run(seen: Seen) -> Iterator[Finding]:
    cloud, controllers = seen.cloud(), seen.daemon().controllers
    routes = cloud.routes
    if routes is not None and "route" in controllers:
        yield from _judged(seen.once("quota of routes", lambda: _of_routes(routes)))
    if isinstance(cloud, Quotas):
        yield from _judged(seen.once("quotas", lambda: cloud.quotas(controllers)))


def _of_routes(routes: Routes) -> Sequence[Quota]:
    limit = routes.quota()
    return [] if limit is None else [Quota("routes of the cluster's table", len(routes.list()), limit)]


def _judged(quotas: Sequence[Quota]) -> Iterator[Finding]:
    for quota in quotas:
        if quota.used < QUOTA_WARNING * quota.limit:
            continue
        full = quota.used >= quota.limit
        yield Finding(
            what=f"the quota of {quota.of} is {'used up' if full else 'nearly used up'}",
            evidence=(f"{quota.used} of {quota.limit} are used",),
            remedy="request a higher quota from the cloud, or delete what nobody needs",
            severity=Severity.CRITICAL if full else Severity.WARNING,
        )


CHECK = Check(
    name="quotas",
    holds="every quota of what the CCM creates is used to less than 80 %",
    why="with a quota used up, the next node gets no route, or the next Service no load balancer",
    lines=("11.4.6", "10.1.2", "10.1.3", "10.1.5"),
    page="runbooks/quotas.md",
    run=_run,
    after=frozenset({"api-server", "cloud-config", "cloud-api", "cloud-rights"}),
)
