"""What servers run when they first start, as text (user data). It holds secrets: servers have no other way to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pulumi

from ..common.kubeconfigs import as_base64
from ..common.user_data import facts, no_metadata_for_pods, start
from ..interface import PoolSpec

METADATA = "169.254.169.254"
"""The address of the metadata service."""
_BOOT = Path(__file__).parent / "boot"


def of(name: str, spec: PoolSpec, *, first: bool) -> pulumi.Output[str]:
    """The script of the machine `name`; the first one of a control plane begins the cluster, unless there is one."""
    known = pulumi.Output.all(cluster=spec.cluster_name, join=dict(spec.join), labels=dict(spec.labels))
    plane = spec.role == "control-plane"
    return known.apply(lambda given: script(name, given, plane=plane, first=first))


def script(name: str, given: dict[str, Any], *, plane: bool, first: bool) -> str:
    """The script, of the cluster's name, what its pools join by, and the labels of the node."""
    join = given["join"]
    variables = {**facts(given["cluster"], join, given["labels"]), "NODE": name, "JOINER": as_base64(join["joiner"])}
    own = (_BOOT / "machine.sh").read_text().replace("@NO_METADATA@", no_metadata_for_pods(METADATA))
    provider_id = "openstack:///$INSTANCE"
    if not plane:
        return f"{start(variables, own, provider_id, 'worker')}\nrm -f /run/joiner.kubeconfig\n"
    variables |= {"SANS": join["api_names"], "PKI": _files(join["pki"]), "FIRST": "true" if first else "false"}
    then = (_BOOT / "control-plane.sh").read_text()
    return f"{start(variables, own, provider_id, 'cluster')}\n{then}"


def _files(pki: str) -> str:
    """A line for each file: its name, and its content as base64."""
    return "\n".join(f"{file} {as_base64(content)}" for file, content in sorted(json.loads(pki).items()))
