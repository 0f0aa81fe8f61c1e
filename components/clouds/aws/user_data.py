"""What machines run when they first start, as texts (user data). It holds no secrets: roles let machines fetch them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

_BOOT = Path(__file__).parent / "boot"


def eks_node(cluster: str, join: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """For EKS's own image: the settings by which its `nodeadm` joins. It sets provider ID and cloud provider itself."""
    config = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": cluster,
                "apiServerEndpoint": join["endpoint"],
                "certificateAuthority": join["certificate_authority"],
                "cidr": join["service_cidr"],
            },
            "kubelet": {"flags": [f"--node-labels={node_labels(labels)}"]},
        },
    }
    boundary = "==settings=="
    return "\n".join(
        [
            "MIME-Version: 1.0",
            f'Content-Type: multipart/mixed; boundary="{boundary}"',
            "",
            f"--{boundary}",
            "Content-Type: application/node.eks.aws",
            "",
            json.dumps(config, indent=1),
            "",
            f"--{boundary}--",
            "",
        ]
    )


def kubeadm_worker(cluster: str, join: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """For a plain image: the machine becomes a worker of a cluster that runs itself."""
    return _script("worker", _facts(cluster, join, labels))


def kubeadm_control_plane(cluster: str, join: Mapping[str, str], labels: Mapping[str, str], *, first: bool) -> str:
    """The machine becomes one of the control plane; the first one begins the cluster, unless it has begun already."""
    return _script("control-plane", {**_facts(cluster, join, labels), "FIRST": "true" if first else "false"})


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


def _script(role: str, facts: Mapping[str, str]) -> str:
    known = [f"{name}={shlex.quote(value)}" for name, value in facts.items()]
    texts = ((_BOOT / f"{name}.sh").read_text() for name in ("prepare", role))
    return "\n".join(["#!/bin/bash", "set -euo pipefail", *known, "", *texts])
