"""Work that one process at a time does."""

from __future__ import annotations

import threading
from pathlib import Path

from local.one_process import alone
from local.waiting import to_nobody


def test_who_must_wait_says_for_what_and_then_works(tmp_path: Path) -> None:
    waits, told, done = threading.Event(), list[str](), threading.Event()

    def report(text: str) -> None:
        told.append(text)
        waits.set()

    def work() -> None:
        with alone(tmp_path, "building etcd", report):
            done.set()

    other = threading.Thread(target=work)
    with alone(tmp_path, "building etcd", to_nobody):
        other.start()
        assert waits.wait(60)
        assert not done.is_set()
    other.join(60)

    assert told == ["another checkout is building etcd; waiting for it"]
    assert done.is_set()
