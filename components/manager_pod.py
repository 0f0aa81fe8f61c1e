"""The CCM's pods: our daemon's container or that of the cloud's maker, and how it takes a role of the cloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import (
    ContainerArgsDict,
    EnvVarArgsDict,
    PodSpecArgsDict,
    ProbeArgsDict,
    ServiceAccountTokenProjectionArgsDict,
    TolerationArgsDict,
    VolumeArgsDict,
    VolumeMountArgsDict,
)

from .clouds import PodIdentity

SECURE_PORT = 10258
CONFIG_DIRECTORY = "/etc/cloud"
CONFIG_FILE = "cloud.conf"
TOKEN_DIRECTORY = "/var/run/secrets/cloud"
TOKEN_FILE = f"{TOKEN_DIRECTORY}/token"
_TOKEN_SECONDS = 3600
_NOBODY = 65534

# Seed 002 §8.1: the daemon must come up before any node is initialised or ready, and on the control plane.
TOLERATIONS: list[TolerationArgsDict] = [
    {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"},
    {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
    {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
]


@dataclass(frozen=True)
class Daemon:
    """What the container runs, and where it says that it is ready."""

    image: pulumi.Input[str]
    arguments: Sequence[pulumi.Input[str]]
    ready_path: str


def pod(
    name: str,
    daemon: Daemon,
    *,
    config_secret: str,
    on_control_plane: bool,
    identity: PodIdentity | None,
    environment: Mapping[str, pulumi.Input[str]],
) -> PodSpecArgsDict:
    """The pods' spec. On workers no two share a machine: they are on its network, and so on its ports."""
    mounts: list[VolumeMountArgsDict] = [{"name": "cloud-config", "mount_path": CONFIG_DIRECTORY, "read_only": True}]
    volumes: list[VolumeArgsDict] = [
        {"name": "cloud-config", "secret": {"secret_name": config_secret, "default_mode": 0o440}}
    ]
    if identity is not None:
        token: ServiceAccountTokenProjectionArgsDict = {
            "audience": identity.audience,
            "expiration_seconds": _TOKEN_SECONDS,
            "path": "token",
        }
        mounts.append({"name": "cloud-token", "mount_path": TOKEN_DIRECTORY, "read_only": True})
        volumes.append(
            {
                "name": "cloud-token",
                "projected": {"sources": [{"service_account_token": token}], "default_mode": 0o440},
            }
        )
    env: list[EnvVarArgsDict] = [{"name": "POD_IP", "value_from": {"field_ref": {"field_path": "status.podIP"}}}]
    given = {**(identity.environment if identity else {}), **environment}
    env += [{"name": key, "value": given[key]} for key in sorted(given)]
    container: ContainerArgsDict = {
        "name": name,
        "image": daemon.image,
        "args": [*daemon.arguments, "--leader-elect=true", "--bind-address=$(POD_IP)"],
        "env": env,
        "ports": [{"name": "secure", "container_port": SECURE_PORT, "protocol": "TCP"}],
        "readiness_probe": _probe(daemon.ready_path, period=2),
        "liveness_probe": {**_probe("/healthz", period=10), "initial_delay_seconds": 15},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
        "security_context": {
            "allow_privilege_escalation": False,
            "read_only_root_filesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volume_mounts": mounts,
    }
    spec: PodSpecArgsDict = {
        "service_account_name": name,
        "priority_class_name": "system-cluster-critical",
        "tolerations": TOLERATIONS,
        # The pod network needs routes, and who writes routes is this pod.
        "host_network": True,
        "security_context": {
            "run_as_non_root": True,
            "run_as_user": _NOBODY,
            "fs_group": _NOBODY,
            "seccomp_profile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": volumes,
    }
    if on_control_plane:
        spec["node_selector"] = {"node-role.kubernetes.io/control-plane": ""}
    else:
        spec["affinity"] = {
            "pod_anti_affinity": {
                "required_during_scheduling_ignored_during_execution": [
                    {"topology_key": "kubernetes.io/hostname", "label_selector": {"match_labels": {"k8s-app": name}}}
                ]
            }
        }
    return spec


def _probe(path: str, *, period: int) -> ProbeArgsDict:
    return {
        "http_get": {"path": path, "port": "secure", "scheme": "HTTPS"},
        "period_seconds": period,
        "timeout_seconds": 5,
        "failure_threshold": 3,
    }
