"""One container as a process: started, probed, restarted with backoff, stopped with grace."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from local.machine import prober, processes
from local.machine.backoff import Backoff
from local.machine.images import Image, find_image, known_images
from local.machine.pod_status import ContainerState, should_restart, terminated, timestamp
from local.machine.probes import Probe, ProbeState, UnsupportedProbeError, parse_probe
from local.machine.sources import MissingSourceError
from local.machine.wildcard import wildcard_ports

Object = dict[str, Any]

_log = logging.getLogger(__name__)

_IMPATIENT = (0.1, 1.0)
_BIND_CHECKS_AFTER = (3.0, 7.0, 20.0, 60.0)
"""Several: a slow start binds late."""

_PULL_BACKOFF = (5.0, 60.0)


class Pod(Protocol):
    """What a container needs of its pod."""

    spec: Object
    pod_ip: str

    def changed(self) -> None:
        """The container's state changed: report it."""

    def emit(self, type: str, reason: str, message: str) -> None:
        """Emit an event."""

    async def command(self, container: Object, image: Image) -> processes.Command:
        """The command to run. Raises MissingSourceError, ApiError."""

    async def launch(
        self, command: processes.Command, streams: processes.Streams | None = None
    ) -> processes.ContainerProcess:
        """Run it, with its output in the container's log unless it has streams of its own. Raises LaunchError."""


