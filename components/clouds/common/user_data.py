"""The script that makes a plain machine a part of a cluster that runs itself.

It consists of the facts as variables, the cloud's own part and the part that is alike in every cloud (`boot/`). The
cloud's part sets NODE and PROVIDER_ID, and defines two functions: `parameter KEY` prints what the cluster's machines
share under a key, `keep KEY VALUE` writes it. The script holds no secrets: the machine's role lets it read them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

_BOOT = Path(__file__).parent / "boot"


def kubeadm_worker(machine: str, cluster: str, join: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """The machine becomes a worker; `machine` is the cloud's part."""
    return _script(machine, "worker", _facts(cluster, join, labels))


def kubeadm_control_plane(
    machine: str, cluster: str, join: Mapping[str, str], labels: Mapping[str, str], *, first: bool
) -> str:
    """The machine becomes one of the control plane; the first one begins the cluster, unless it has begun already."""
    facts = {**_facts(cluster, join, labels), "FIRST": "true" if first else "false"}
    return _script(machine, "control-plane", facts)


def node_labels(labels: Mapping[str, str]) -> str:
    """As the kubelet's flag takes them."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _facts(cluster: str, join: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str]:
    return {
        "CLUSTER": cluster,
        "REGION": join["region"],
        "VERSION": join["kubernetes_version"],
        "ENDPOINT": join["endpoint"],
        "POD_CIDR": join["pod_cidr"],
        "SERVICE_CIDR": join["service_cidr"],
        "CA": join["certificate_authority"],
        "LABELS": node_labels(labels),
    }


def _script(machine: str, role: str, facts: Mapping[str, str]) -> str:
    known = [f"{name}={shlex.quote(value)}" for name, value in facts.items()]
    alike = [(_BOOT / f"{name}.sh").read_text() for name in ("prepare", role)]
    return "\n".join(["#!/bin/bash", "set -euo pipefail", *known, "", machine, *alike])
