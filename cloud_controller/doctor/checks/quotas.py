"""Whether the cloud's quotas leave room for more routes, load balancers and whatever else the CCM creates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cloud_controller.cloud import Quota, Quotas, Routes
from cloud_controller.controllers.route_plan import QUOTA_WARNING
from cloud_controller.doctor.findings import Check, Finding, OutOfReach, Severity
from cloud_controller.doctor.seen import Seen, Unreadable


def _run(seen: Seen) -> Iterator[Finding]:
    unread: list[str] = []
    untold: list[str] = []
    for number, read in enumerate(_reads(seen)):
        try:
            quotas = seen.once(("quotas", number), read)
        except Unreadable as error:
            unread.append(str(error))
            continue
        for quota in quotas:
            if quota.used is None or quota.limit is None:
                untold.append(quota.of)
            elif quota.used >= QUOTA_WARNING * quota.limit:
                yield _finding(quota.of, quota.used, quota.limit)
    if unread:
        raise Unreadable("; ".join(unread))
    if untold:
        raise OutOfReach(f"this cloud does not tell the quota of {' and of '.join(untold)}, or how much of it is used")


def _reads(seen: Seen) -> Iterator[Callable[[], Sequence[Quota]]]:
    cloud, controllers = seen.cloud(), seen.daemon().controllers
    routes = cloud.routes
    if routes is not None and "route" in controllers:
        yield lambda: [_of_routes(routes)]
    if isinstance(cloud, Quotas):
        yield from cloud.quotas(controllers)


def _of_routes(routes: Routes) -> Quota:
    used = len(routes.list())  # Before the quota, which may depend on the families of what is there.
    return Quota("routes of the cluster's table", used, routes.quota())


def _finding(of: str, used: int, limit: int) -> Finding:
    full = used >= limit
    return Finding(
        what=f"the quota of {of} is {'used up' if full else 'nearly used up'}",
        evidence=(f"{used} of {limit} are used",),
        remedy="request a higher quota from the cloud, or delete what nobody needs",
        severity=Severity.CRITICAL if full else Severity.WARNING,
    )


CHECK = Check(
    name="quotas",
    holds="every quota that the cloud tells, of what the CCM creates, is used to less than 80 %",
    why="with a quota used up, the next node gets no route, or the next Service no load balancer",
    lines=("11.4.6", "10.1.2", "10.1.3", "10.1.5"),
    page="runbooks/quotas.md",
    run=_run,
    after=frozenset({"api-server", "cloud-config", "cloud-api", "cloud-rights"}),
)
