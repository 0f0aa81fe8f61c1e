"""A UDP server that sends each datagram back after its pod's name: `registry.local/echo-udp`.

Environment: PORT (default 8053), POD_IP (the address to bind), POD_NAME.
"""

from __future__ import annotations

import os
import signal
import socket


def main() -> None:
    """Serve until SIGTERM, which ends the process by its default action."""
    host, port = os.environ.get("POD_IP"), int(os.environ.get("PORT", "8053"))
    if not host:
        raise SystemExit("POD_IP is not set: add an env with fieldRef status.podIP to the container")
    name = (os.environ.get("POD_NAME") or os.environ["HOSTNAME"]).encode()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((host, port))
        print(f"listening on {host}:{port}/udp", flush=True)
        while True:
            data, client = sock.recvfrom(65_535)
            sock.sendto(name + b" " + data, client)


if __name__ == "__main__":
    main()
