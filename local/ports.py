"""Whether a loopback port is free, and who holds it if not."""

from __future__ import annotations

import errno
import socket

import psutil


class PortBusyError(Exception):
    """Something else listens where one of the site's servers has to; the message says what."""


def require_free(address: str, port: int, purpose: str) -> None:
    """Raise PortBusyError, naming the holder, unless a server can listen on `address`:`port` (TCP)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: connections of an ended server that linger (TIME_WAIT) do not keep the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise PortBusyError(
                f"{purpose} cannot listen on {address}:{port}: {describe_holder(address, port)} listens there"
            ) from None


def describe_holder(address: str, port: int) -> str:
    """The process that listens on a TCP port, as `pid 123 (command line)`, as far as this user may know it."""
    wildcards = {"0.0.0.0", "::"}
    for connection in psutil.net_connections(kind="tcp"):
        if connection.status != psutil.CONN_LISTEN or not connection.laddr or connection.laddr.port != port:
            continue
        if connection.laddr.ip != address and connection.laddr.ip not in wildcards:
            continue
        if connection.pid is None:
            break
        try:
            command = " ".join(psutil.Process(connection.pid).cmdline())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return f"pid {connection.pid}"
        return f"pid {connection.pid} ({command[:120]})"
    return "a process of another user"
