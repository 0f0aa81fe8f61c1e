"""Keeps the data plane in step with the API: waits for changes, and reports results.

While the API is down, everything continues; a restarted API gets every report again.
"""

from __future__ import annotations

import asyncio
import logging

from pydantic import TypeAdapter

from local.http_client import HttpError, on_thread, request
from local.mycloud.balancer.data_plane import DataPlane, Revision
from local.mycloud.balancer_board import BalancerReport, ConfigAnswer

log = logging.getLogger(__name__)

WAIT_SECONDS = 20
"""How long the API may keep a request for changes open."""

ANSWER_SECONDS = 10.0
RECONNECT_SECONDS = 0.5
PAUSE_SECONDS = 0.05
"""Between reports, to combine changes."""

COUNTERS_SECONDS = 0.25
"""How often counters are reported without other changes."""

RETRY_BIND_SECONDS = 1.0

_REPORTS = TypeAdapter(list[BalancerReport])


class Follower:
    """Connects a data plane to the API at `endpoint`."""

    def __init__(self, data_plane: DataPlane, endpoint: str, token: str) -> None:
        self._data_plane = data_plane
        self._endpoint = endpoint
        self._headers = {"Authorization": f"Bearer {token}"}
        self._boot: str | None = None
        self._reported: dict[str, Revision] = {}

    async def run(self) -> None:
        """Follow and report until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._report())
            group.create_task(self._retry())

    async def _follow(self) -> None:
        since = 0
        while True:
            try:
                answer = await self._changes(since, 0 if self._boot is None else WAIT_SECONDS)
            except HttpError as error:
                log.info("the API did not answer: %s", error)
                await asyncio.sleep(RECONNECT_SECONDS)
                continue
            if self._boot is None:
                await self._data_plane.retain([config.id for config in answer.load_balancers])
                self._reported.clear()
                self._boot = answer.boot
            elif self._boot != answer.boot:  # the API was restarted: compare everything
                since, self._boot = 0, None
                continue
            await asyncio.gather(*map(self._data_plane.apply, answer.load_balancers))
            since = answer.version

    async def _changes(self, since: int, wait: int) -> ConfigAnswer:
        query = f"since={since}&wait={wait}" + (f"&boot={self._boot}" if self._boot else "")
        url = f"{self._endpoint}/internal/balancer/config?{query}"
        answer = await on_thread(lambda: request("GET", url, headers=self._headers, seconds=wait + ANSWER_SECONDS))
        if answer.status != 200:
            raise HttpError(f"HTTP {answer.status}")
        return ConfigAnswer.model_validate_json(answer.data)

    async def _report(self) -> None:
        while True:
            try:
                async with asyncio.timeout(COUNTERS_SECONDS):
                    await self._data_plane.changed.wait()
            except TimeoutError:
                pass
            self._data_plane.changed.clear()
            revisions = self._data_plane.revisions()
            news = [each for each, revision in revisions.items() if self._reported.get(each) != revision]
            if not news or self._boot is None:
                continue
            reports = self._data_plane.reports(news)
            boot = self._boot
            try:
                await self._send(reports)
            except HttpError as error:
                log.info("the API did not accept reports: %s", error)
                await asyncio.sleep(RECONNECT_SECONDS)
                continue
            self._data_plane.acknowledged(reports)
            if boot == self._boot:
                closed = {each.id for each in reports if each.closed}
                self._reported = {each: revision for each, revision in revisions.items() if each not in closed}
            await asyncio.sleep(PAUSE_SECONDS)

    async def _send(self, reports: list[BalancerReport]) -> None:
        url, body = f"{self._endpoint}/internal/balancer/reports", _REPORTS.dump_json(reports)
        headers = {**self._headers, "Content-Type": "application/json"}
        answer = await on_thread(lambda: request("POST", url, headers=headers, body=body, seconds=ANSWER_SECONDS))
        if answer.status != 204:
            raise HttpError(f"HTTP {answer.status}")

    async def _retry(self) -> None:
        while True:
            await asyncio.sleep(RETRY_BIND_SECONDS)
            await self._data_plane.retry()
