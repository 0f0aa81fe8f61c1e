"""Fields of a pod that a process on this machine cannot honour; reported in events, never ignored silently. Pure."""

from __future__ import annotations

import os
from typing import Any

from local.machine.volumes import unsupported_volume

Object = dict[str, Any]

_NAMESPACES = ("hostPID", "hostIPC", "shareProcessNamespace")
_POD_SECURITY = ("fsGroup", "sysctls", "seLinuxOptions", "seccompProfile", "appArmorProfile")
_CONTAINER_SECURITY = ("capabilities", "seLinuxOptions", "seccompProfile", "appArmorProfile", "readOnlyRootFilesystem")


def refusals(pod: Object) -> list[str]:
    """Why the pod cannot run at all."""
    reasons = []
    if pod["spec"].get("initContainers"):
        reasons.append("initContainers are not supported")
    reasons += [why for volume in pod["spec"].get("volumes") or [] if (why := unsupported_volume(volume))]
    return reasons


def not_honoured(pod: Object) -> list[str]:
    """Fields that are ignored although the pod runs."""
    spec = pod["spec"]
    ignored = [f"spec.{name}" for name in _NAMESPACES if spec.get(name)]
    ignored += _security(spec.get("securityContext") or {}, "spec.securityContext", _POD_SECURITY)
    for container in spec["containers"]:
        where = f"container {container['name']}: "
        security = container.get("securityContext") or {}
        ignored += _security(security, f"{where}securityContext", _CONTAINER_SECURITY)
        if (container.get("resources") or {}).get("limits"):
            ignored.append(f"{where}resources.limits")
        ignored += [f"{where}lifecycle.{hook}" for hook in container.get("lifecycle") or {}]
        ignored += [f"{where}hostPort {p['hostPort']}" for p in container.get("ports") or [] if _redirects(p, spec)]
    return ignored


def _security(context: Object, where: str, fields: tuple[str, ...]) -> list[str]:
    """These fields if set, and users and groups other than those of processes here."""
    wanted = {"runAsUser": os.getuid(), "runAsGroup": os.getgid()}
    ignored = [f"{where}.{name}" for name, own in wanted.items() if context.get(name) not in (None, own)]
    if context.get("runAsNonRoot") and os.getuid() == 0:
        ignored.append(f"{where}.runAsNonRoot")
    return ignored + [f"{where}.{name}" for name in fields if context.get(name)]


def _redirects(port: Object, spec: Object) -> bool:
    """Whether a hostPort requires forwarding: on the host's network the port is the container's own."""
    return bool(port.get("hostPort")) and not spec.get("hostNetwork")
