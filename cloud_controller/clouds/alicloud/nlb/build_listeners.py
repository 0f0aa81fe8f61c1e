"""Builds the listeners of an NLB: their protocols, ports, limits and certificates. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.annotation_entries import BACKEND_TYPE
from cloud_controller.clouds.alicloud.nlb.annotations import field
from cloud_controller.clouds.alicloud.nlb.names import pool_name
from cloud_controller.clouds.alicloud.nlb.request import Port, Request
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Ignored, Listener
from cloud_controller.load_balancers.nameable import Named

UDP_IDLE_TIMEOUT = 20
"""Seconds: the default and the most of UDP listeners."""
PPV2 = ("ppv2_ep_id", "ppv2_eps_id", "ppv2_vpc_id")
_TRANSPORTS = ("TCP", "UDP")
_PROTOCOLS = {"tcp": "TCP", "udp": "UDP", "tcpssl": "TCP"}
"""The protocols of annotations, with the transport that the Service's port must have."""
_FORM = "tcp:PORT, udp:PORT or tcpssl:PORT"
_TLS_ONLY = ("cert_id", "additional_cert_ids", "cacert", "cacert_id", "tls_cipher_policy", "alpn", "alpn_policy")


@dataclass(frozen=True, slots=True)
class Front:
    """A port of the Service and what listens for it. `last`: of a range of ports that begins with `first`."""

    index: int
    port: Port
    protocol: str
    first: int
    last: int | None
    by_address: bool

    @property
    def transport(self) -> str:
        """TCP or UDP."""
        return str(self.port["protocol"])

    @property
    def tls(self) -> bool:
        """Whether the listener terminates TLS."""
        return self.protocol == "TCPSSL"

    @property
    def pool(self) -> str:
        """The name of the pool on a load balancer of the Service's own."""
        any_port = self.last is not None
        return pool_name(self.transport, self.port["port"], tls=self.tls, by_address=self.by_address, any_port=any_port)


def fronts(asked: Request, *, by_pod: bool) -> list[Front]:
    """What listens for each port. Raises InvalidConfiguration that names the field or annotation."""
    protocols, ranges = _protocols(asked), _ranges(asked)
    if ranges and not by_pod:
        why = "a range of ports needs pods as backends: each port of the range goes to the same port of the pods"
        allowed = f"none; or annotation {BACKEND_TYPE}: eni"
        raise InvalidConfiguration(field("listener_port_range"), why, allowed)
    found = []
    for index, port in enumerate(asked.ports):
        if port["protocol"] not in _TRANSPORTS:
            where = f"spec.ports[{index}].protocol"
            raise InvalidConfiguration(where, f"{port['protocol']!r} is not supported", ", ".join(_TRANSPORTS))
        protocol = protocols.get((port["protocol"], port["port"])) or str(port["protocol"])
        first, last = ranges.get(port["port"], (port["port"], None))
        by_address = asked.text("server_group_type") == "Ip"
        found.append(Front(index, port, protocol, first, last, by_address))
    _require_apart(found)
    if any(front.tls for front in found) and not asked.has("cert_id"):
        why = f"missing, but {field('protocol_port')} asks for TLS"
        raise InvalidConfiguration(field("cert_id"), why, "the ID of a server certificate")
    if asked.on("cacert") and not asked.has("cacert_id"):
        why = f"missing, but {field('cacert')} is on"
        raise InvalidConfiguration(field("cacert_id"), why, "the ID of a CA certificate")
    return found


def listener(asked: Request, front: Front, pool: str, tags: Mapping[str, str]) -> Listener:
    """The listener that forwards to this pool."""
    proxy = asked.on("proxy_protocol")
    timeout = asked.settings.integer("idle_timeout")
    tlvs = {name: asked.on(f"{name.replace('ppv2_', 'ppv2_pvl_')}_enabled") for name in PPV2}
    return Listener(
        protocol=front.transport,
        port=front.first,
        pool=pool,
        attributes={
            "protocol": front.protocol,
            "port_range": f"{front.first}-{front.last}" if front.last else None,
            "running": True,
            "cps": asked.settings.integer("cps"),
            "idle_timeout": min(timeout, UDP_IDLE_TIMEOUT) if front.transport == "UDP" else timeout,
            "proxy_protocol": proxy,
            **(tlvs if proxy else {}),
            **(_tls(asked) if front.tls else {}),
        },
        tags=tags,
    )


