"""Builds one program from its Go module, with visible progress."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO

from local.errors import BuildError, Report

LDFLAGS = "-s -w"
# Kubernetes' own build sets its version like this; without it the API server calls itself v0.0.0.
VERSION_VARIABLE = "k8s.io/component-base/version"
HEARTBEAT_SECONDS = 15.0
KEPT_LINES = 20


def build(
    go: Path,
    name: str,
    version: str,
    module_directory: Path,
    target: Path,
    report: Report,
    *,
    package: str,
    tags: str = "",
    version_variable: str = "",
) -> None:
    """Build `package`, the program `name` at `version`, into `target`, completely or not at all.

    `tags`: Go's build tags for it; `version_variable`: the Go variable that gets its version, if not those of
    Kubernetes. Raises BuildError with the compiler's last lines if it fails.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as temporary:
        output = Path(temporary) / name
        command = [
            *(str(go), "build", "-v", "-trimpath", "-ldflags", _ldflags(version, version_variable)),
            *("-tags", tags, "-o", str(output), package),
        ]
        with subprocess.Popen(
            command,
            cwd=module_directory,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                progress = _follow(process, name, started, report)
            except BaseException:
                process.kill()
                raise
        if process.returncode != 0:
            raise BuildError(f"go build of {name} {version} failed:\n" + "\n".join(progress.last_lines))
        output.replace(target)
    report(f"{name} {version}: built in {_duration(started)}")


class _Progress:
    """Counts the output of `go build -v`: a line for each module that it downloads and each package it compiles."""

    def __init__(self) -> None:
        self.downloaded = 0
        self.compiled = 0
        self.last_lines: deque[str] = deque(maxlen=KEPT_LINES)

    def read(self, stream: IO[str]) -> None:
        for line in stream:
            if line.startswith("go: downloading "):
                self.downloaded += 1
            else:
                self.compiled += 1
            self.last_lines.append(line.rstrip())


def _follow(process: subprocess.Popen[str], name: str, started: float, report: Report) -> _Progress:
    """Wait for the build's end, and report its progress at every heartbeat."""
    assert process.stderr is not None
    progress = _Progress()
    reader = threading.Thread(target=progress.read, args=(process.stderr,), daemon=True)
    reader.start()
    while True:
        try:
            process.wait(HEARTBEAT_SECONDS)
        except subprocess.TimeoutExpired:
            downloads = f"{progress.downloaded} modules downloaded, " if progress.downloaded else ""
            report(f"{name}: {downloads}{progress.compiled} packages compiled, {_duration(started)}")
        else:
            reader.join()
            return progress


def _ldflags(version: str, variable: str) -> str:
    if variable:
        return f"{LDFLAGS} -X {variable}={version}"
    major, minor = version.removeprefix("v").split(".")[:2]
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join([LDFLAGS, *(f"-X {VERSION_VARIABLE}.{key}={value}" for key, value in stamps.items())])


def _environment() -> dict[str, str]:
    """The user's environment (proxy, caches) without what would change the result."""
    kept = {key: value for key, value in os.environ.items() if key not in ("GOOS", "GOARCH", "GOEXPERIMENT")}
    return {**kept, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off"}


def _duration(started: float) -> str:
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
