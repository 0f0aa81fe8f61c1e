"""Starts a service as a process of its own, and ends it."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from local.http_client import HttpError, request
from local.openstack.configs import SERVICES
from local.openstack.environment import EnvironmentFailed
from local.waiting import wait_until

_START_SECONDS = 240.0
_END_SECONDS = 10.0


def free_ports() -> dict[str, int]:
    """A free port for each service."""
    with ExitStack() as stack:
        sockets = {service: stack.enter_context(socket.socket()) for service in SERVICES}
        for each in sockets.values():
            each.bind(("127.0.0.1", 0))
        return {service: each.getsockname()[1] for service, each in sockets.items()}


class Service:
    """One service. In a `with`, it answers in the block and has ended after it."""

    def __init__(self, service: str, python: Path, folder: Path, port: int) -> None:
        name = SERVICES[service]
        self._url = f"http://127.0.0.1:{port}/"
        self._log = folder / f"{name}.log"
        script = Path(__file__).parent / "services" / "serve.py"
        config = str(folder / f"{name}.conf")
        # Nova finds its paste file only beside its configuration, or by name.
        files = f"{python.parents[1]}/etc/nova/api-paste.ini;{config}" if name == "nova" else config
        env = os.environ | {f"OS_{name.upper()}_CONFIG_FILES": files, "PYTHONWARNINGS": "ignore"}
        arguments = ["--config-file", config] if name == "octavia" else []
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [str(python), str(script), name, str(port), *arguments], env=env, stdout=log, stderr=subprocess.STDOUT
            )

    def __enter__(self) -> Service:
        self.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def wait(self) -> None:
        """Wait until it answers. Raises EnvironmentFailed with its log."""
        if not wait_until(lambda: self._process.poll() is not None or self._answers(), _START_SECONDS) or (
            self._process.poll() is not None
        ):
            self.end()
            raise EnvironmentFailed(f"{self._log.stem} did not start:\n{self._log.read_text()[-3000:]}")

    def end(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        try:
            request("GET", self._url, seconds=5.0)
        except HttpError:
            return False
        return True
