"""A stack of the embedded engine in a folder of its own: each command is a whole process, started cold."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.engine.stack.secrets import PASSPHRASE_VARIABLE, new_crypter

CHECKOUT = Path(__file__).resolve().parents[1]
STACK = PASSPHRASE = "benchmark"
KEPT_LINES = 30


class EngineStack:
    """A project with one new stack."""

    def __init__(self, directory: Path, program: str) -> None:
        self._project = directory / "project"
        self._states = directory / "states"
        self._runs = 0
        self._project.mkdir()
        (self._project / "Pulumi.yaml").write_text(f"name: {STACK}\nruntime: python\n")
        # As `pulumi stack init` writes it.
        (self._project / f"Pulumi.{STACK}.yaml").write_text(f"encryptionsalt: {new_crypter(PASSPHRASE).salt}\n")
        (self._project / "__main__.py").write_text(program)

    def reset(self) -> None:
        """Reset to an empty state."""
        self._runs += 1

    def seconds(self, command: str) -> float:
        """How long `preview`, `up` or `destroy` takes. Raises RuntimeError, with the end of its output, if it fails."""
        state = str(self._states / str(self._runs))
        return self._timed("local.engine", command, "--stack", STACK, "--state", state, "--cwd", str(self._project))

    def floor(self) -> float:
        """How long the program takes with a monitor that answers at once: the SDK's own share."""
        return self._timed("benchmarks.sdk_floor", str(self._project))

    def _timed(self, module: str, *arguments: str) -> float:
        environment = os.environ | {PASSPHRASE_VARIABLE: PASSPHRASE}
        started = time.monotonic()
        result = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=CHECKOUT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - started
        if result.returncode != 0:
            end = "\n".join((result.stdout + result.stderr).splitlines()[-KEPT_LINES:])
            raise RuntimeError(f"`{module} {' '.join(arguments)}` failed with exit code {result.returncode}:\n{end}")
        return seconds


@contextmanager
def engine_stack(program: str) -> Iterator[EngineStack]:
    """A stack in a temporary folder. The caller deletes what its program makes elsewhere."""
    with tempfile.TemporaryDirectory(prefix="engine-stack-") as directory:
        yield EngineStack(Path(directory), program)
