"""Whether one instance of the CCM leads: its Lease is held and renewed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import Object, name

_MANY = 20
"""Changes of the leader, from which on their rate is judged: rolling updates change it too."""
_CLOCKS_APART = timedelta(minutes=10)
"""What two clocks may differ by, so that a Lease that is renewed looks expired."""
_OFTEN = timedelta(hours=1)


def holder(lease: Object | None, now: datetime) -> str | None:
    """Who holds the Lease; None if nobody does any more."""
    spec = (lease or {}).get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return None
    ends = datetime.fromisoformat(spec["renewTime"]) + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return str(spec["holderIdentity"]) if now < ends else None


def leader_of(seen: Seen) -> str | None:
    """Who leads now; None if nobody does. A holder that renews leads, whatever our clock says."""
    lease = seen.lease()
    leader = holder(lease, seen.now)
    return str(lease["spec"]["holderIdentity"]) if leader is None and lease and _renewed(seen, lease) else leader


def _run(seen: Seen) -> Iterator[Finding]:
    if not _elects(seen):
        return
    lease, leader = seen.lease(), leader_of(seen)
    if lease is None:
        yield Finding(
            what="no instance of the CCM leads: its Lease does not exist",
            evidence=(f"Lease {seen.target.namespace}/{seen.lease_name()}: not found",),
            remedy="start the CCM with the right to create this Lease, or name its Lease with "
            "--leader-elect-resource-name",
        )
    elif leader is None:
        spec = lease["spec"]
        last = spec.get("holderIdentity")
        yield Finding(
            subject=_subject(seen),
            what="no instance of the CCM leads",
            evidence=(
                f"last renewed {spec.get('renewTime') or 'never'} for {spec.get('leaseDurationSeconds')} s"
                + (f" by {last}" if last else "; its holder released it"),
            ),
            remedy="start the CCM; if it runs, its log says why it cannot get or renew the Lease (rights, API server)",
        )
    else:
        yield from _stranger(seen, leader)
        yield from _often(seen, lease)


def _renewed(seen: Seen, lease: Object) -> bool:
    spec = lease["spec"]
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return False
    apart = abs(seen.now - datetime.fromisoformat(spec["renewTime"]))
    return apart < _CLOCKS_APART and seen.renewed(lease)


def _stranger(seen: Seen, leader: str) -> Iterator[Finding]:
    """A holder's name starts with its host: the pod's name or, in the host's network, the machine's."""
    pods = seen.pods()
    known = {_host(name(pod)) for pod in pods} | {_host(pod["spec"].get("nodeName") or "") for pod in pods}
    known |= {_host(node["metadata"].get("labels", {}).get("kubernetes.io/hostname") or "") for node in _nodes(seen)}
    if pods and _host(leader.partition("_")[0]) not in known:
        yield Finding(
            subject=_subject(seen),
            what="the leader is none of the CCM's pods, so these only stand by",
            evidence=(f"holder {leader}", f"pods {', '.join(sorted(name(pod) for pod in pods))}"),
            remedy="find what else holds this Lease: another installation of a CCM, or `cloud-controller apply`; stop "
            "it, or give it a Lease of its own",
            severity=Severity.WARNING,
        )


def _often(seen: Seen, lease: Object) -> Iterator[Finding]:
    changes = int(lease["spec"].get("leaseTransitions") or 0)
    created = lease["metadata"].get("creationTimestamp")
    if changes < _MANY or created is None:
        return
    age = seen.now - datetime.fromisoformat(created)
    # The average of the Lease's whole life stays high for days after the cure.
    since = lease["spec"].get("acquireTime")
    stays = since is not None and seen.now - datetime.fromisoformat(since) >= _OFTEN
    if age / changes < _OFTEN and not stays:
        yield Finding(
            subject=_subject(seen),
            what=f"the leader changes every {age.total_seconds() / changes / 60:.0f} min on average",
            evidence=(f"{changes} changes since {created}",),
            remedy="see why its pods restart or lose the Lease: their log, the API server's latency, CPU limits",
            severity=Severity.WARNING,
        )


def _nodes(seen: Seen) -> list[Object]:
    """The nodes of the CCM's pods."""
    wanted = {pod["spec"].get("nodeName") for pod in seen.pods()}
    return [node for node in seen.nodes() if name(node) in wanted]


def _host(host: str) -> str:
    return host.partition(".")[0].lower()


def _subject(seen: Seen) -> str:
    return f"lease/{seen.target.namespace}/{seen.lease_name()}"


def _elects(seen: Seen) -> bool:
    return seen.argument("--leader-elect", "true") != "false"


CHECK = Check(
    name="leader",
    holds="one instance of the CCM leads",
    why="only the leader works; without one, nothing follows what happens in the cluster or in the cloud",
    lines=("11.2.2", "11.4.4", "10.4"),
    page="runbooks/leader.md",
    run=_run,
    after=frozenset({"api-server", "kubernetes-rights", "daemon-health", "ccm-pods"}),
)
