"""What machines run when they first start, as texts (user data). It holds no secrets: roles let machines fetch them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..common.user_data import MachineStart, node_labels

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


def machine() -> MachineStart:
    """AWS's part of the start of a plain machine that joins a cluster that runs itself."""
    script, keep = ((_BOOT / f"{name}.sh").read_text() for name in ("machine", "keep"))
    return MachineStart(script, keep, provider_id="aws:///$ZONE/$INSTANCE")
