"""Tokens from an exec plugin in a kubeconfig (`users[].user.exec`), such as the command line of a cloud.

Uses client-go's protocol: an ExecCredential as JSON on stdout. Supports tokens only, not certificates.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from cloud_controller import logs
from cloud_controller.kube_errors import UnauthorizedError

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_SECONDS = 60.0
"""Timeout of the command."""
_SHORTEST_SECRET = 8
_MARGIN = timedelta(seconds=60)
"""How long before its expiry a token is replaced."""


class ExecToken:
    """The token of a command, cached until shortly before it expires, or until the server has refused it."""

    def __init__(self, settings: Mapping[str, Any], now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """`settings`: the kubeconfig's `exec`. Raises ValueError, naming the invalid field."""
        self._version = settings.get("apiVersion")
        if self._version not in VERSIONS:
            raise ValueError(f"apiVersion is not supported; allowed: {', '.join(VERSIONS)}")
        command = settings.get("command")
        if not isinstance(command, str) or not command.strip():
            raise ValueError("command is missing")
        arguments, environment = settings.get("args") or [], settings.get("env") or []
        if not isinstance(arguments, list):
            raise ValueError("args is not a list")
        self._command = [command, *map(str, arguments)]
        try:
            self._environment = {str(each["name"]): str(each["value"]) for each in environment}
        except (KeyError, TypeError):
            raise ValueError("env is not a list of name and value pairs") from None
        hint = settings.get("installHint")
        self._hint = hint.splitlines()[0] if isinstance(hint, str) and hint.strip() else None
        self._now = now
        self._lock = threading.Lock()
        self._token: str | None = None
        self._until: datetime | None = None

    def __call__(self) -> str:
        """The token. Raises UnauthorizedError with the command's error."""
        with self._lock:
            if self._token is None or (self._until is not None and self._now() > self._until - _MARGIN):
                self._token, self._until = self._ask()
                logs.hide(self._token)
            return self._token

    def forget(self, refused: str) -> None:
        """Run the command again for the next request: the server has refused this token."""
        with self._lock:
            # Another request may have been answered first, and the command have run since.
            if self._token == refused:
                self._token = None

    def _ask(self) -> tuple[str, datetime | None]:
        info = {"kind": "ExecCredential", "apiVersion": self._version, "spec": {"interactive": False}}
        environment = {**os.environ, **self._environment, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            done = subprocess.run(
                self._command,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise self._failure(f"command not found{f'; {self._hint}' if self._hint else ''}") from None
        except subprocess.TimeoutExpired:
            raise self._failure(f"timed out after {_SECONDS:g} s") from None
        except (OSError, ValueError) as error:
            # Not str(error): Python's own texts contain all arguments.
            raise self._failure(str(error.strerror) if isinstance(error, OSError) else "could not be started") from None
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            why = self._without_settings(said[-1]) if said else "no output"
            raise self._failure(f"exited with {done.returncode}: {why}")
        try:
            status = json.loads(done.stdout)["status"]
            token, until = str(status["token"]), status.get("expirationTimestamp")
            # Python reads a time without a zone as local time; RFC 3339 requires a zone.
            ends = datetime.fromisoformat(until) if until else None
            if ends is not None and ends.tzinfo is None:
                raise ValueError(f"{until} has no time zone")
            return token, ends
        except (ValueError, KeyError, TypeError):
            # The output may contain a token, so do not quote it.
            raise self._failure("its output is not an ExecCredential with a token") from None

    def _failure(self, why: str) -> UnauthorizedError:
        # Only the first word: arguments may contain credentials.
        shown = self._command[0].split()[0]
        return UnauthorizedError(401, "Unauthorized", f"exec plugin `{shown}` of the kubeconfig: {why}")

    def _without_settings(self, text: str) -> str:
        """The command's output with the values of its arguments and environment redacted."""
        for value in (*self._command[1:], *self._environment.values()):
            if len(value) >= _SHORTEST_SECRET:
                text = text.replace(value, "[redacted]")
        return text
