"""Whether loopback ports are free, who holds one if not, and where some are."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Collection

import psutil

from local.addresses import BLOCK_BASES, socket_address

UNUSED_ADDRESS_TRIES = 50


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
    return "a process that this user may not see"


def unused_address(wanted_ports: Collection[int]) -> str:
    """A cluster address (10.x) outside of every site's block whose 127.x counterpart has all these ports free.

    For what runs beside a site: tests, benchmarks. Raises PortBusyError if none is found in some tries.
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
    raise PortBusyError(f"no loopback address has ports {sorted(wanted_ports)} free; does something listen on 0.0.0.0?")
