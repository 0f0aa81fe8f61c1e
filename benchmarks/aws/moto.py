"""moto, a third-party simulator of AWS, as a process of its own behind the counting proxy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from benchmarks.aws.proxy import CALLS_PATH, LIMITS_PATH
from benchmarks.counts import Counted
from benchmarks.daemons import PROJECT
from local.addresses import socket_address
from local.ports import unused_address

START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_PORT = 5000


@dataclass(frozen=True, slots=True)
class Simulator:
    """A running moto. `endpoint`: the proxy, for the measured controllers; `direct`: moto itself, for the tests' own
    use.
    """

    endpoint: str
    direct: str

    def counted(self) -> Counted:
        """All calls so far."""
        with urlopen(f"{self.endpoint}{CALLS_PATH}") as answer:
            return Counted(**json.load(answer))

    def limit(self) -> None:
        """Enforce AWS's limits on calls from now on; the buckets are full (`limits.py`)."""
        urlopen(Request(f"{self.endpoint}{LIMITS_PATH}", method="PUT")).close()


@contextmanager
def simulator(folder: Path, latency: float = 0.0) -> Iterator[Simulator]:
    """An empty AWS, until the block ends. `latency`: seconds added to each call through the proxy."""
    # An address of its own: on 127.0.0.1 another connection may take a free port before moto listens.
    host = socket_address(unused_address((_PORT,)))
    direct = f"http://{host}:{_PORT}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "MOTO_"))}
    # moto takes seconds for thousands of images that no benchmark needs.
    environment["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
    with (folder / "moto.log").open("ab") as log, (folder / "proxy.log").open("ab") as proxy_log:
        moto = subprocess.Popen(
            [sys.executable, "-P", "-m", "moto.server", "-H", host, "-p", str(_PORT)],
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            _wait_for(direct, moto, folder / "moto.log")
            proxy = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.aws.proxy", "--behind", direct, "--latency", str(latency)],
                cwd=PROJECT,
                stdout=subprocess.PIPE,
                stderr=proxy_log,
                text=True,
            )
            try:
                assert proxy.stdout is not None
                yield Simulator(f"http://127.0.0.1:{int(proxy.stdout.readline())}", direct)
            finally:
                _end(proxy)
        finally:
            _end(moto)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urlopen(f"{url}/moto-api/data.json"):
                return
        except URLError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"moto did not answer; see {log}") from None
            time.sleep(_POLL_SECONDS)


def _end(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
