"""Builds a program from its Go module in tools/: once per machine."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path

from local.errors import Report
from local.go.build import LDFLAGS, build
from local.go.compiler import find_go
from local.go.modules import TOOLS, cache_directory, required_version
from local.one_process import alone


@dataclass(frozen=True, slots=True)
class GoTool:
    """A program of a module in tools/."""

    folder: str
    """Of the module, in tools/ and in the user's cache."""
    module: str
    """The required module that has the program."""
    package: str
    """The program's package; its last part is the binary's name, unless `program` is."""
    takes: str
    """How long a build takes, for people who wait for it."""
    tags: str = ""
    """Go's build tags, separated by commas."""
    program: str = ""
    """The binary's name."""
    version_variable: str = ""
    """The Go variable that gets the version."""
    stamped: str = ""
    """The version that it gets, if not the module's."""

    def version(self, module: str = "") -> str:
        """The pinned version, as in `v1.34.3`, of the tool's module or of another that it requires."""
        return required_version(TOOLS / self.folder / "go.mod", module or self.module)

    def binary(self, report: Report) -> Path:
        """The path of the binary, built first if needed. Raises BuildError if that is impossible."""
        target = self._target()
        if target.exists():
            return target
        name = target.name
        with alone(target.parent, f"building {name}", report):
            if not target.exists():
                report(f"building {name} {self.version()} from Go modules, once per machine ({self.takes})")
                go = find_go(cache_directory(), TOOLS, report)
                build(
                    go,
                    name,
                    self.stamped or self.version(),
                    TOOLS / self.folder,
                    target,
                    report,
                    package=self.package,
                    tags=self.tags,
                    version_variable=self.version_variable,
                )
        return target

    def is_built(self) -> bool:
        """Whether this machine has the binary."""
        return self._target().exists()

    def _target(self) -> Path:
        return cache_directory() / self.folder / self._key() / (self.program or self.package.rpartition("/")[2])

    def _key(self) -> str:
        digest = hashlib.sha256()
        folder = TOOLS / self.folder
        for path in (folder / "go.sum", folder / "go.mod", *sorted(folder.glob("*.go"))):
            digest.update(path.read_bytes())
        digest.update(repr((LDFLAGS, platform.system(), platform.machine())).encode())
        digest.update(f"{self.tags}{self.stamped}".encode())
        return digest.hexdigest()[:16]
