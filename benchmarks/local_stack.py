"""Stack `local` in a state folder of its own, for benchmarks: the checkout's own stack is left alone."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import urllib3

from local.control_plane.binaries import ensure

PROJECT = Path(__file__).resolve().parents[1]
ANSWER_SECONDS = 60.0
POLL_SECONDS = 0.05
KEPT_LINES = 30


class LocalStack:
    """The commands behind `make up`, `make preview` and the others, on one state folder."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def run(self, command: str, *more: str) -> str:
        """Run one command and return its output. Raises RuntimeError, with the end of the output, if it fails."""
        result = subprocess.run(
            [sys.executable, "-m", "local", command, "--state", str(self._state), *more],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            end = "\n".join((result.stdout + result.stderr).splitlines()[-KEPT_LINES:])
            raise RuntimeError(f"`python -m local {command}` failed with exit code {result.returncode}:\n{end}")
        return result.stdout

    def wait_answering(self) -> None:
        """Wait until the web workload answers a request through its load balancer."""
        status: dict[str, Any] = json.loads(self.run("status", "--json"))
        url = status["outputs"]["webUrl"]
        deadline = time.monotonic() + ANSWER_SECONDS
        with urllib3.PoolManager(retries=False, timeout=2) as pool:
            while not _answers(pool, url):
                if time.monotonic() >= deadline:
                    raise RuntimeError(f"{url} did not answer within {ANSWER_SECONDS:.0f} s")
                time.sleep(POLL_SECONDS)


@contextmanager
def local_stack() -> Iterator[LocalStack]:
    """A stack that is not up yet; everything is taken down at the end."""
    ensure(lambda line: print(line, file=sys.stderr))
    with tempfile.TemporaryDirectory(prefix="benchmark-") as directory:
        stack = LocalStack(Path(directory) / "state")
        try:
            yield stack
        finally:
            stack.run("down")


def _answers(pool: urllib3.PoolManager, url: str) -> bool:
    try:
        return pool.request("GET", url).status == 200
    except urllib3.exceptions.HTTPError:
        return False
