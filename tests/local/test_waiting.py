"""Waiting for what another process does."""

from __future__ import annotations

import pytest

from local import waiting
from local.waiting import wait_until


def test_a_long_wait_is_reported_once_and_a_short_one_never(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, False, False, True])
    told: list[str] = []

    assert wait_until(lambda: next(answers), 60, lambda: told.append("at once"))
    monkeypatch.setattr(waiting, "QUIET_SECONDS", 0.0)
    answers = iter([False, False, False, True])
    assert wait_until(lambda: next(answers), 60, lambda: told.append("still"))

    assert told == ["still"]