class Container:
    """A container of a pod. `run` lasts as long as the container; when cancelled, it stops the process first."""

    def __init__(self, pod: Pod, spec: Object, state: ContainerState, errors: tuple[type[Exception], ...]) -> None:
        """`errors` are possible errors of the API server while sources are fetched, which are retried."""
        self.spec = spec
        self.state = state
        self.grace_seconds: float = 30.0
        self._pod = pod
        self._retried: tuple[type[Exception], ...] = (MissingSourceError, processes.LaunchError, OSError, *errors)
        self._process: processes.ContainerProcess | None = None
        self._beside: set[processes.ContainerProcess] = set()

    async def run(self) -> None:
        """Start and restart according to the restart policy; returns when it has ended for good."""
        policy = self._pod.spec.get("restartPolicy", "Always")
        backoff = Backoff()
        try:
            while True:
                started = await self._start_until_it_runs()
                outcome = await self._watch(started)
                if not should_restart(policy, outcome.code):
                    return
                delay = backoff.next(time.time() - started.started_at)
                await self._wait_for_restart(delay)
        finally:
            await self._stop()

    def update(self, spec: Object) -> None:
        """Apply a changed spec: another image ends the process, and the restart runs the new one."""
        image_changed = spec["image"] != self.spec["image"]
        self.spec = spec
        if image_changed and self._process is not None:
            self._pod.emit("Normal", "Killing", f"Container {self.state.name} definition changed, will be restarted")
            self._process.terminate()

    @property
    def is_running(self) -> bool:
        """Whether there is a process now."""
        return self._process is not None

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()

    async def start_beside(self, argv: Sequence[str], streams: processes.Streams) -> processes.ContainerProcess:
        """Start another command in the container; it ends with the container's process. Raises ValueError."""
        # Only arguments of the spec have references expanded; a person's are taken literally.
        process = await self._start_beside([word.replace("$", "$$") for word in argv], streams)
        self._beside = {each for each in self._beside if each.is_running} | {process}
        if self._process is None:
            process.kill()  # it ended meanwhile
        return process

    # ------------------------------------------------------------------------------------------------------- starting

    async def _start_until_it_runs(self) -> processes.ContainerProcess:
        pull_backoff, start_backoff = Backoff(*_PULL_BACKOFF), Backoff()
        while True:
            image = find_image(self.spec["image"])
            if image is None:
                await self._cannot_pull(pull_backoff)
                continue
            try:
                command = await self._pod.command(self.spec, image)
                process = await self._pod.launch(command)
            except self._retried as error:
                launching = isinstance(error, processes.LaunchError)
                reason = "CreateContainerError" if launching else "CreateContainerConfigError"
                self._set_waiting(reason, str(error))
                self._pod.emit("Warning", "Failed", f"Error: {error}")
                await asyncio.sleep(start_backoff.next())
                continue
            self._process = process
            self.state.image = self.spec["image"]
            self.state.state = {"running": {"startedAt": timestamp(process.started_at)}}
            self.state.container_id = f"process://{process.pid}"
            self.state.started = "startupProbe" not in self.spec
            self.state.ready = self.state.started and "readinessProbe" not in self.spec
            self._pod.changed()
            self._pod.emit("Normal", "Started", f"Started container {self.state.name}")
            return process

    async def _cannot_pull(self, backoff: Backoff) -> None:
        reference = self.spec["image"]
        message = f"image {reference} is not in this machine's catalogue ({', '.join(known_images())})"
        self._set_waiting("ErrImagePull", message)
        self._pod.emit("Warning", "Failed", f'Failed to pull image "{reference}": {message}')
        # Long enough to be reported; then the reason that announces a retry.
        await asyncio.sleep(backoff.first / 2)
        self._set_waiting("ImagePullBackOff", f'Back-off pulling image "{reference}"')
        self._pod.emit("Normal", "BackOff", f'Back-off pulling image "{reference}"')
        await asyncio.sleep(backoff.next())

    async def _wait_for_restart(self, delay: float) -> None:
        message = f"back-off {delay:g}s restarting failed container={self.state.name}"
        self.state.last_state = self.state.state
        self._set_waiting("CrashLoopBackOff", message)
        if "terminated" in self.state.last_state and self.state.last_state["terminated"]["exitCode"] != 0:
            self._pod.emit("Warning", "BackOff", f"Back-off restarting failed container {self.state.name}")
        await asyncio.sleep(delay)
        self.state.restart_count += 1

    def _set_waiting(self, reason: str, message: str) -> None:
        self.state.state = {"waiting": {"reason": reason, "message": message}}
        self.state.ready = self.state.started = False
        self._pod.changed()

    # -------------------------------------------------------------------------------------------------------- running

    async def _watch(self, process: processes.ContainerProcess) -> processes.Exit:
        """Probe the process until it ends."""
        probing = asyncio.ensure_future(self._probe(process))
        probing.add_done_callback(self._probing_ended)
        try:
            outcome = await process.wait()
        finally:
            probing.cancel()
            await asyncio.wait([probing])
        self._ended(process, outcome)
        return outcome

    def _probing_ended(self, probing: asyncio.Future[None]) -> None:
        """Report an internal error now: the process is no longer watched."""
        if not probing.cancelled() and (problem := probing.exception()) is not None:
            _log.error("probing failed container=%s", self.state.name, exc_info=problem)
            self._pod.emit("Warning", "ProbeError", f"container {self.state.name} is no longer probed: {problem!r}")

    def _ended(self, process: processes.ContainerProcess, outcome: processes.Exit) -> None:
        self._process = None
        for beside in self._beside:
            beside.kill()
        self.state.state = terminated(
            outcome.code, outcome.signal, process.started_at, time.time(), self.state.container_id
        )
        self.state.ready = self.state.started = False
        self._pod.changed()
        _log.info("container ended container=%s exit=%d", self.state.name, outcome.code)

    async def _stop(self) -> None:
        """End the process if it still runs (the pod is being deleted)."""
        process = self._process
        if process is None:
            return
        self._pod.emit("Normal", "Killing", f"Stopping container {self.state.name}")
        self._ended(process, await process.stop(self.grace_seconds))

    # -------------------------------------------------------------------------------------------------------- probing

    async def _probe(self, process: processes.ContainerProcess) -> None:
        if (startup := self._parse("startupProbe")) is not None:
            await self._probe_startup(startup, process)
            self.state.started = True
            self.state.ready = "readinessProbe" not in self.spec
            self._pod.changed()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._check_binding(process))
            if (readiness := self._parse("readinessProbe")) is not None:
                group.create_task(self._probe_readiness(readiness))
            if (liveness := self._parse("livenessProbe")) is not None:
                group.create_task(self._probe_liveness(liveness, process))

    def _parse(self, kind: str) -> Probe | None:
        """The container's probe of this kind; an unsupported one never succeeds, and an event says why."""
        if kind not in self.spec:
            return None
        try:
            return parse_probe(self.spec[kind], self.spec, self._pod.pod_ip)
        except UnsupportedProbeError as error:
            self._pod.emit("Warning", "ProbeError", f"{kind} of container {self.state.name}: {error}")
            return None

    async def _probe_startup(self, probe: Probe, process: processes.ContainerProcess) -> None:
        verdict = ProbeState(probe.success_threshold, probe.failure_threshold, healthy=False)
        await asyncio.sleep(probe.initial_delay)
        while not await self._attempt("Startup", probe, verdict):
            if verdict.failed_for_good:
                await self._restart("startup", process)
            await asyncio.sleep(probe.period)

    async def _probe_readiness(self, probe: Probe) -> None:
        verdict = ProbeState(probe.success_threshold, probe.failure_threshold, healthy=False)
        was_ready = False
        impatient = Backoff(*_IMPATIENT)
        await asyncio.sleep(probe.initial_delay)
        while True:
            if await self._attempt("Readiness", probe, verdict):
                self.state.ready = verdict.healthy
                was_ready = True
                self._pod.changed()
            # A kubelet would wait its period here too. Until the first success more tries decide nothing else.
            await asyncio.sleep(probe.period if was_ready else min(probe.period, impatient.next()))

    async def _probe_liveness(self, probe: Probe, process: processes.ContainerProcess) -> None:
        verdict = ProbeState(probe.success_threshold, probe.failure_threshold, healthy=True)
        await asyncio.sleep(probe.initial_delay)
        while True:
            if await self._attempt("Liveness", probe, verdict) and not verdict.healthy:
                await self._restart("liveness", process)
            await asyncio.sleep(probe.period)

    async def _attempt(self, kind: str, probe: Probe, verdict: ProbeState) -> bool:
        """Probe once; True if the verdict changed."""
        problem = await prober.attempt(probe, self._run_in_container)
        if problem is not None and (verdict.healthy or kind != "Readiness"):
            self._pod.emit("Warning", "Unhealthy", f"{kind} probe failed: {problem}")
        return verdict.observe(problem is None)

    async def _restart(self, probe: str, process: processes.ContainerProcess) -> None:
        self._pod.emit("Normal", "Killing", f"Container {self.state.name} failed {probe} probe, will be restarted")
        await process.stop(self.grace_seconds)

    async def _start_beside(
        self, argv: Sequence[str], streams: processes.Streams | None = None
    ) -> processes.ContainerProcess:
        image = find_image(self.spec["image"])
        if image is None:
            raise ValueError(f"image {self.spec['image']} is unknown")
        try:
            command = await self._pod.command({**self.spec, "command": list(argv), "args": []}, image)
            if streams is not None and streams.terminal:
                command = replace(command, env={**command.env, "TERM": "xterm"})
            return await self._pod.launch(command, streams)
        except self._retried as error:
            raise ValueError(str(error)) from error

    async def _run_in_container(self, argv: tuple[str, ...]) -> int:
        process = await self._start_beside(argv)
        try:
            return (await process.wait()).code
        finally:
            process.kill()

    async def _check_binding(self, process: processes.ContainerProcess) -> None:
        for delay in _BIND_CHECKS_AFTER:
            await asyncio.sleep(delay)
            ports = await asyncio.to_thread(wildcard_ports, process.pid)
            if ports:
                self._pod.emit(
                    "Warning",
                    "WildcardBind",
                    f"Container {self.state.name} listens on every address of this machine ({', '.join(ports)}): "
                    "bind the pod's address, from an env with fieldRef status.podIP",
                )
                return
