"""One pod from its binding to its end: address, volumes, containers, status, deletion of the object."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud_controller.kube import ApiError, NotFoundError
from local.machine import processes
from local.machine.api import NodeApi
from local.machine.backoff import Backoff
from local.machine.container import Container
from local.machine.devices import Devices
from local.machine.environment import ApiServer, PodContext, arguments, environment
from local.machine.events import EventRecorder
from local.machine.images import Image
from local.machine.placing import rotate, without_mounts
from local.machine.pod_addresses import OutOfAddressesError, PodAddresses
from local.machine.pod_status import ContainerState, is_reported, pod_status, status_patch, timestamp
from local.machine.pod_volumes import PodVolumes
from local.machine.sources import MissingSourceError, NotYetError, references
from local.machine.unsupported import not_honoured, refusals
from local.machine.volumes import mounts_of

Object = dict[str, Any]

_log = logging.getLogger(__name__)

HOUSEKEEPING_SECONDS = 60.0
_STATUS_DEBOUNCE = 0.05
_DEFAULT_GRACE = 30.0
_WAITING = (0.1, 1.0)
_PATIENCE_SECONDS = 10.0
"""How long a volume may take to be attached before an event reports it, and between such events."""


@dataclass(frozen=True, slots=True)
class MachineContext:
    """What all pods of a machine share."""

    directory: Path
    """The machine's directory."""

    host_ip: str
    api_server: ApiServer
    api: NodeApi
    events: EventRecorder
    devices: Devices
    addresses: asyncio.Future[PodAddresses]
    """Set as soon as the node has its pod range."""

    can_mount: Callable[[], Coroutine[Any, Any, bool]]
    """Whether processes can have mounts; else paths are rewritten."""


