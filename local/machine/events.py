"""Reports what happens to a pod or its node: Kubernetes Events, repeated ones counted."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from typing import Any

from cloud_controller.kube import ApiError, NotFoundError
from local.machine.api import NodeApi
from local.machine.pod_status import timestamp

Object = dict[str, Any]

_log = logging.getLogger(__name__)

_QUEUED = 256
_REMEMBERED = 512


class EventRecorder:
    """Posts events in the background, in order; if the API server does not answer, an event is logged and lost."""

    def __init__(self, api: NodeApi, node_name: str) -> None:
        self._api = api
        self._node_name = node_name
        self._queue: asyncio.Queue[tuple[Object, str, str, str]] = asyncio.Queue(_QUEUED)
        self._posted: dict[tuple[str, str, str], Object] = {}

    def emit(self, about: Object, type: str, reason: str, message: str) -> None:
        """Emit an event on an object: `type` is Normal or Warning, `reason` one word, `message` for people."""
        name = about["metadata"]["name"]
        _log.info("event object=%s/%s type=%s reason=%s message=%r", about["kind"], name, type, reason, message)
        try:
            self._queue.put_nowait((about, type, reason, message))
        except asyncio.QueueFull:
            _log.warning("event dropped object=%s/%s reason=%s", about["kind"], name, reason)

    async def run(self) -> None:
        """Post the emitted events, until cancelled."""
        while True:
            about, kind, reason, message = await self._queue.get()
            try:
                await self._post(about, kind, reason, message)
            except ApiError as error:
                _log.warning("event not posted reason=%s error=%r", reason, str(error))

    async def _post(self, about: Object, type: str, reason: str, message: str) -> None:
        metadata = about["metadata"]
        # Kubelets' events have always used the node's name as its UID.
        uid = metadata["name"] if about["kind"] == "Node" else metadata["uid"]
        now = timestamp(time.time())
        key = (uid, reason, message)
        posted = self._posted.get(key)
        if posted is not None:
            posted["count"] += 1
            patch = {"count": posted["count"], "lastTimestamp": now}
            try:
                await self._api.patch_event(posted["metadata"]["namespace"], posted["metadata"]["name"], patch)
                return
            except NotFoundError:  # the API server deletes events after an hour
                del self._posted[key]
        namespace = metadata.get("namespace") or "default"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name']}.{uuid.uuid4().hex[:16]}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": about["kind"],
                "name": metadata["name"],
                "namespace": metadata.get("namespace", ""),
                "uid": uid,
            },
            "type": type,
            "reason": reason,
            "message": message[:1024],
            "source": {"component": "kubelet", "host": self._node_name},
            "reportingComponent": "kubelet",
            "reportingInstance": self._node_name,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self._api.create_event(event)
        if len(self._posted) >= _REMEMBERED:
            self._posted.pop(next(iter(self._posted)))
        self._posted[key] = event
