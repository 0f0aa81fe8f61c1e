"""Tokens for many threads at once; nothing here needs a service of OpenStack."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cloud_controller.cloud import Unavailable
from cloud_controller.clouds.openstack.credentials import ApplicationCredential
from cloud_controller.clouds.openstack.session import Session

_CALLERS = 4
_DEADLINE = 10.0


class SilentKeystone:
    """Leaves a request unanswered, for so long that all callers are there."""

    def __init__(self) -> None:
        self.asked = 0
        self.callers: list[int] = []
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.callers.append(threading.get_ident())
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def send(self, *_: object, **__: object) -> Any:
        self.asked += 1
        deadline = time.monotonic() + _DEADLINE
        while len(self.callers) < _CALLERS:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        raise Unavailable("Keystone did not respond in time")


def test_callers_share_a_silence_and_do_not_wait_for_it_one_after_the_other() -> None:
    keystone: Any = SilentKeystone()
    session = Session(keystone, "http://keystone/v3", ApplicationCredential("s", "ac-1"))
    session._lock = keystone

    with ThreadPoolExecutor(_CALLERS) as threads:
        calls = [threads.submit(session.token) for _ in range(_CALLERS)]

    assert all(isinstance(each.exception(), Unavailable) for each in calls)
    assert keystone.asked == 1
    with pytest.raises(Unavailable):
        session.token()
    assert keystone.asked == 2
