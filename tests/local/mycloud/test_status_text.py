"""A load balancer's backends in the status text."""

from __future__ import annotations

from typing import Any

import pytest

from local.mycloud.status_text import render

HEALTHY, SICK, UNKNOWN, UNCHECKED = (True, True), (False, True), (None, True), (None, False)


def shown(*backends: tuple[bool | None, bool]) -> str:
    balancer: dict[str, Any] = {
        "id": "lb-1",
        "name": "web",
        "state": "available",
        "state_reason": None,
        "address": "127.35.0.10",
        "listeners": [],
        "backends": [{"healthy": healthy, "checked": checked} for healthy, checked in backends],
    }
    status = {"up": True, "endpoint": "http://127.0.0.1:1", "processes": [], "load_balancers": [balancer]}
    return render(status, {}).rpartition("no listener")[2].strip()


@pytest.mark.parametrize(
    ("backends", "text"),
    [
        ([], "0 of 0 backends healthy"),
        ([HEALTHY, SICK, UNKNOWN], "1 of 3 backends healthy"),
        ([HEALTHY, UNCHECKED, UNCHECKED], "1 of 1 backends healthy, 2 unchecked"),
        ([UNCHECKED, UNCHECKED], "2 backends unchecked"),
    ],
)
def test_unchecked_backends_are_not_shown_as_healthy(backends: list[tuple[bool | None, bool]], text: str) -> None:
    assert shown(*backends) == text
