"""The volumes of one pod on disk: written before its containers start, and refreshed while they run."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local.machine.api import NodeApi
from local.machine.devices import Devices
from local.machine.sources import TokenWish, references
from local.machine.volumes import volume_files, write_volume

Object = dict[str, Any]

_RENEW_AT = 0.8
"""The share of its lifetime after which a token is renewed, as a kubelet does."""


@dataclass(frozen=True, slots=True)
class _Token:
    value: str
    renew_at: float

    def __repr__(self) -> str:
        return f"_Token(renew_at={self.renew_at})"


class PodVolumes:
    """Volumes are in `directory`/NAME, accessible only to the machine's user."""

    def __init__(self, directory: Path, api: NodeApi, devices: Devices, host_ip: str) -> None:
        self.directory = directory
        self.pod_ip = ""
        self.read_only: set[str] = set()
        """The claimed volumes that no container may write to, by name."""
        self._devices = devices
        self._claimed: set[str] = set()
        self._api = api
        self._host_ip = host_ip
        self._tokens: dict[TokenWish, _Token] = {}

    async def refresh(self, pod: Object) -> None:
        """Refresh every volume. Raises NotYetError, MissingSourceError, ApiError, OSError."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for volume in pod["spec"].get("volumes") or []:
            if (claim := volume.get("persistentVolumeClaim")) and volume["name"] not in self._claimed:
                await self._open(pod, volume["name"], claim)
        needed = references(pod)
        for wish in needed.tokens:
            token = self._tokens.get(wish)
            if token is None or token.renew_at <= time.monotonic():
                value = await self._api.request_token(pod, wish)
                self._tokens[wish] = _Token(value, time.monotonic() + wish.seconds * _RENEW_AT)
        fetched = await self._api.fetch(pod["metadata"]["namespace"], needed)
        sources = replace(fetched, tokens={wish: token.value for wish, token in self._tokens.items()})
        for volume in pod["spec"].get("volumes") or []:
            files = volume_files(volume, pod, sources, pod_ip=self.pod_ip, host_ip=self._host_ip)
            place = self.directory / volume["name"]
            if files is not None:
                write_volume(place, files)
            elif "emptyDir" in volume:
                place.mkdir(exist_ok=True)

    async def close(self, pod: Object) -> None:
        """The pod's processes have ended: its claimed volumes may be attached elsewhere."""
        await self._devices.close(pod["metadata"]["uid"])

    async def _open(self, pod: Object, name: str, claim: Object) -> None:
        device = await self._devices.open(pod, claim)
        place = self.directory / name
        place.unlink(missing_ok=True)  # an earlier boot's
        place.symlink_to(device.path)
        self._claimed.add(name)
        if device.read_only:
            self.read_only.add(name)
