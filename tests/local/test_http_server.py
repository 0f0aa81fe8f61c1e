"""The servers of `local`, as far as nothing that uses them tests them."""

from __future__ import annotations

import asyncio
import socket

import pytest

from local.http_messages import Answer, Request
from local.http_server import Application, config, listening


async def answer(_: Request) -> Answer:
    return Answer(200)


def test_a_port_in_use_can_be_tried_again() -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as blocker:
            host, port = blocker.getsockname()
            served = config(Application(answer), host, port)
            with pytest.raises(OSError, match="in use"):
                await listening(served)
        (await listening(served)).close()

    asyncio.run(scenario())
