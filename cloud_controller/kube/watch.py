"""A watch of the Kubernetes API: an iterator over events that another thread can close."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import orjson
import urllib3

from cloud_controller import kube_errors
from cloud_controller.kube.resources import EventType, WatchEvent

_log = logging.getLogger(__name__)

_STOP_CHECK = 0.5
"""Seconds between checks of the caller's stop event; `close` works at once."""


class Watch(Iterator[WatchEvent]):
    """The events of one watch request, in order.

    Ends (StopIteration) when the server ends the request or is silent for too long (the connection may be dead), when
    `close` is called, or when `stop` is set. Raises `GoneError` if the resource version is too old, `UnreachableError`
    if the connection breaks, or another `ApiError`.
    """

    def __init__(self, response: urllib3.BaseHTTPResponse, asked: str, stop: threading.Event | None = None) -> None:
        self._response = response
        self._asked = asked
        self._closed = threading.Event()
        self._events = self._read()
        if stop is not None:
            threading.Thread(target=self._close_when, args=(stop,), name=f"watch-stop {asked}", daemon=True).start()

    def __next__(self) -> WatchEvent:
        return next(self._events)

    def close(self) -> None:
        """End the watch. Thread-safe and idempotent."""
        if not self._closed.is_set():
            self._closed.set()
            try:
                self._response.shutdown()
            except (OSError, ValueError, RuntimeError):
                return  # The connection is already closed.

    def _close_when(self, stop: threading.Event) -> None:
        while not self._closed.is_set():
            if stop.wait(_STOP_CHECK):
                self.close()

    def _read(self) -> Iterator[WatchEvent]:
        try:
            for line in self._lines():
                yield self._event(orjson.loads(line))
        except urllib3.exceptions.ReadTimeoutError:
            _log.info("watch timed out asked=%r", self._asked)
        except (urllib3.exceptions.HTTPError, OSError, orjson.JSONDecodeError, ValueError, AttributeError) as error:
            # AttributeError: urllib3 and ssl raise it when `close` closes the socket during a read.
            if not self._closed.is_set():
                raise kube_errors.UnreachableError(f"{self._asked}: watch failed: {error}") from error
        finally:
            self._closed.set()
            self._response.close()
            self._response.release_conn()

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        for chunk in self._response.stream(None):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if self._closed.is_set():
                    return
                if line:
                    yield line

    def _event(self, raw: dict[str, Any]) -> WatchEvent:
        if raw["type"] == "ERROR":
            raise kube_errors.from_status(raw["object"], self._asked)
        return WatchEvent(EventType(raw["type"]), raw["object"])
