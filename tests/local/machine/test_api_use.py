"""A machine's use of the API: retries until it is authorised, counts events, renews tokens. The API is a small fake."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cloud_controller.kube import ForbiddenError, Kube, NotFoundError
from local.machine.api import NodeApi
from local.machine.devices import Devices
from local.machine.events import EventRecorder
from local.machine.pod_volumes import PodVolumes
from local.machine.sources import References, Sources, TokenWish

POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "n", "uid": "u"},
    "spec": {
        "containers": [],
        "volumes": [
            {"name": "s", "secret": {"secretName": "s"}},
            {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            {"name": "e", "emptyDir": {}},
        ],
    },
}


class FakeApi:
    """Holds the objects that a node reads and writes."""

    def __init__(self) -> None:
        self.secret = b"1"
        self.tokens = 0
        self.events: dict[str, dict[str, Any]] = {}

    async def fetch(self, _namespace: str, _needed: References) -> Sources:
        return Sources(secrets={"s": {"data": {"key": base64.b64encode(self.secret).decode()}}})

    async def request_token(self, _pod: object, _wish: TokenWish) -> str:
        self.tokens += 1
        return f"token-{self.tokens}"

    async def create_event(self, event: dict[str, Any]) -> dict[str, Any]:
        self.events[event["metadata"]["name"]] = event
        return event

    async def patch_event(self, _namespace: str, name: str, patch: dict[str, Any]) -> None:
        if name not in self.events:
            raise NotFoundError(404, "NotFound", "no such event")
        self.events[name] |= patch


def answers_after(refusals: int) -> tuple[NodeApi, Any]:
    remaining = [ForbiddenError(403, "Forbidden", "no relationship found")] * refusals

    def function() -> str:
        if remaining:
            raise remaining.pop()
        return "answer"

    return NodeApi(cast(Kube, None)), function


def test_a_read_that_the_node_authoriser_forbids_at_first_is_retried() -> None:
    api, function = answers_after(2)
    assert asyncio.run(api.call_for_pod(function)) == "answer"
    api.close()


def test_a_read_that_stays_forbidden_is_an_error() -> None:
    api, function = answers_after(20)
    with pytest.raises(ForbiddenError):
        asyncio.run(api.call_for_pod(function))
    api.close()


def test_a_repeated_event_is_counted_and_an_expired_one_recreated() -> None:
    api = FakeApi()

    async def scenario() -> None:
        events = EventRecorder(cast(NodeApi, api), "node-1")
        posting = asyncio.ensure_future(events.run())

        async def emit(message: str) -> None:
            events.emit(POD, "Warning", "Failed", message)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        for message in ("a", "a", "b"):
            await emit(message)
        assert [(e["message"], e["count"]) for e in api.events.values()] == [("a", 2), ("b", 1)]
        api.events.clear()
        await emit("a")
        assert [(e["message"], e["count"]) for e in api.events.values()] == [("a", 1)]
        posting.cancel()

    asyncio.run(scenario())


def test_volumes_follow_their_sources_and_a_token_is_requested_only_when_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = FakeApi()
    volumes = PodVolumes(tmp_path / "volumes", cast(NodeApi, api), cast(Devices, None), "10.17.0.5")
    volumes.pod_ip = "10.20.0.2"
    now = [1000.0]
    monkeypatch.setattr("local.machine.pod_volumes.time", SimpleNamespace(monotonic=lambda: now[0]))

    asyncio.run(volumes.refresh(POD))
    (tmp_path / "volumes" / "e" / "kept").touch()
    api.secret = b"2"
    now[0] += 2879
    asyncio.run(volumes.refresh(POD))

    assert (tmp_path / "volumes" / "s" / "key").read_bytes() == b"2"
    assert (tmp_path / "volumes" / "t" / "token").read_bytes() == b"token-1"
    now[0] += 2
    asyncio.run(volumes.refresh(POD))
    assert (tmp_path / "volumes" / "t" / "token").read_bytes() == b"token-2"
    assert (tmp_path / "volumes" / "e" / "kept").exists()
