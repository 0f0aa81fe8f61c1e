"""Rule: the cluster's version of Kubernetes is supported, and stays so for a while."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial

from cloud_controller.clouds.common.versions import minor
from policy.data import load
from policy.infrastructure import VERSION, control_planes, require_version
from policy.rules import ADVISORY, HIGH, Stack, StackRule, setting
from policy.subjects import Subject
from policy.unknowns import Problem


def problems(stack: Stack) -> Iterator[tuple[Subject | None, Problem]]:
    """A version whose support has ended, ends soon, or is unknown."""
    version = require_version(stack)
    managed = next(control_planes(stack), None)
    cloud, subject = (managed[0].name, managed[1]) if managed else ("upstream", None)
    yield subject, partial(problem, version, cloud, int(stack.config.get("days", 60)), datetime.now(UTC).date())


def problem(version: str, cloud: str, days: int, today: date) -> str | None:
    """What to say on `today` of a version that `cloud` (or upstream) runs, `days` before its support ends."""
    name = f"1.{minor(version)}"
    until = supported_until(name, cloud)
    if until is None:
        newest = next(iter(load("support")["until"]["upstream"]))
        return f"no date is known for the support of Kubernetes {name}; the newest known is {newest}"
    if until < today:
        return f"the support of Kubernetes {name} ended on {until}"
    return f"the support of Kubernetes {name} ends on {until}" if until - today <= timedelta(days) else None


def supported_until(name: str, cloud: str) -> date | None:
    """The last day of support of a minor version; a cloud supports what it has no row for as long as upstream."""
    rows = load("support")["until"]
    found = rows.get(cloud, {}).get(name) or rows["upstream"].get(name)
    return date.fromisoformat(found) if found else None


CLUSTER_IS_SUPPORTED = StackRule(
    "cluster-version-stay-supported",
    problems,
    why=(
        "A version of Kubernetes gets no fixes after its end of support, and neither does the CCM of that minor "
        "version. A managed cluster is then upgraded by the cloud, on a day that the cloud chooses."
    ),
    level=ADVISORY,
    settings={
        **VERSION,
        "days": setting("integer", "How many days ahead the end of support is reported.", 60, minimum=0),
    },
    title="The cluster's version is supported",
    severity=HIGH,
    lines=["11.1.5", "11.4.8"],
    sections="12.1",
    judges=(
        "The support of the cluster's minor version does not end within `days`: for a managed cluster by its cloud's "
        "calendar, otherwise by upstream's. A version without a date is reported as unknown. "
        "`policy/data/support.json` has the dates and their sources."
    ),
    unseen="Extended support that an account pays for; distributions with a calendar of their own.",
    tags=["versions"],
    remedy=(
        "Plan the upgrade: control plane, CCM, nodes. For a version without a date, look it up and add it to "
        "policy/data/support.json."
    ),
    url="https://kubernetes.io/releases/",
)
