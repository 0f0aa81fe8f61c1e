"""Whether the versions of Kubernetes, its kubelets and the CCM go together, are supported and have no known hole."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby

from cloud_controller import clouds, known_versions
from cloud_controller.clouds.common.versions import minor
from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import Object, name

_AHEAD_DAYS = 60
_OLDEST_KUBELET = 3
"""Minor versions that a kubelet may be behind. Source: kubernetes.io/releases/version-skew-policy."""
_DATA_AGE = timedelta(days=31)
"""Seed 002, section 11.4: versions are looked at every month."""
_SHOWN = 5


def _run(seen: Seen) -> Iterator[Finding]:
    version = seen.version()["gitVersion"]
    yield from _of_cluster(seen, version)
    yield from _of_kubelets(seen, version)
    yield from _of_manager(seen, version)
    for file in known_versions.FILES:
        age = seen.now.date() - known_versions.as_of(file)
        if age > _DATA_AGE:
            yield Finding(
                what=f"the table of known versions ({file}) is {age.days} days old",
                evidence=(f"last compared with its sources on {known_versions.as_of(file)}",),
                remedy="use a newer release of cloud-controller, or look for new versions and CVEs yourself",
                severity=Severity.WARNING,
            )


def _of_cluster(seen: Seen, version: str) -> Iterator[Finding]:
    # A vendor's build, which has a suffix, has the vendor's calendar.
    cloud = seen.daemon().cloud if "-" in version else known_versions.UPSTREAM
    ends = known_versions.support_problem(version, cloud, _AHEAD_DAYS, seen.now.date())
    for what in (*filter(None, [ends]), *known_versions.kubernetes_vulnerabilities(version)):
        yield Finding(
            what=what,
            evidence=(f"the API server's version is {version}",),
            remedy="upgrade Kubernetes: control plane, CCM, nodes",
            severity=Severity.WARNING,
        )


def _of_kubelets(seen: Seen, version: str) -> Iterator[Finding]:
    server = minor(version)
    if server is None:
        return
    nodes = sorted(seen.nodes(), key=_kubelet)
    for kubelet, group in groupby(nodes, key=_kubelet):
        number, of_nodes = minor(kubelet), [name(node) for node in group]
        if number is None or server - _OLDEST_KUBELET <= number <= server:
            continue
        newer = number > server
        yield Finding(
            subject=f"node/{of_nodes[0]}" if len(of_nodes) == 1 else "",
            what=f"kubelet {kubelet} is "
            + (f"newer than the API server ({version})" if newer else f"too old for the API server ({version})"),
            evidence=(
                f"{len(of_nodes)} nodes: {', '.join(of_nodes[:_SHOWN])}{', …' if len(of_nodes) > _SHOWN else ''}",
            ),
            remedy="upgrade the control plane first" if newer else "upgrade these nodes",
            severity=Severity.WARNING,
        )


def _of_manager(seen: Seen, version: str) -> Iterator[Finding]:
    workload, container = seen.workload(), seen.container()
    if workload is None or container is None:
        return
    image = str(container["image"])
    repository, _, tag = image.partition("@")[0].rpartition(":")
    vendor = clouds.descriptor(seen.daemon().cloud).vendor_manager
    wrong = list(known_versions.image_vulnerabilities(image))
    if vendor is not None and vendor.image.fullmatch(repository):
        verdict = vendor.judge(tag, version)
        wrong += [verdict.why] if verdict.kind != "fits" else []
    for what in wrong:
        yield Finding(
            subject=f"{workload['kind'].lower()}/{seen.target.namespace}/{seen.target.workload}",
            what=what,
            evidence=(f"image {image}",),
            remedy="run the CCM's version for this version of Kubernetes",
            severity=Severity.WARNING,
        )


def _kubelet(node: Object) -> str:
    return str(node["status"]["nodeInfo"]["kubeletVersion"])


CHECK = Check(
    name="ccm-version",
    holds="Kubernetes and the CCM are supported, fit each other and have no known vulnerability",
    why="unsupported versions get no fixes, and versions that nobody tested together may lack an API that they need",
    lines=("11.1.5", "11.4.8"),
    page="runbooks/ccm-version.md",
    run=_run,
    after=frozenset({"api-server"}),
)
