"""Executes one attempt of an HTTP, TCP or exec probe."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable

import urllib3

from local.http_client import HttpError, on_thread, status
from local.machine.probes import ExecCheck, HttpCheck, Probe, TcpCheck

ExecCommand = Callable[[tuple[str, ...]], Awaitable[int]]
"""Runs a command in the container and returns its exit code; when cancelled, ends the command. Raises ValueError."""

# A probe tests whether the container answers, not its identity: like a kubelet's, it accepts any certificate.
urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)


async def attempt(probe: Probe, run_command: ExecCommand) -> str | None:
    """Try once; None for a success, else the problem."""
    check = probe.check
    try:
        async with asyncio.timeout(probe.timeout):
            if isinstance(check, HttpCheck):
                return await _http(check, probe.timeout)
            if isinstance(check, TcpCheck):
                return await _tcp(check)
            return await _exec(check, run_command)
    except TimeoutError:
        return f"no answer within {probe.timeout:g} s"
    except (HttpError, OSError, ValueError) as error:
        return str(error)


async def _http(check: HttpCheck, timeout: float) -> str | None:
    url = f"{'https' if check.tls else 'http'}://{check.host}:{check.port}{check.path}"
    headers = {"User-Agent": "kube-probe/1.37", "Accept": "*/*", "Connection": "close", **dict(check.headers)}
    tls = _unverified() if check.tls else None
    # The caller's timeout, which covers the whole attempt, is the first to end it.
    code = await on_thread(lambda: status(url, headers=headers, tls=tls, seconds=timeout + 1))
    return None if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"


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
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
