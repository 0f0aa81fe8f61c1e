"""The peer: Kubernetes' own AWS controller in Go, built from its Go modules once per machine.

    python -m benchmarks.aws.peer

builds it and prints its path. Its versions are those of tools/aws-peer/go.mod. It is needed to measure and to record
the peer's behaviour, never to run or test this project.
"""

from __future__ import annotations

import fcntl
import hashlib
import platform
import re
import sys
from pathlib import Path

from local.control_plane.binaries import TOOLS, cache_directory
from local.control_plane.build import LDFLAGS, BuildError, Report, build
from local.control_plane.toolchain import find_go

NAME = "aws-cloud-controller-manager"
PACKAGE = f"k8s.io/cloud-provider-aws/cmd/{NAME}"
MODULE = TOOLS / "aws-peer"


def version(module: str = "k8s.io/cloud-provider-aws") -> str:
    """The version of a module of the peer, as in `v1.34.3`."""
    match = re.search(rf"^\s*{re.escape(module)}\s+(v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise BuildError(f"{MODULE / 'go.mod'} does not require {module}")
    return match[1]


def binary(report: Report) -> Path:
    """The path of the binary, built first if needed (minutes). Raises BuildError if that is impossible."""
    folder = cache_directory() / "aws-peer" / _key()
    target = folder / NAME
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            report(f"building the peer, {NAME} {version()}, from Go modules, once per machine (3 to 6 minutes)")
            go = find_go(cache_directory(), TOOLS, report)
            build(go, NAME, version(), MODULE, target, report, package=PACKAGE)
    return target


def _key() -> str:
    digest = hashlib.sha256()
    for name in ("go.sum", "go.mod"):
        digest.update((MODULE / name).read_bytes())
    digest.update(repr((LDFLAGS, platform.system(), platform.machine())).encode())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    print(binary(lambda line: print(line, file=sys.stderr, flush=True)))
