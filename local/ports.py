"""Checks that loopback ports are free, names the process that holds one, and finds free ones."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Collection

import psutil

from local.addresses import BLOCK_BASES, socket_address

UNUSED_ADDRESS_TRIES = 50


class PortBusyError(Exception):
    """A port that one of the site's servers needs is in use; the message names the holder."""


def require_free(address: str, port: int, purpose: str) -> None:
    """Raise PortBusyError, naming the holder, unless a server can listen on `address`:`port` (TCP)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: lingering connections (TIME_WAIT) of a server that has ended do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise PortBusyError(
                f"{purpose} cannot listen on {address}:{port}: the port is in use by {describe_holder(address, port)}"
            ) from None


def describe_holder(address: str, port: int) -> str:
    """The process that listens on a TCP port, as `pid 123 (command line)`, as far as this user may see it."""
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


def unused_address(wanted_ports: Collection[int]) -> str:
    """A cluster address (10.x) outside every site's block whose 127.x counterpart has all these ports free.

    For what runs beside a site: tests, benchmarks. Raises PortBusyError if several tries find none.
    """
    generator = random.SystemRandom()
    for _ in range(UNUSED_ADDRESS_TRIES):
        octets = (generator.randrange(1, BLOCK_BASES[0]), generator.randrange(256), generator.randrange(1, 255))
        address = f"10.{'.'.join(map(str, octets))}"
        try:
            for port in wanted_ports:
                require_free(socket_address(address), port, "a server")
        except PortBusyError:
            continue
        return address
    raise PortBusyError(f"no loopback address has ports {sorted(wanted_ports)} free; is one in use on 0.0.0.0?")