def ignored(asked: Request, found: Sequence[Front]) -> Iterator[Ignored]:
    """Annotations of listeners that have no effect here."""
    numbers = {front.port["port"] for front in found}
    for argument in ("protocol_port", "listener_port_range"):
        strange = tuple(w for w in asked.words(argument) if int(w.rpartition(":")[2]) not in numbers)
        if strange:
            yield Ignored(field(argument), strange, "the Service has no such port")
    if not any(front.tls for front in found):
        for argument in _TLS_ONLY:
            yield from asked.ignored(argument, f"{field('protocol_port')} names no tcpssl port")
        return
    if not asked.on("alpn"):
        yield from asked.ignored("alpn_policy", f"{field('alpn')} is not on")
    if not asked.on("cacert"):
        yield from asked.ignored("cacert_id", f"{field('cacert')} is not on, so clients need no certificate")


def ignored_tlvs(asked: Request) -> Iterator[Ignored]:
    """The proxy protocol's own settings, if it is off."""
    if not asked.on("proxy_protocol"):
        for name in PPV2:
            argument = f"{name.replace('ppv2_', 'ppv2_pvl_')}_enabled"
            yield from asked.ignored(argument, f"{field('proxy_protocol')} is not on")


def named(asked: Request) -> Iterator[Named]:
    """The certificates that annotations name."""
    for argument in ("cert_id", "cacert_id"):
        if asked.has(argument):
            yield Named("certificate", field(argument), (asked.text(argument),))
    for word in asked.words("additional_cert_ids"):
        yield Named("certificate", field("additional_cert_ids"), (word,))


def _tls(asked: Request) -> dict[str, Value | None]:
    mutual, alpn = asked.on("cacert"), asked.on("alpn")
    certificate = asked.text("cert_id")
    return {
        "certificates": (certificate,),
        "additional_certificates": tuple(sorted({*asked.words("additional_cert_ids")} - {certificate})),
        "ca_enabled": mutual,
        **({"ca_certificates": (asked.text("cacert_id"),)} if mutual else {}),
        "security_policy": asked.text("tls_cipher_policy"),
        "alpn": alpn,
        **({"alpn_policy": asked.text("alpn_policy")} if alpn else {}),
    }


def _protocols(asked: Request) -> dict[tuple[str, int], str]:
    """The protocol of listeners by transport and port of the Service."""
    where, found = field("protocol_port"), dict[tuple[str, int], str]()
    transports: dict[int, set[str]] = {}
    for port in asked.ports:
        transports.setdefault(port["port"], set()).add(port["protocol"])
    for word in asked.words("protocol_port"):
        name, _, number = (part.strip().lower() for part in word.partition(":"))
        if name in ("http", "https"):
            why = f"{word!r}: an NLB does not speak HTTP"
            raise InvalidConfiguration(where, why, f"{_FORM}; for HTTP a CLB, or an ALB by an Ingress")
        if name not in _PROTOCOLS or not _is_port(number):
            raise InvalidConfiguration(where, f"{word!r} is not a protocol and a port", _FORM)
        transport, port_number = _PROTOCOLS[name], int(number)
        if transport not in transports.get(port_number, {transport}):
            other = ", ".join(sorted(transports[port_number]))
            why = f"{word!r} needs a {transport} port, but port {number} of the Service is {other}"
            raise InvalidConfiguration(where, why, f"{other.lower()}:{number}")
        if found.setdefault((transport, port_number), name.upper()) != name.upper():
            raise InvalidConfiguration(where, f"two protocols for port {number}", "one protocol for each port")
    return found


def _ranges(asked: Request) -> dict[int, tuple[int, int]]:
    where, found = field("listener_port_range"), dict[int, tuple[int, int]]()
    for word in asked.words("listener_port_range"):
        match = re.fullmatch(r"\s*(\d{1,5})-(\d{1,5})\s*:\s*(\d{1,5})\s*", word)
        first, last, number = map(int, match.groups()) if match else (0, 0, 0)
        if not 0 < first < last <= 65535 or not _is_port(str(number)) or number in found:
            why = f"{word!r} is not a range of ports for one port of the Service"
            raise InvalidConfiguration(where, why, "FIRST-LAST:PORT, such as 1000-2000:80")
        found[number] = (first, last)
    return found


def _require_apart(found: Sequence[Front]) -> None:
    """Raise InvalidConfiguration if two listeners of one transport have a port in common."""
    for index, front in enumerate(found):
        for other in found[:index]:
            ends = [(each.first, each.last or each.first) for each in (front, other)]
            if front.transport == other.transport and ends[0][0] <= ends[1][1] and ends[1][0] <= ends[0][1]:
                why = f"ports {front.port['port']} and {other.port['port']} would listen on the same port"
                raise InvalidConfiguration(field("listener_port_range"), why, "ranges that do not overlap")


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) <= 65535
