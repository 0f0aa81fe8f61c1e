"""Keeps a machine's node: registers it, posts its status and renews its Lease."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Sequence
from typing import Any

from cloud_controller.kube import AlreadyExistsError, ApiError, ConflictError
from local.machine.api import LEASE_NAMESPACE, NodeApi
from local.machine.backoff import Backoff
from local.machine.config import MachineConfig
from local.machine.node_object import (
    csi_node,
    new_node,
    node_labels,
    node_status,
    registration_patch,
    status_patch,
)
from local.machine.pod_status import micro_timestamp, timestamp

Object = dict[str, Any]

_log = logging.getLogger(__name__)

# A kubelet renews every 10 s a lease of 40 s. Shorter here, to go with a node monitor grace period of 10 s.
LEASE_SECONDS = 8
RENEW_SECONDS = 2.0
STATUS_CHECK_SECONDS = 4.0
STATUS_REPORT_SECONDS = 300.0
"""An unchanged status is posted again after this, as a kubelet's nodeStatusReportFrequency has it."""


class NodeAgent:
    """Registers `config.node_name` and keeps it alive."""

    def __init__(self, config: MachineConfig, api: NodeApi) -> None:
        self._config = config
        self._api = api
        self._node: Object = {}
        self._node_changed = asyncio.Event()
        self._lease: Object | None = None
        self._volumes_in_use: Sequence[str] = ()
        self._posting = asyncio.Lock()

    def node_changed(self, node: Object) -> None:
        """The Node object has changed."""
        self._node = node
        self._node_changed.set()

    async def register(self) -> Object:
        """Create the Node, or adopt that of an earlier boot; tries until it succeeds."""
        _, refused = node_labels(self._config)
        if refused:
            _log.error(
                "labels refused node=%s labels=%s: a kubelet may not set them (NodeRestriction); an administrator must",
                self._config.node_name,
                ",".join(refused),
            )
        backoff = Backoff(first=0.2, limit=5.0)
        while True:
            try:
                self._node = await self._register_once()
                await self._api.publish_csi_node(csi_node(self._config, self._node))
            except ApiError as error:
                _log.warning("node not registered node=%s error=%r", self._config.node_name, str(error))
                await asyncio.sleep(backoff.next())
                continue
            _log.info("node registered node=%s", self._config.node_name)
            return self._node

    async def run(self) -> None:
        """Renew the Lease and post the status, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._renew())
            group.create_task(self._post_status())

    async def report_volumes_in_use(self, names: Sequence[str]) -> None:
        """Report at once the volumes that pods use or are about to. Raises ApiError; the report is then repeated."""
        self._volumes_in_use = names
        self._node_changed.set()
        # Never cancelled half-way: a post that arrives late would undo the next one.
        await asyncio.shield(self._post_volumes_in_use())

    async def _post_volumes_in_use(self) -> None:
        async with self._posting:
            patch = {"volumesInUse": list(self._volumes_in_use)}
            self._node = await self._api.post_node_status(self._config.node_name, patch)

    async def _register_once(self) -> Object:
        config = self._config
        try:
            return await self._api.create_node(new_node(config, timestamp(time.time())))
        except AlreadyExistsError:
            node = await self._api.get_node(config.node_name)
        provider_id = node["spec"].get("providerID")
        if config.provider_id and provider_id not in (None, config.provider_id):
            _log.error(
                "provider ID differs node=%s node_has=%s machine_has=%s: it cannot be changed",
                config.node_name,
                provider_id,
                config.provider_id,
            )
        patch = registration_patch(config, node)
        return node if patch is None else await self._api.patch_node(config.node_name, patch)

    async def _renew(self) -> None:
        while True:
            try:
                await self._renew_once()
            except ConflictError:
                self._lease = None  # another writer changed it: read it again
                continue
            except ApiError as error:
                _log.warning("lease not renewed node=%s error=%r", self._config.node_name, str(error))
                self._lease = None
            # Machines that booted together should not renew together.
            await asyncio.sleep(RENEW_SECONDS * random.uniform(0.9, 1.1))

    async def _renew_once(self) -> None:
        name = self._config.node_name
        if self._lease is None:
            self._lease = await self._api.get_lease(name)
        owner = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": name,
            "uid": self._node["metadata"]["uid"],
        }
        lease = self._lease or {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
        }
        lease["metadata"]["ownerReferences"] = [owner]
        lease["spec"] = {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": micro_timestamp(time.time()),
        }
        if self._lease is None:
            self._lease = await self._api.create_lease(lease)
        else:
            self._lease = await self._api.replace_lease(lease)

    async def _post_status(self) -> None:
        """Post when the node's status differs from this machine's, and regularly in any case."""
        posted = time.monotonic()  # the registration posts it; otherwise there is a difference
        while True:
            self._node_changed.clear()
            async with self._posting:
                status = node_status(self._config, self._node, timestamp(time.time()), self._volumes_in_use)
                patch = status_patch(self._node, status)
                if time.monotonic() - posted >= STATUS_REPORT_SECONDS:
                    patch["conditions"] = status["conditions"]
                if patch:
                    try:
                        self._node = await self._api.post_node_status(self._config.node_name, patch)
                        posted = time.monotonic()
                    except ApiError as error:
                        _log.warning("node status not posted node=%s error=%r", self._config.node_name, str(error))
            # At most one post in STATUS_CHECK_SECONDS; then nothing until the node changes or a report is due.
            await asyncio.sleep(STATUS_CHECK_SECONDS)
            due_in = posted + STATUS_REPORT_SECONDS - time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due_in)):
                    await self._node_changed.wait()
