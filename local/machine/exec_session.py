"""`kubectl exec`: a command beside a container's process, its streams as channels of a WebSocket (v5.channel.k8s.io).

The first byte of a message names its channel. 255 closes the channel that its next byte names.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import struct
import termios
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from local.machine.container import Container
from local.machine.processes import Exit, Streams

PROTOCOL = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
CHUNK = 32 * 1024
DRAIN_SECONDS = 10.0
"""How long a slow client, or a descendant outside the command's group, delays the end of a command's streams."""


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """The command to run, and the streams that the client wants."""

    argv: tuple[str, ...]
    stdin: bool
    terminal: bool


async def run(websocket: WebSocket, container: Container, request: ExecRequest) -> None:
    """Run the command until it or the client ends. The WebSocket is accepted already."""
    # Kubernetes' own servers send this as soon as the streams exist.
    await websocket.send_bytes(bytes([STDOUT]))
    with _Ends() as ours:
        try:
            with _Ends() as theirs:
                streams = _terminal(ours, theirs) if request.terminal else _pipes(ours, theirs, request)
                process = await container.start_beside(request.argv, streams)
        except ValueError as error:
            await _end(websocket, _failure("InternalError", f"{request.argv[0]}: {error}"))
            return
        outputs = asyncio.ensure_future(_send_all(websocket, ours))
        listening = asyncio.ensure_future(_receive(websocket, ours, process.kill))
        try:
            outcome = await process.wait()
            with contextlib.suppress(TimeoutError, WebSocketDisconnect):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await outputs
        finally:
            process.kill()
            outputs.cancel()
            listening.cancel()
            await asyncio.wait([outputs, listening])
    await _end(websocket, status_of(outcome))


def status_of(outcome: Exit) -> dict[str, Any]:
    """A command's result in the form that clients expect."""
    if outcome.code == 0:
        return {"metadata": {}, "status": "Success"}
    message = f"command terminated with non-zero exit code: exit status {outcome.code}"
    causes = [{"reason": "ExitCode", "message": str(outcome.code)}]
    return {**_failure("NonZeroExitCode", message), "details": {"causes": causes}}


def _failure(reason: str, message: str) -> dict[str, Any]:
    return {"metadata": {}, "status": "Failure", "reason": reason, "message": message}


async def _end(websocket: WebSocket, status: dict[str, Any]) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # the client has gone
        await websocket.send_bytes(bytes([ERROR]) + json.dumps(status).encode())
        await websocket.close()


class _Ends(contextlib.AbstractContextManager["_Ends"]):
    """Ends of pipes or of a terminal, closed together."""

    def __init__(self) -> None:
        self.outputs: dict[int, int] = {}
        """By channel."""
        self.stdin: int | None = None
        self.terminal: int | None = None
        self._open: set[int] = set()

    def add(self, end: int) -> int:
        self._open.add(end)
        return end

    def close_stdin(self) -> None:
        """A terminal has nothing to close: it is one end for both directions."""
        if self.stdin is not None and self.terminal is None:
            self._open.discard(self.stdin)
            os.close(self.stdin)
        self.stdin = None

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())

    def __exit__(self, *_: object) -> None:
        self.close()


def _terminal(ours: _Ends, theirs: _Ends) -> Streams:
    master, slave = os.openpty()
    ours.terminal = ours.stdin = ours.outputs[STDOUT] = ours.add(master)
    os.set_blocking(master, False)
    theirs.add(slave)
    return Streams(slave, slave, slave, terminal=True)


def _pipes(ours: _Ends, theirs: _Ends, request: ExecRequest) -> Streams:
    stdin, writer = os.pipe()
    theirs.add(stdin)
    ours.stdin = ours.add(writer)
    ends = []
    for channel in (STDOUT, STDERR):
        reader, end = os.pipe()
        ours.outputs[channel] = ours.add(reader)
        ends.append(theirs.add(end))
    for end in (writer, *ours.outputs.values()):
        os.set_blocking(end, False)
    if not request.stdin:
        ours.close_stdin()
    return Streams(stdin, stdout=ends[0], stderr=ends[1])


async def _send_all(websocket: WebSocket, ours: _Ends) -> None:
    await asyncio.gather(*(_send(websocket, channel, end) for channel, end in ours.outputs.items()))


async def _send(websocket: WebSocket, channel: int, end: int) -> None:
    """Send what the command writes, until it ends."""
    while True:
        await _ready(end, asyncio.get_running_loop().add_reader, asyncio.get_running_loop().remove_reader)
        try:
            chunk = os.read(end, CHUNK)
        except BlockingIOError:
            continue
        except OSError:  # the terminal reports that its other end is closed
            return
        if not chunk:
            return
        await websocket.send_bytes(bytes([channel]) + chunk)


async def _receive(websocket: WebSocket, ours: _Ends, kill: Callable[[], None]) -> None:
    """Pass on what the client sends, until cancelled; a client that disconnects ends the command."""
    try:
        while (message := await websocket.receive())["type"] == "websocket.receive":
            data = message.get("bytes") or (message.get("text") or "").encode()
            if data[:1] == bytes([STDIN]) and ours.stdin is not None:
                await _write(ours, data[1:])
            elif data == bytes([CLOSE, STDIN]):
                ours.close_stdin()
            elif data[:1] == bytes([RESIZE]) and ours.terminal is not None:
                size = json.loads(data[1:])
                window = struct.pack("HHHH", size["Height"], size["Width"], 0, 0)
                fcntl.ioctl(ours.terminal, termios.TIOCSWINSZ, window)
    finally:
        kill()


async def _write(ours: _Ends, data: bytes) -> None:
    while data and ours.stdin is not None:
        try:
            data = data[os.write(ours.stdin, data) :]
        except BlockingIOError:
            await _ready(ours.stdin, asyncio.get_running_loop().add_writer, asyncio.get_running_loop().remove_writer)
        except OSError:  # the command reads no more
            ours.close_stdin()


async def _ready(end: int, watch: Callable[..., object], unwatch: Callable[[int], object]) -> None:
    """Wait until an end is readable, or writable."""
    ready = asyncio.Event()
    watch(end, ready.set)
    try:
        await ready.wait()
    finally:
        unwatch(end)
