"""Rule: the cluster's version of Kubernetes is supported, and stays so for a while."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

from cloud_controller.known_versions import UPSTREAM, support_problem
from policy.infrastructure import VERSION, control_planes, require_version
from policy.rules import ADVISORY, HIGH, Stack, StackRule, setting
from policy.subjects import Subject
from policy.unknowns import Problem


def problems(stack: Stack) -> Iterator[tuple[Subject | None, Problem]]:
    """A version whose support has ended, ends soon, or is unknown."""
    version = require_version(stack)
    managed = next(control_planes(stack), None)
    cloud, subject = (managed[0].name, managed[1]) if managed else (UPSTREAM, None)
    days = int(stack.config.get("days", 60))
    yield subject, partial(support_problem, version, cloud, days, datetime.now(UTC).date())


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
        "`cloud_controller/known_versions/support.json` has the dates and their sources."
    ),
    unseen="Extended support that an account pays for; distributions with a calendar of their own.",
    tags=["versions"],
    remedy=(
        "Plan the upgrade: control plane, CCM, nodes. For a version without a date, look it up and add it to "
        "cloud_controller/known_versions/support.json."
    ),
    url="https://kubernetes.io/releases/",
)
