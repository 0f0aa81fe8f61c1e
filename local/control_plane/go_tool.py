"""Builds a program that is no part of the control plane, from its Go module in tools/: once per machine."""

from __future__ import annotations

import fcntl
import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path

from local.control_plane.binaries import TOOLS, cache_directory, required_version
from local.control_plane.build import LDFLAGS, Report, build
from local.control_plane.toolchain import find_go


@dataclass(frozen=True, slots=True)
class GoTool:
    """A program of a module in tools/."""

    folder: str
    """Of the module, in tools/ and in the user's cache."""
    module: str
    """The required module that has the program."""
    package: str
    """The program's package; its last part is the binary's name."""
    takes: str
    """How long a build takes, for people who wait for it."""
    tags: str = ""
    """Go's build tags, separated by commas."""

    def version(self, module: str = "") -> str:
        """The pinned version, as in `v1.34.3`, of the tool's module or of another that it requires."""
        return required_version(TOOLS / self.folder / "go.mod", module or self.module)

    def binary(self, report: Report) -> Path:
        """The path of the binary, built first if needed. Raises BuildError if that is impossible."""
        name = self.package.rpartition("/")[2]
        cache = cache_directory() / self.folder / self._key()
        target = cache / name
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                report(f"building {name} {self.version()} from Go modules, once per machine ({self.takes})")
                go = find_go(cache_directory(), TOOLS, report)
                folder = TOOLS / self.folder
                build(go, name, self.version(), folder, target, report, package=self.package, tags=self.tags)
        return target

    def _key(self) -> str:
        digest = hashlib.sha256()
        for name in ("go.sum", "go.mod"):
            digest.update((TOOLS / self.folder / name).read_bytes())
        digest.update(repr((LDFLAGS, platform.system(), platform.machine())).encode())
        digest.update(self.tags.encode())
        return digest.hexdigest()[:16]
