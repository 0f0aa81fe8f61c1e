"""What stands in for Octavia's worker and amphorae: what is pending is done a moment after the last request for it.

It reports by the interface of provider drivers, so that quotas and virtual IPs are freed as with a real worker.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from octavia.api.drivers.driver_agent.driver_updater import DriverUpdater
from octavia.common import constants, utils
from octavia.db import api, models
from octavia_lib.common.constants import DRVR_STATUS_CODE_OK
from sqlalchemy import select

DELAY = 0.1
"""Seconds that a change takes."""
DONE = {constants.PENDING_CREATE: constants.ACTIVE, constants.PENDING_UPDATE: constants.ACTIVE}
_MODELS = {
    "loadbalancers": models.LoadBalancer,
    "listeners": models.Listener,
    "pools": models.Pool,
    "members": models.Member,
    "healthmonitors": models.HealthMonitor,
}

# Each time it is made, it lists the extensions of Neutron, and that is several times a request.
utils.get_network_driver = functools.cache(utils.get_network_driver)

_failing: set[str] = set()
"""Parts whose changes fail: they are in ERROR then, and their load balancer is ACTIVE, as a worker leaves them."""
_paused: set[str] = set()
"""The projects whose load balancers stay as they are."""
_seen: dict[str, float] = {}
"""Since when each load balancer is known to be pending."""


def before() -> None:
    """Complete what has been pending for `DELAY`."""
    session, now = api.get_session(), time.monotonic()
    with session.begin():
        # IDs first: this runs before each request, and a load balancer is read with all its parts.
        pending = select(models.LoadBalancer.id).where(models.LoadBalancer.provisioning_status.like("PENDING_%"))
        ids = session.scalars(pending.where(models.LoadBalancer.project_id.not_in(_paused))).all()
        due = [each for each in ids if now - _seen.setdefault(each, now) >= DELAY]
        reports = [_report(session.get(models.LoadBalancer, each)) for each in due]
    for report in reports:
        _seen.pop(report[constants.LOADBALANCERS][0]["id"])
        answer = DriverUpdater().update_loadbalancer_status(report)
        if answer["status_code"] != DRVR_STATUS_CODE_OK:
            raise RuntimeError(f"Octavia refused {report}: {answer}")


def answer(method: str, path: list[str], body: dict[str, Any]) -> object:
    """`PUT loadbalancers/ID` sets columns, such as a status ERROR, and so does `PUT pools/ID`, of any part; with
    `{"fails": true}`, its changes fail from now on. `PUT workers/PROJECT {"paused": true}` leaves all pending there.
    """
    del method
    if path[0] == "workers":
        (_paused.add if body["paused"] else _paused.discard)(path[1])
        return {}
    kind, part_id = path
    if "fails" in body:
        (_failing.add if body.pop("fails") else _failing.discard)(part_id)
    session = api.get_session()
    with session.begin():
        for name, value in body.items():
            setattr(session.get(_MODELS[kind], part_id), name, value)
    return {}


def _report(balancer: Any) -> dict[str, list[dict[str, str]]]:
    """What a worker reports about a load balancer and all its parts."""
    whole = balancer.provisioning_status == constants.PENDING_DELETE
    policies = [policy for listener in balancer.listeners for policy in listener.l7policies]
    parts = {
        constants.MEMBERS: [member for pool in balancer.pools for member in pool.members],
        constants.HEALTHMONITORS: [pool.health_monitor for pool in balancer.pools if pool.health_monitor],
        constants.POOLS: balancer.pools,
        constants.L7RULES: [rule for policy in policies for rule in policy.l7rules],
        constants.L7POLICIES: policies,
        constants.LISTENERS: balancer.listeners,
        constants.LOADBALANCERS: [balancer],
    }
    return {kind: [_done(each, whole) for each in some] for kind, some in parts.items()}


def _done(part: Any, whole: bool) -> dict[str, str]:
    if whole or part.provisioning_status == constants.PENDING_DELETE:
        return {"id": part.id, "provisioning_status": constants.DELETED}
    status = DONE.get(part.provisioning_status, part.provisioning_status)
    if part.id in _failing and part.provisioning_status in DONE:
        status = constants.ERROR
    return {"id": part.id, "provisioning_status": status, "operating_status": constants.ONLINE}
