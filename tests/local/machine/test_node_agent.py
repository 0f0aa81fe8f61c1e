"""A node's reports of its volumes arrive in order. The API is a fake."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from local.machine.api import NodeApi
from local.machine.config import MachineConfig
from local.machine.node_agent import NodeAgent


class SlowApi:
    """Every post waits until it is released."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.posted: list[list[str]] = []

    async def post_node_status(self, _name: str, status: dict[str, Any]) -> dict[str, Any]:
        await self.open.wait()
        self.posted.append(status["volumesInUse"])
        return {"status": status}


def test_a_cancelled_report_never_undoes_a_later_one() -> None:
    async def scenario() -> list[list[str]]:
        api = SlowApi()
        config = MachineConfig("i-1", "a", "10.17.0.5", "m1.small", "worker")
        agent = NodeAgent(config, cast(NodeApi, api))
        given_up = asyncio.ensure_future(agent.report_volumes_in_use([]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        given_up.cancel()
        later = asyncio.ensure_future(agent.report_volumes_in_use(["a"]))
        await asyncio.sleep(0)
        api.open.set()
        await later
        return api.posted

    assert asyncio.run(scenario()) == [[], ["a"]]
