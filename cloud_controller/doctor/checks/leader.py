"""Whether one instance of the CCM leads: its Lease is held and renewed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from cloud_controller.doctor.findings import Check, Finding
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import Object


def holder(lease: Object | None, now: datetime) -> str | None:
    """Who holds the Lease; None if nobody does any more."""
    spec = (lease or {}).get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return None
    ends = datetime.fromisoformat(spec["renewTime"]) + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return str(spec["holderIdentity"]) if now < ends else None


def _run(seen: Seen) -> Iterator[Finding]:
    lease = seen.lease()
    if holder(lease, seen.now) is not None or not _elects(seen):
        return
    name = f"{seen.target.namespace}/{seen.target.lease}"
    if lease is None:
        yield Finding(
            what="no instance of the CCM leads: its Lease does not exist",
            evidence=(f"Lease {name}: not found",),
            remedy="start the CCM with the right to create this Lease, or name its Lease with "
            "--leader-elect-resource-name",
        )
        return
    spec = lease["spec"]
    last = spec.get("holderIdentity")
    yield Finding(
        subject=f"lease/{name}",
        what="no instance of the CCM leads",
        evidence=(
            f"last renewed {spec.get('renewTime') or 'never'} for {spec.get('leaseDurationSeconds')} s"
            + (f" by {last}" if last else "; its holder released it"),
        ),
        remedy="start the CCM; if it runs, its log says why it cannot get or renew the Lease (rights, API server)",
    )


def _elects(seen: Seen) -> bool:
    return "--leader-elect=false" not in (seen.arguments() or ())


CHECK = Check(
    name="leader",
    holds="one instance of the CCM leads",
    why="only the leader works; without one, nothing follows what happens in the cluster or in the cloud",
    lines=("11.2.2", "11.4.4", "10.4"),
    page="runbooks/leader.md",
    run=_run,
    after=frozenset({"api-server", "ccm-pods"}),
)
