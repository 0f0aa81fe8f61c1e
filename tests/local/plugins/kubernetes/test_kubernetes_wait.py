"""Waiting for an object while the API server fails."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from cloud_controller.kube import (
    NAMESPACES,
    ApiError,
    ForbiddenError,
    GoneError,
    ObjectList,
    TooManyRequestsError,
    UnreachableError,
)
from local.plugins.kubernetes.wait import Waiter

ACTIVE = {"metadata": {"name": "a", "uid": "u"}, "status": {"phase": "Active"}}


class Troubled:
    """An API server that fails before it answers."""

    def __init__(self, *errors: ApiError) -> None:
        self.errors = list(errors)

    def list(self, *_: object, **__: object) -> ObjectList:
        if self.errors:
            raise self.errors.pop(0)
        return ObjectList([ACTIVE], "1")


def waited_for(kube: Any) -> Any:
    deadline = time.monotonic() + 600
    return Waiter(kube, threading.Event()).until_ready(NAMESPACES, ACTIVE, deadline, lambda _: None)


def test_a_transient_watch_error_is_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.plugins.kubernetes.wait.RETRY_SECONDS", 0)
    timed_out = ApiError(500, "InternalError", "etcdserver: request timed out")
    busy = TooManyRequestsError(429, "TooManyRequests", "too many requests")
    kube = Troubled(timed_out, UnreachableError("refused"), GoneError(410, "Expired", "too old"), busy)

    assert waited_for(kube) == ACTIVE
    assert kube.errors == []


def test_a_permanent_watch_error_is_reported_at_once() -> None:
    with pytest.raises(ForbiddenError):
        waited_for(Troubled(ForbiddenError(403, "Forbidden", "not yours")))
