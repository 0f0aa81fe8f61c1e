"""Executes one attempt of an HTTP, TCP or exec probe."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable

from local.machine.probes import ExecCheck, HttpCheck, Probe, TcpCheck

ExecCommand = Callable[[tuple[str, ...]], Awaitable[int]]
"""Runs a command in the container and returns its exit code; when cancelled, ends the command. Raises ValueError."""

_LINE_BYTES = 4096


async def attempt(probe: Probe, run_command: ExecCommand) -> str | None:
    """Try once; None for a success, else the problem."""
    check = probe.check
    try:
        async with asyncio.timeout(probe.timeout):
            if isinstance(check, HttpCheck):
                return await _http(check)
            if isinstance(check, TcpCheck):
                return await _tcp(check)
            return await _exec(check, run_command)
    except TimeoutError:
        return f"no answer within {probe.timeout:g} s"
    except (OSError, ValueError) as error:
        return str(error)


async def _http(check: HttpCheck) -> str | None:
    reader, writer = await asyncio.open_connection(
        check.host, check.port, ssl=_unverified() if check.tls else None, limit=_LINE_BYTES
    )
    try:
        headers = {"Host": f"{check.host}:{check.port}", "User-Agent": "kube-probe/1.37", "Accept": "*/*"}
        lines = [f"{name}: {value}" for name, value in (headers | dict(check.headers)).items()]
        writer.write("\r\n".join([f"GET {check.path} HTTP/1.1", *lines, "Connection: close", "", ""]).encode())
        await writer.drain()
        line = (await reader.readline()).decode("latin-1")
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    words = line.split(maxsplit=2)
    if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
        return "the answer is not HTTP"
    status = int(words[1])
    return None if 200 <= status < 400 else f"HTTP probe failed with statuscode: {status}"


async def _tcp(check: TcpCheck) -> str | None:
    _, writer = await asyncio.open_connection(check.host, check.port)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return None


async def _exec(check: ExecCheck, run_command: ExecCommand) -> str | None:
    code = await run_command(check.command)
    return None if code == 0 else f"the command exited with code {code}"


def _unverified() -> ssl.SSLContext:
    """A probe tests whether the container answers, not its identity: like a kubelet's, it accepts any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
