"""Answers HTTP requests by a stand-in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from local.http_messages import Answer, Request
from local.standin.standin import StandIn


def answering(
    standin: StandIn[Any], side: Callable[[Request], Answer | None] = lambda _: None
) -> Callable[[Request], Awaitable[Answer]]:
    """Carries calls out in the event loop: the stand-in answers one at a time anyway.

    `side` answers requests that are not the cloud's API, such as a metadata service's; None: not one of them.
    """

    async def answer(request: Request) -> Answer:
        aside = side(request)
        if aside is not None:
            return aside
        received = standin.receive(request)
        if isinstance(received, Answer):
            return received
        if received.delay:
            await asyncio.sleep(received.delay)
        return received.carry_out()

    return answer
