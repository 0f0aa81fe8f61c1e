"""Finds the control plane's binaries (KUBEBUILDER_ASSETS, PATH, the user's cache), or builds them from Go modules.

The pinned versions are those of the Go module in tools/. The cache is keyed by a hash of that module, so a second
checkout builds nothing and a new pin never meets old binaries.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local.control_plane.components import BINARIES, ETCD
from local.errors import Report
from local.go.build import LDFLAGS, build
from local.go.compiler import find_go
from local.go.modules import TOOLS, cache_directory, required_version
from local.one_process import alone

KUBERNETES = "kubernetes"
"""The program that is all components but etcd: it is the one by whose name it is called."""
PACKAGES = {ETCD: "go.etcd.io/etcd/server/v3", KUBERNETES: "./control-plane"}
VERSION_TIMEOUT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Binaries:
    """The file of each component: etcd, kube-apiserver, kube-controller-manager, kube-scheduler."""

    paths: Mapping[str, Path]

    def path(self, name: str) -> Path:
        return self.paths[name]


def ensure(report: Report) -> Binaries:
    """Find the binaries, and build missing ones (minutes, once per machine).

    `report` gets a line for each step of a build. Raises BuildError when Go is missing or a build fails.
    """
    versions = pinned_versions()
    cache = cache_directory() / "control-plane" / cache_key()
    paths: dict[str, Path] = {}
    for name in BINARIES:
        found = _offered(name, versions[name]) or _cached(cache, name)
        if found is not None:
            paths[name] = found
    missing = [name for name in BINARIES if name not in paths]
    if missing:
        _build_missing(missing, versions, cache, report)
    return Binaries({name: paths.get(name, cache / name) for name in BINARIES})


def cache_key() -> str:
    """What the binaries depend on: the module, the build's flags, and the machine type."""
    digest = hashlib.sha256()
    for name in ("go.sum", "go.mod", "control-plane/main.go"):
        digest.update((TOOLS / name).read_bytes())
    digest.update(repr((LDFLAGS, platform.system(), platform.machine())).encode())
    return digest.hexdigest()[:16]


def pinned_versions() -> dict[str, str]:
    """The version (as in `v1.37.2`) that each component must have, from the Go module."""
    kubernetes = required_version(TOOLS / "go.mod", "k8s.io/kubernetes")
    etcd = required_version(TOOLS / "go.mod", PACKAGES[ETCD])
    return {name: etcd if name == ETCD else kubernetes for name in BINARIES}


def has_version(binary: Path, version: str) -> bool:
    """Whether `binary --version` prints this version (`v1.37.2`; etcd omits the v)."""
    try:
        result = subprocess.run(
            [binary, "--version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False  # for another machine type, or not a program
    return result.returncode == 0 and re.search(rf"\bv?{re.escape(version[1:])}\s", result.stdout + "\n") is not None


def _offered(name: str, version: str) -> Path | None:
    """A binary of the pinned version from the user's environment."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    candidates = [*([Path(assets) / name] if assets else []), *([Path(found)] if (found := shutil.which(name)) else [])]
    return next((path for path in candidates if has_version(path, version)), None)


def _cached(cache: Path, name: str) -> Path | None:
    path = cache / name
    return path if path.is_file() and os.access(path, os.X_OK) else None


def _build_missing(missing: list[str], versions: Mapping[str, str], cache: Path, report: Report) -> None:
    with alone(cache, "building the control plane", report):
        missing = [name for name in missing if _cached(cache, name) is None]
        if not missing:
            return
        report(f"building {', '.join(missing)} from Go modules, once per machine (6 to 8 minutes on 2 cores)")
        go = find_go(cache_directory(), TOOLS, report)
        for name in missing:
            program = ETCD if name == ETCD else KUBERNETES
            if _cached(cache, program) is None:
                build(go, program, versions[name], TOOLS, cache / program, report, package=PACKAGES[program])
            if name != program:
                (cache / name).unlink(missing_ok=True)
                (cache / name).symlink_to(program)
