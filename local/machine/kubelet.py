"""The kubelet stand-in: one node, and a `PodRunner` for each pod that is bound to it."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cloud_controller.kube import NODES, PODS, EventType, Informer, Kube
from local.machine.api import NodeApi
from local.machine.config import Isolation, MachineConfig
from local.machine.devices import Devices
from local.machine.environment import ApiServer
from local.machine.events import EventRecorder
from local.machine.kubelet_api import Found, serve
from local.machine.node_agent import NodeAgent
from local.machine.pod import MachineContext, PodRunner
from local.machine.pod_addresses import PodAddresses
from local.machine.processes import can_mount, kill_leftovers

Object = dict[str, Any]
T = TypeVar("T")

_log = logging.getLogger(__name__)

SHUTDOWN_GRACE_SECONDS = 4.0
"""How long pods have to end when their machine stops: less than the time for the machine's own end."""


class Kubelet:
    """A machine's work for its node and its pods. Runs on one event loop, on the main thread."""

    def __init__(self, directory: Path, config: MachineConfig, kube: Kube) -> None:
        self._directory = directory
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._api = NodeApi(kube)
        self._events = EventRecorder(self._api, config.node_name)
        self._agent = NodeAgent(config, self._api)
        self._addresses: asyncio.Future[PodAddresses] = self._loop.create_future()
        self._pods: dict[str, tuple[PodRunner, asyncio.Task[None]]] = {}
        self._mounts: asyncio.Task[bool] | None = None
        self._node_informer = Informer(kube, NODES, field_selector=f"metadata.name={config.node_name}")
        self._pod_informer = Informer(kube, PODS, field_selector=f"spec.nodeName={config.node_name}")
        self._around = MachineContext(
            directory=directory,
            host_ip=config.address,
            api_server=_api_server(kube.server),
            api=self._api,
            events=self._events,
            devices=Devices(
                directory, config.node_name, config.csi_driver, self._api, self._agent.report_volumes_in_use
            ),
            addresses=self._addresses,
            can_mount=self._can_mount,
        )

    async def run(self) -> None:
        """Boot and run, until cancelled; then end the pods. The node is left as it is: it becomes NotReady."""
        killed = await asyncio.to_thread(kill_leftovers, self._directory)
        if killed:
            _log.warning("killed %d processes of an earlier run", killed)
        (self._directory / "pods").mkdir(mode=0o700, exist_ok=True)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._events.run())
                self._take_node(await self._agent.register())
                group.create_task(self._agent.run())
                self._watch()
                group.create_task(self._sweep())
                group.create_task(serve(self._directory, self._config.address, self._find))
        finally:
            await self._shut_down()

    def _watch(self) -> None:
        def on_node(_type: EventType, _old: Object | None, node: Object | None) -> None:
            if node is not None:
                self._soon(self._take_node, node)

        def on_pod(_type: EventType, old: Object | None, pod: Object | None) -> None:
            if pod is not None:
                self._soon(self._take_pod, pod)
            elif old is not None:
                self._soon(self._lose_pod, old["metadata"]["uid"])

        self._node_informer.add_handler(on_node)
        self._pod_informer.add_handler(on_pod)
        self._node_informer.start()
        self._pod_informer.start()

    def _soon(self, function: Callable[[T], None], argument: T) -> None:
        """Pass on from an informer's thread to the loop."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, argument)

    async def _sweep(self) -> None:
        """Remove what is left of pods that were deleted while this machine was off."""
        while not self._pod_informer.synced:
            await asyncio.sleep(1)
        kept = {pod["metadata"]["uid"] for pod in self._pod_informer.items()} | self._pods.keys()
        for directory in (self._directory / "pods").iterdir():
            if directory.name not in kept:
                await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    def _take_node(self, node: Object) -> None:
        self._agent.node_changed(node)
        pod_cidr = node["spec"].get("podCIDR")
        if pod_cidr and not self._addresses.done():
            _log.info("pod range cidr=%s", pod_cidr)
            self._addresses.set_result(PodAddresses(pod_cidr))

    def _take_pod(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        known = self._pods.get(uid)
        if known is not None:
            known[0].update(pod)
            return
        over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if over and "deletionTimestamp" not in pod["metadata"]:
            return  # it ended before this boot
        runner = PodRunner(pod, self._around)
        task = asyncio.ensure_future(runner.run())
        self._pods[uid] = (runner, task)
        task.add_done_callback(lambda task: self._pod_ended(uid, task))

    def _lose_pod(self, uid: str) -> None:
        if uid in self._pods:
            self._pods[uid][0].object_gone()

    def _find(self, namespace: str, name: str, container: str) -> Found | None:
        """The current container of this name; one of an earlier pod may still be ending."""
        pod = self._pod_informer.get(f"{namespace}/{name}")
        if pod is None or container not in (each["name"] for each in pod["spec"]["containers"]):
            return None
        uid = pod["metadata"]["uid"]
        runner = self._pods[uid][0] if uid in self._pods else None
        log = self._directory / "pods" / uid / f"{container}.log"
        return Found(log, None if runner is None else runner.container(container))

    def _pod_ended(self, uid: str, task: asyncio.Task[None]) -> None:
        del self._pods[uid]
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.error("pod runner failed uid=%s", uid, exc_info=problem)

    async def _can_mount(self) -> bool:
        """Whether pods get mounts: determined once, at the first pod."""
        if self._mounts is None:
            self._mounts = asyncio.ensure_future(self._decide_mounts())
        return await asyncio.shield(self._mounts)

    async def _decide_mounts(self) -> bool:
        if self._config.isolation is Isolation.PATHS:
            return False
        directory = self._directory / "root"
        directory.mkdir(exist_ok=True)
        possible = await can_mount(directory)
        if not possible and self._config.isolation is Isolation.MOUNTS:
            _log.error("isolation is %r, but this user may not make mounts: rewriting mount paths", "mounts")
        elif not possible:
            _log.info("this user may not make mounts: rewriting mount paths")
        return possible

    async def _shut_down(self) -> None:
        for runner, task in self._pods.values():
            runner.max_grace_seconds = SHUTDOWN_GRACE_SECONDS
            task.cancel()
        if self._pods:
            await asyncio.wait([task for _, task in self._pods.values()])
        self._api.close()


def _api_server(url: str) -> ApiServer:
    parts = urlsplit(url)
    return ApiServer(parts.hostname or "", parts.port or 443)
