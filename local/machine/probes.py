"""The rules of readiness, liveness and startup probes. Pure; `prober.py` dials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from local.addresses import socket_address

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HttpCheck:
    """GET a URL; a status from 200 to 399 is a success."""

    host: str
    port: int
    path: str
    headers: tuple[tuple[str, str], ...]
    tls: bool


@dataclass(frozen=True, slots=True)
class TcpCheck:
    """An accepted connection is a success."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ExecCheck:
    """A command, run like the container, that exits with 0 is a success."""

    command: tuple[str, ...]


Check = HttpCheck | TcpCheck | ExecCheck


class UnsupportedProbeError(Exception):
    """A machine does not support the probe's kind or address."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe as its container declares it; times in seconds."""

    check: Check
    initial_delay: float
    period: float
    timeout: float
    success_threshold: int
    failure_threshold: int


def parse_probe(spec: Object, container: Object, pod_ip: str) -> Probe:
    """A probe of a container; `pod_ip` is the pod's cluster address. Raises UnsupportedProbeError."""
    return Probe(
        check=_check(spec, container, pod_ip),
        initial_delay=float(spec.get("initialDelaySeconds") or 0),
        period=float(spec.get("periodSeconds") or 10),
        timeout=float(spec.get("timeoutSeconds") or 1),
        success_threshold=int(spec.get("successThreshold") or 1),
        failure_threshold=int(spec.get("failureThreshold") or 3),
    )


@dataclass(slots=True)
class ProbeState:
    """The verdict of a probe: it changes only after as many equal results in a row as its threshold requires."""

    success_threshold: int
    failure_threshold: int
    healthy: bool
    _run: int = 0
    _last: bool | None = None

    def observe(self, success: bool) -> bool:
        """Add one result; True if the verdict changed."""
        self._run = self._run + 1 if success == self._last else 1
        self._last = success
        needed = self.success_threshold if success else self.failure_threshold
        if success == self.healthy or self._run < needed:
            return False
        self.healthy = success
        return True

    @property
    def failed_for_good(self) -> bool:
        """Whether consecutive failures have reached the threshold, whatever the verdict was before."""
        return self._last is False and self._run >= self.failure_threshold


def _check(spec: Object, container: Object, pod_ip: str) -> Check:
    if http := spec.get("httpGet"):
        headers = tuple((header["name"], header["value"]) for header in http.get("httpHeaders") or [])
        return HttpCheck(
            host=_host(http.get("host") or pod_ip),
            port=_port(http["port"], container),
            path="/" + (http.get("path") or "/").lstrip("/"),
            headers=headers,
            tls=http.get("scheme", "HTTP") == "HTTPS",
        )
    if tcp := spec.get("tcpSocket"):
        return TcpCheck(host=_host(tcp.get("host") or pod_ip), port=_port(tcp["port"], container))
    if command := spec.get("exec"):
        return ExecCheck(command=tuple(command.get("command") or ()))
    raise UnsupportedProbeError("only httpGet, tcpSocket and exec probes are supported")


def _host(address: str) -> str:
    try:
        return socket_address(address)
    except ValueError as error:
        raise UnsupportedProbeError(f"the probe's host cannot be dialled: {error}") from error


def _port(port: int | str, container: Object) -> int:
    if isinstance(port, int):
        return port
    for declared in container.get("ports") or []:
        if declared.get("name") == port:
            return int(declared["containerPort"])
    raise UnsupportedProbeError(f"container {container['name']} has no port named {port!r}")
