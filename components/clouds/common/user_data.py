"""The script that makes a plain machine a part of a cluster that runs itself.

It consists of the facts as variables, the cloud's own part and the parts that are alike in every cloud (`boot/`), for
a system that installs packages with dnf. Where machines have roles (`MachineStart`), the script holds no secrets: the
role lets the machine read them.

A changed text replaces machines: a group of workers may refresh all of them when its launch template changes.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST_WITH_KUBEADM = 31
"""Kubernetes' minor version with the form of kubeadm's configuration that machines are given (v1beta4)."""
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
    return start(facts(cluster, join, labels), machine.script, machine.provider_id, "token-discovery", "worker")


def kubeadm_control_plane(
    machine: MachineStart, cluster: str, join: Mapping[str, str], labels: Mapping[str, str], *, first: bool
) -> str:
    """The machine becomes one of the control plane; the first one begins the cluster, unless it has begun already."""
    known = {**facts(cluster, join, labels), "SANS": "", "FIRST": "true" if first else "false"}
    own = f"{machine.script}\n{machine.keep}"
    return start(known, own, machine.provider_id, "token-discovery", "cluster", "control-plane")


def facts(cluster: str, join: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str]:
    """The variables that every machine's script has."""
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


def start(facts: Mapping[str, str], own: str, provider_id: str, *parts: str) -> str:
    """The script: the facts as variables, the cloud's `own` part, the system's preparation, then these of `boot/`.

    `own` sets NODE and what `provider_id` names, and defines the functions that `parts` call and do not define.
    """
    known = [f"{name}={shlex.quote(value)}" for name, value in facts.items()]
    prepare, *then = ((_BOOT / f"{name}.sh").read_text() for name in ("prepare", *parts))
    alike = [prepare.replace("$PROVIDER_ID", provider_id), *then]
    return "\n".join(["#!/bin/bash", "set -euo pipefail", *known, "", own, *alike])


def no_metadata_for_pods(address: str) -> str:
    """The part of a script that keeps pods with a network of their own away from the metadata service at `address`."""
    return (_BOOT / "no-metadata-for-pods.sh").read_text().replace("@METADATA@", address)


def node_labels(labels: Mapping[str, str]) -> str:
    """As the kubelet's flag takes them."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