class PodRunner:
    """Runs one pod. `run` returns when its processes have ended and its object is gone."""

    def __init__(self, pod: Object, around: MachineContext) -> None:
        self.pod = pod
        self.spec: Object = pod["spec"]
        self.pod_ip = ""
        self._around = around
        self._directory = around.directory / "pods" / pod["metadata"]["uid"]
        self._volumes = PodVolumes(self._directory / "volumes", around.api, around.devices, around.host_ip)
        self._containers = [self._container(spec) for spec in self.spec["containers"]]
        self._start_time = (pod.get("status") or {}).get("startTime") or timestamp(time.time())
        self._conditions: list[Object] = list((pod.get("status") or {}).get("conditions") or [])
        self._dirty = asyncio.Event()
        self._stopping = asyncio.Event()
        self._gone = False
        self._stopped = False
        self.max_grace_seconds = float("inf")
        """A limit to every grace period; set when the machine itself shuts down."""
        if "deletionTimestamp" in pod["metadata"]:
            self._stopping.set()

    # ------------------------------------------------------------------------------------------ called by the kubelet

    def update(self, pod: Object) -> None:
        """The object changed."""
        self.pod, self.spec = pod, pod["spec"]
        specs = {spec["name"]: spec for spec in self.spec["containers"]}
        for container in self._containers:
            container.update(specs[container.state.name])
        if "deletionTimestamp" in pod["metadata"]:
            self._stopping.set()
        self.changed()  # a readiness gate may have changed

    def container(self, name: str) -> Container:
        """The pod's container of this name."""
        return next(each for each in self._containers if each.state.name == name)

    def object_gone(self) -> None:
        """The object was removed without waiting for this machine (forced): end at once."""
        self._gone = True
        self._stopping.set()
        for container in self._containers:
            container.kill()

    # -------------------------------------------------------------------------------------------------------- its life

    async def run(self) -> None:
        """Run the pod until it is deleted. When cancelled (the machine stops), end its processes with grace."""
        if self._stopping.is_set():  # the machine booted after the pod was deleted: nothing of it runs any more
            await self._remove()
            return
        reporting = asyncio.ensure_future(self._report())
        living = asyncio.ensure_future(self._live())
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait([living, stopping], return_when=asyncio.FIRST_COMPLETED)
            self._say_what_failed(living)
            await stopping  # a completed pod stays until it is deleted
        finally:
            self._set_grace()
            for task in (living, reporting, stopping):
                task.cancel()
            await asyncio.wait([living, reporting, stopping])
        await self._remove()

    def changed(self) -> None:
        """Something about the pod's containers changed: report it soon."""
        self._dirty.set()

    def emit(self, type: str, reason: str, message: str) -> None:
        """Emit an event on the pod."""
        self._around.events.emit(self.pod, type, reason, message)

    async def command(self, container: Object, image: Image) -> processes.Command:
        """The process of a container, with its current sources. Raises MissingSourceError, ApiError."""
        sources = await self._around.api.fetch(self.pod["metadata"]["namespace"], references(self.pod))
        env = environment(container, self._context(), sources)
        argv = arguments(container, image, env)
        mounts = mounts_of(container, self.pod, self._volumes.directory, self._volumes.read_only)
        for mount in mounts:
            if not mount.source.exists():
                if mount.read_only:
                    raise MissingSourceError(f"{mount.target}: {mount.source.name} does not exist in its volume")
                if mount.source.is_symlink():
                    raise MissingSourceError(f"{mount.target}: its volume is no longer attached to this machine")
                mount.source.mkdir(parents=True)  # a subPath
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = self._directory / f"{container['name']}.log"
        rotate(log)
        cwd = container.get("workingDir")
        if await self._around.can_mount():
            root = self._directory / "root"
            root.mkdir(exist_ok=True)
            return processes.Command(argv, env, cwd or "/", log, mounts, root)
        return without_mounts(processes.Command(argv, env, cwd, log), mounts)

    async def launch(
        self, command: processes.Command, streams: processes.Streams | None = None
    ) -> processes.ContainerProcess:
        """Start a process of this pod. Raises LaunchError."""
        return await processes.start(command, self._around.directory, streams)

    async def _live(self) -> None:
        """Prepare, run the containers to their end, and refresh volumes meanwhile."""
        self.changed()
        if reasons := refusals(self.pod):
            self._refuse("; ".join(reasons))
            return
        if ignored := not_honoured(self.pod):
            self.emit("Warning", "NotHonoured", f"This machine runs containers as plain processes and ignores "
                      f"{', '.join(ignored)}")  # fmt: skip
        await self._get_address()
        try:
            await self._prepare_volumes()
            await self._run_containers()
        finally:
            await self._volumes.close(self.pod)

    async def _run_containers(self) -> None:
        refreshing = asyncio.ensure_future(self._keep_house())
        try:
            async with asyncio.TaskGroup() as group:
                for container in self._containers:
                    group.create_task(container.run())
        finally:
            refreshing.cancel()

    async def _keep_house(self) -> None:
        """Rotate logs and refresh volumes, tokens among them, until cancelled; a failed refresh changes nothing."""
        while True:
            await asyncio.sleep(HOUSEKEEPING_SECONDS)
            for log in self._directory.glob("*.log"):
                rotate(log)
            try:
                await self._volumes.refresh(self.pod)
            except (MissingSourceError, ApiError, OSError) as error:
                self.emit("Warning", "FailedMount", f"a volume could not be refreshed: {error}")

    def _refuse(self, why: str) -> None:
        for container in self._containers:
            container.state.state = {"waiting": {"reason": "CreateContainerConfigError", "message": why}}
        self.emit("Warning", "FailedCreatePodSandBox", f"This machine cannot run the pod: {why}")
        self.changed()

    async def _get_address(self) -> None:
        if self.spec.get("hostNetwork"):
            self.pod_ip = self._around.host_ip
        else:
            addresses = await asyncio.shield(self._around.addresses)
            backoff = Backoff()
            while not self.pod_ip:
                try:
                    self.pod_ip = addresses.allocate((self.pod.get("status") or {}).get("podIP"))
                except OutOfAddressesError as error:
                    self.emit("Warning", "FailedCreatePodSandBox", str(error))
                    await asyncio.sleep(backoff.next())
        self._volumes.pod_ip = self.pod_ip
        self.changed()

    async def _prepare_volumes(self) -> None:
        backoff, waiting = Backoff(), Backoff(*_WAITING)
        reported = time.monotonic()
        while True:
            try:
                await self._volumes.refresh(self.pod)
                return
            except NotYetError as error:
                if time.monotonic() - reported >= _PATIENCE_SECONDS:
                    reported = time.monotonic()
                    self.emit("Warning", "FailedMount", f"Unable to attach or mount volumes: {error}")
                await asyncio.sleep(waiting.next())
            except (MissingSourceError, ApiError, OSError) as error:
                self.emit("Warning", "FailedMount", f"MountVolume.SetUp failed: {error}")
                await asyncio.sleep(backoff.next())

    def _say_what_failed(self, living: asyncio.Future[None]) -> None:
        """Report an internal error that ended the pod's task."""
        if living.done() and not living.cancelled() and (problem := living.exception()) is not None:
            _log.error("pod failed pod=%s", self._name, exc_info=problem)
            self.emit("Warning", "Failed", f"This machine cannot run the pod: {problem!r}")

    def _set_grace(self) -> None:
        metadata = self.pod["metadata"]
        grace = metadata.get("deletionGracePeriodSeconds", self.spec.get("terminationGracePeriodSeconds"))
        for container in self._containers:
            wanted = 0.0 if self._gone else _DEFAULT_GRACE if grace is None else float(grace)
            container.grace_seconds = min(wanted, self.max_grace_seconds)

    # ------------------------------------------------------------------------------------------------------- reporting

    async def _report(self) -> None:
        """Post the status whenever it changed, until cancelled."""
        posted: Object | None = None
        backoff = Backoff()
        while True:
            await self._dirty.wait()
            await asyncio.sleep(_STATUS_DEBOUNCE)
            self._dirty.clear()
            status = self._status()
            if status == posted and is_reported(self.pod, status):
                continue
            try:
                await self._post(status)
            except NotFoundError:
                return  # the watch will report that, too
            except ApiError as error:
                _log.warning("status not posted pod=%s error=%r", self._name, str(error))
                await asyncio.sleep(backoff.next())
                self._dirty.set()
                continue
            posted, backoff = status, Backoff()

    async def _post(self, status: Object) -> None:
        metadata = self.pod["metadata"]
        await self._around.api.patch_pod_status(metadata["namespace"], metadata["name"], status_patch(self.pod, status))
        self._conditions = status["conditions"]

    def _status(self) -> Object:
        return pod_status(
            self.pod,
            [container.state for container in self._containers],
            pod_ip=self.pod_ip or None,
            host_ip=self._around.host_ip,
            start_time=self._start_time,
            now=timestamp(time.time()),
            stopped=self._stopped,
            previous=self._conditions,
        )

    # --------------------------------------------------------------------------------------------------------- the end

    async def _remove(self) -> None:
        """The processes have ended: report it, delete the object, release the pod's resources."""
        self._stopped = True
        metadata = self.pod["metadata"]
        backoff = Backoff()
        while not self._gone:
            try:
                await self._post(self._status())
                await self._around.api.delete_pod(metadata["namespace"], metadata["name"], metadata["uid"])
                break
            except NotFoundError:
                break
            except ApiError as error:  # also a conflict, if a new pod has the name: the watch reports this one's end
                _log.warning("pod not deleted pod=%s error=%r", self._name, str(error))
                await asyncio.sleep(backoff.next())
        if self.pod_ip and not self.spec.get("hostNetwork"):
            (await self._around.addresses).free(self.pod_ip)
        await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)
        _log.info("pod ended pod=%s", self._name)

    # --------------------------------------------------------------------------------------------------------- helpers

    @property
    def _name(self) -> str:
        return f"{self.pod['metadata']['namespace']}/{self.pod['metadata']['name']}"

    def _context(self) -> PodContext:
        return PodContext(self.pod, self.pod_ip, self._around.host_ip, self._around.api_server)

    def _container(self, spec: Object) -> Container:
        """A container, with its state from before the machine's last boot."""
        state = ContainerState(name=spec["name"], image=spec["image"])
        for known in (self.pod.get("status") or {}).get("containerStatuses") or []:
            if known["name"] == spec["name"] and known.get("containerID"):
                end = known["state"] if "terminated" in known["state"] else _lost(known)
                if "deletionTimestamp" in self.pod["metadata"]:
                    state.state, state.restart_count = end, int(known["restartCount"])
                else:
                    state.last_state, state.restart_count = end, int(known["restartCount"]) + 1
        return Container(self, spec, state, (ApiError,))


def _lost(known: Object) -> Object:
    """The end of a container that died with its machine, with unknown exit code."""
    started = (known["state"].get("running") or {}).get("startedAt")
    details = {"exitCode": 255, "reason": "Unknown", "finishedAt": timestamp(time.time())}
    return {"terminated": {**details, "startedAt": started} if started else details}
