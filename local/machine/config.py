"""A machine's configuration at boot: `machine.json` and the two kubeconfigs in its directory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any


class Isolation(StrEnum):
    """How a pod's volumes are made visible to its processes."""

    AUTO = "auto"
    """Mounts where this user may make them, else paths."""

    MOUNTS = "mounts"
    """Bind mounts in a private mount namespace."""

    PATHS = "paths"
    """Mount paths in arguments and environment are rewritten to the volumes' real paths."""


@dataclass(frozen=True, slots=True)
class MachineType:
    """The size of a machine as its node reports it; `memory` is a Kubernetes quantity."""

    cpus: int
    memory: str
    pods: int = 110


MACHINE_TYPES = {
    "m1.small": MachineType(cpus=2, memory="4Gi"),
    "m1.medium": MachineType(cpus=4, memory="8Gi"),
    "m1.large": MachineType(cpus=8, memory="16Gi"),
}


class ConfigError(Exception):
    """The machine's configuration is invalid; the message names the file and the field."""


@dataclass(frozen=True, slots=True)
class MachineConfig:
    """`machine.json`; `address` is the machine's cluster address (10.x)."""

    id: str
    node_name: str
    address: str
    role: str
    type: str | None = None
    """One of MACHINE_TYPES; without a type, `size` is the machine's size."""

    provider_id: str | None = None
    node_labels: dict[str, str] = field(default_factory=dict)
    isolation: Isolation = Isolation.AUTO
    size: MachineType | None = None
    taints: tuple[dict[str, str], ...] = ()
    """The node's labels at registration, besides those of every cloud's nodes."""

    csi_driver: str | None = None
    """The CSI driver whose volumes the cloud attaches to machines; the node registers it. None: no volumes."""

    @property
    def machine_type(self) -> MachineType:
        """The machine's size."""
        return self.size or MACHINE_TYPES[self.type or ""]


def load_config(directory: Path) -> MachineConfig:
    """Read `machine.json`. Raises ConfigError if it is missing or invalid."""
    path = directory / "machine.json"
    try:
        raw: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error
    known = {f.name for f in fields(MachineConfig)}
    unknown = sorted(set(raw) - known)
    if unknown:
        raise ConfigError(f"{path}: unknown field {unknown[0]} (known: {', '.join(sorted(known))})")
    try:
        size = MachineType(**raw["size"]) if raw.get("size") else None
        isolation = Isolation(raw.get("isolation") or Isolation.AUTO)
        taints = tuple(raw.get("taints") or ())
        config = MachineConfig(**{**raw, "isolation": isolation, "size": size, "taints": taints})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error
    if config.size is None and config.type not in MACHINE_TYPES:
        raise ConfigError(f"{path}: type {config.type!r} is unknown (known: {', '.join(MACHINE_TYPES)})")
    return config
