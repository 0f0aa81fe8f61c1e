"""The volumes attached to this machine, for its pods: used only after the attach-detach controller agrees.

The attach-detach controller detaches a volume only from a node that does not report it in use, and removes its own
record of the attachment before it looks. So a machine first reports, and then reads that record: whichever is second
sees the other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud_controller.kube import ApiError
from local.machine.api import NodeApi
from local.machine.claims import bound_volume_name, claimed_volume, is_attached, is_done
from local.machine.sources import NotYetError

Object = dict[str, Any]

_log = logging.getLogger(__name__)

_RELEASE_SECONDS = 10.0
"""How long a pod's end waits at most for that report: a machine that stops reports nothing later."""


@dataclass(frozen=True, slots=True)
class Device:
    """The path of an attached volume on the machine."""

    path: Path
    read_only: bool


class Devices:
    """The users of each attached volume. `report` posts the names of those in use, and again if that failed."""

    def __init__(
        self,
        directory: Path,
        node_name: str,
        csi_driver: str | None,
        api: NodeApi,
        report: Callable[[Sequence[str]], Coroutine[Any, Any, None]],
    ) -> None:
        self._directory = directory / "devices"
        self._node_name = node_name
        self._csi_driver = csi_driver
        self._api = api
        self._report = report
        self._users: dict[str, set[str]] = {}
        self._reported: list[str] | None = None

    async def open(self, pod: Object, source: Object) -> Device:
        """The volume of a pod's `persistentVolumeClaim`, in use by the pod until it is closed.

        Raises NotYetError while the claim is not bound or the volume not attached, MissingSourceError and ApiError.
        """
        metadata = pod["metadata"]
        claim = await self._api.get_claim(metadata["namespace"], source["claimName"])
        volume = claimed_volume(claim, await self._api.get_volume(bound_volume_name(claim)), self._csi_driver)
        self._users.setdefault(volume.unique_name, set()).add(metadata["uid"])
        if self._in_use() != self._reported:
            await self._post()
        path = self._directory / volume.id
        if not (
            is_attached(await self._api.get_node(self._node_name), volume)
            and is_done(await self._api.get_volume_attachment(volume.attachment_name(self._node_name)))
            and path.is_dir()
        ):
            raise NotYetError(f"volume {volume.id} is not attached to this machine")
        return Device(path, volume.read_only or bool(source.get("readOnly")))

    async def close(self, pod_uid: str) -> None:
        """The pod has ended, and none of its processes has a volume mounted."""
        before = self._in_use()
        self._users = {name: users - {pod_uid} for name, users in self._users.items() if users != {pod_uid}}
        if self._in_use() == before:
            return
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._post()
        except (ApiError, TimeoutError) as error:
            _log.warning("volumes in use not reported yet pod=%s error=%r", pod_uid, str(error))

    async def _post(self) -> None:
        names = self._in_use()
        self._reported = None
        await self._report(names)
        self._reported = names

    def _in_use(self) -> list[str]:
        return sorted(self._users)
