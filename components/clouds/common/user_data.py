"""The script that makes a plain machine a part of a cluster that runs itself.

It consists of the facts as variables, the cloud's own part (`MachineStart`) and the part that is alike in every cloud
(`boot/`), for a system that installs packages with dnf. The script holds no secrets: the machine's role lets it read
them.

A changed text replaces machines: a group of workers may refresh all of them when its launch template changes.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_BOOT = Path(__file__).parent / "boot"


@dataclass(frozen=True, slots=True)
class MachineStart:
    """The cloud's part of the script."""

    script: str
    """Sets NODE, and defines the function `parameter KEY`: it prints what the cluster's machines share under a key."""
    keep: str
    """Defines the function `keep KEY VALUE`, which writes it; only on machines of the control plane."""
    provider_id: str
    """The machine's provider ID, with variables that `script` sets."""


def kubeadm_worker(machine: MachineStart, cluster: str, join: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """The machine becomes a worker; `machine` is the cloud's part."""
    return _script(_facts(cluster, join, labels), machine, machine.script, "worker")


def kubeadm_control_plane(
    machine: MachineStart, cluster: str, join: Mapping[str, str], labels: Mapping[str, str], *, first: bool
) -> str:
    """The machine becomes one of the control plane; the first one begins the cluster, unless it has begun already."""
    facts = {**_facts(cluster, join, labels), "FIRST": "true" if first else "false"}
    return _script(facts, machine, f"{machine.script}\n{machine.keep}", "control-plane")


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


def _script(facts: Mapping[str, str], machine: MachineStart, own: str, role: str) -> str:
    known = [f"{name}={shlex.quote(value)}" for name, value in facts.items()]
    prepare, then = ((_BOOT / f"{name}.sh").read_text() for name in ("prepare", role))
    alike = [prepare.replace("$PROVIDER_ID", machine.provider_id), then]
    return "\n".join(["#!/bin/bash", "set -euo pipefail", *known, "", own, *alike])
