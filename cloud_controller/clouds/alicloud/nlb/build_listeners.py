"""Builds the listeners of an NLB: their protocols, ports, limits and certificates. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cloud_controller.clouds.alicloud.nlb.annotations import field
from cloud_controller.clouds.alicloud.nlb.names import pool_name
from cloud_controller.clouds.alicloud.nlb.request import Port, Request
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Ignored, Listener

UDP_IDLE_TIMEOUT = 20
"""Seconds: the default and the most of UDP listeners."""
PPV2 = ("ppv2_ep_id", "ppv2_eps_id", "ppv2_vpc_id")
_TLS_ONLY = ("cert_id", "additional_cert_ids", "cacert", "cacert_id", "tls_cipher_policy", "alpn", "alpn_policy")


@dataclass(frozen=True, slots=True)
class Front:
    """A port of the Service and what listens for it. `last`: of a range of ports that begins with `first`."""

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


def fronts(asked: Request) -> list[Front]:
    """What listens for each port."""
    protocols, ranges = _protocols(asked), _ranges(asked)
    by_address = asked.text("server_group_type") == "Ip"
    found = []
    for port in asked.ports:
        protocol = protocols.get((port["protocol"], port["port"])) or str(port["protocol"])
        first, last = ranges.get(port["port"], (port["port"], None))
        found.append(Front(port, protocol, first, last, by_address))
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
    words = (word.partition(":") for word in asked.words("protocol_port"))
    names = ((name.strip().upper(), int(number)) for name, _, number in words)
    return {("UDP" if name == "UDP" else "TCP", number): name for name, number in names}


def _ranges(asked: Request) -> dict[int, tuple[int, int]]:
    """The first and the last port of each range, by the Service's port."""
    words = (re.split("[-:]", word) for word in asked.words("listener_port_range"))
    return {int(number): (int(first), int(last)) for first, last, number in words}
