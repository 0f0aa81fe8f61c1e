"""Rule: neither the cluster's version nor the CCM's has a known vulnerability."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from policy.data import load
from policy.infrastructure import VERSION, cluster_version
from policy.objects import dig
from policy.rules import ADVISORY, HIGH, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem
from policy.workloads import WORKLOADS, Container, containers

_PLAIN = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
Version = tuple[int, int, int]


def problems(stack: Stack) -> Iterator[tuple[Subject | None, Problem]]:
    """Versions that an entry of the data names."""
    entries = load("vulnerabilities")["entries"]
    kubernetes = [each for each in entries if each["component"] == "kubernetes"]
    yield None, partial(_of_cluster, stack, kubernetes)
    for workload in stack.of(*WORKLOADS):
        for container in containers(workload):
            for entry in entries:
                if entry not in kubernetes:
                    yield workload, partial(_of_image, container, entry)


def affects(entry: Mapping[str, Any], text: str) -> bool:
    """Whether the vulnerability is in this version; a vendor's build (1.34.1-vendor.1) may have the fix, or not."""
    version = _parsed(text)
    if version is None:
        return False
    if "versions" in entry:
        return version in map(_parsed, entry["versions"])
    introduced = _parsed(entry.get("introduced", "0.0.0"))
    fixed = sorted(filter(None, map(_parsed, entry["fixed"])))
    assert introduced is not None
    # Of a newer minor version than all of them, no patch is older than the first mended one.
    mended = next((each for each in fixed if each[:2] == version[:2]), fixed[0])
    return introduced <= version < mended


def _of_cluster(stack: Stack, entries: Sequence[Mapping[str, Any]]) -> str | None:
    version = cluster_version(stack) or ""
    return "; ".join(filter(None, (_problem(entry, "Kubernetes", version) for entry in entries))) or None


def _of_image(container: Container, entry: Mapping[str, Any]) -> str | None:
    name, _, tag = str(dig(container(), "image") or "").partition("@")[0].rpartition(":")
    if not f"/{name}".endswith(f"/{entry['component']}"):
        return None
    return _problem(entry, str(entry["component"]), tag)


def _problem(entry: Mapping[str, Any], what: str, version: str) -> str | None:
    if not affects(entry, version):
        return None
    fixed = f"mended in {', '.join(entry['fixed'])}" if "fixed" in entry else "no mended version is known"
    return f"{what} {version.removeprefix('v')} has {entry['id']} ({entry['summary']}; {fixed})"


def _parsed(text: str) -> Version | None:
    found = _PLAIN.fullmatch(text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


NO_KNOWN_VULNERABILITIES = StackRule(
    "cluster-version-avoid-vulnerabilities",
    problems,
    why=(
        "Vulnerabilities of the control plane and of cloud controller managers are fixed in patch versions. A cluster "
        "on an older patch stays open to attacks that anybody can look up."
    ),
    level=ADVISORY,
    settings=VERSION,
    title="No version with a known vulnerability",
    severity=HIGH,
    lines=["11.4.8"],
    judges=(
        "The cluster's full version (`1.33.1`), and the tags of cloud controller managers' images, are not among those "
        "that `policy/data/vulnerabilities.json` names. The file has its date, its sources and what was searched."
    ),
    unseen=(
        "A minor version alone (a managed cluster's `1.36`, kubeadm's `stable-1.36`) and a vendor's build "
        "(`1.34.1-VENDOR.1`), whose patches are the vendor's; vulnerabilities of libraries in an image, which image "
        "scanners find; whatever is newer than the file."
    ),
    tags=["versions", "supply-chain"],
    remedy="Upgrade to a fixed patch version, or move on to a newer minor version.",
    url="https://kubernetes.io/docs/reference/issues-security/official-cve-feed/",
)
