"""A plug-in's process: starts it, reads its port from the first output line, and ends it with this process.

Pulumi's Python servers print the port that they listen on as their first line, then whatever the user's code prints.
The process ends even when this one is killed: it asks the kernel for a signal at its parent's death. That signal is
bound to the thread that started the process, so one thread starts it and stays to read from it.
"""

from __future__ import annotations

import collections
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

START_SECONDS = 60.0
"""How long a server may take to print its port: a cold disk, two cores and a large import."""
STOP_SECONDS = 5.0
LAST_LINES = 20

# Runs before the plug-in, in its process: PR_SET_PDEATHSIG is option 1 of prctl and outlives exec.
_LAUNCH = (
    "import ctypes, os, signal, sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGTERM)\n"
    "os.getppid() == int(sys.argv[1]) or sys.exit('its parent is gone')\n"
    "os.execv(sys.argv[2], sys.argv[2:])"
)


class PluginError(Exception):
    """The process did not start; `output` holds its last lines."""

    def __init__(self, reason: str, output: str) -> None:
        super().__init__(f"{reason}\n{output}" if output else reason)
        self.reason = reason
        self.output = output


class PluginProcess:
    """A running plug-in with a known port. `stop` may be called twice."""

    def __init__(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], on_line: Callable[[str], None]
    ) -> None:
        """Start `arguments` and wait for the port; later lines go to `on_line`. Raises PluginError."""
        self._on_line = on_line
        self._last: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self._reported = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._failure = ""
        self._port = 0
        self._reader = threading.Thread(
            target=self._run, args=(list(arguments), cwd, dict(env)), name="plugin-output", daemon=True
        )
        self._reader.start()
        if not self._reported.wait(START_SECONDS):
            self._failure = f"it printed no port within {START_SECONDS:.0f} s"
        if self._failure:
            self.stop()
            raise PluginError(self._failure, "\n".join(self._last))

    @property
    def port(self) -> int:
        """The port it listens on, on 127.0.0.1."""
        return self._port

    @property
    def last_lines(self) -> str:
        """The end of its standard error and output."""
        return "\n".join(self._last)

    def stop(self) -> None:
        """End the process: SIGTERM, and SIGKILL if it stays."""
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._reader.join(STOP_SECONDS)

    def _run(self, arguments: list[str], cwd: Path, env: dict[str, str]) -> None:
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid())]
        try:
            process = subprocess.Popen(
                launcher + arguments,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C is its parent's, which lets running steps finish first.
            )
        except OSError as error:
            self._failure = f"it could not be started: {error.strerror or error}"
            self._reported.set()
            return
        self._process = process
        assert process.stdout is not None and process.stderr is not None
        errors = threading.Thread(target=self._follow, args=(process.stderr,), name="plugin-errors", daemon=True)
        errors.start()
        first = process.stdout.readline().strip()
        if first.isdecimal():
            self._port = int(first)
        else:
            # Its last words are on standard error; wait for them (its end closes the pipe).
            if not first:
                errors.join(STOP_SECONDS)
            self._failure = f'its first line is "{first}", not a port' if first else "it printed no port"
        self._reported.set()
        self._follow(process.stdout)
        # `stop` waits for this thread, so no output is lost.
        errors.join()
        process.wait()

    def _follow(self, stream: IO[str]) -> None:
        for line in stream:
            text = line.rstrip()
            self._last.append(text)
            if self._reported.is_set():
                self._on_line(text)
        stream.close()
