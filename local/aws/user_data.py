"""Finds the kubelet's flags in a machine's user data, wherever they are. Pure.

A real machine runs the script, or passes the NodeConfig to nodeadm; both end in flags of the kubelet, written out. This
reads the three that affect how a node registers.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any

_FLAG = re.compile(r"--(node-labels|register-with-taints|provider-id)(?:=|\s+)([^\s\"'\\]+)")
_NODEADM = "node.eks.aws/"
"""The API of the settings for EKS's own image, which sets the provider ID itself."""

_TAINT = re.compile(r"(?P<key>[^=:,]+)(?:=(?P<value>[^:,]*))?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)")


@dataclass(frozen=True, slots=True)
class KubeletFlags:
    """How a kubelet registers its node."""

    labels: dict[str, str] = field(default_factory=dict)
    taints: list[dict[str, Any]] = field(default_factory=list)
    names_provider_id: bool = False
    """Whether it sets its provider ID itself; else the cloud controller manager does."""


def decoded(user_data: str) -> str:
    """User data as EC2 keeps them, in base64; of binary data (compressed, say) the readable part."""
    return base64.b64decode(user_data).decode(errors="replace")


def kubelet_flags(user_data: str) -> KubeletFlags:
    """The kubelet flags in the text; of duplicate labels the last one counts."""
    labels: dict[str, str] = {}
    taints: dict[tuple[str, str], dict[str, Any]] = {}
    names_provider_id = _NODEADM in user_data
    for flag, value in _FLAG.findall(user_data):
        if flag == "node-labels":
            labels |= {key: word for key, _, word in (each.partition("=") for each in value.split(",") if each)}
        elif flag == "provider-id":
            names_provider_id = True
        else:
            for match in _TAINT.finditer(value):
                taint = {name: part for name, part in match.groupdict().items() if part}
                taints[taint["key"], taint["effect"]] = taint
    return KubeletFlags(labels, list(taints.values()), names_provider_id)
