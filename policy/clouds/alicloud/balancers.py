"""What a Service's settings come to on Alibaba Cloud."""

from __future__ import annotations

from typing import Final

from cloud_controller.clouds.alicloud.annotations import CATALOGUE
from cloud_controller.load_balancers.terms import Asked, text, words
from policy.clouds.interface import Balancers, Zones


def _name(argument: str) -> str:
    return f"annotation {CATALOGUE.by_argument[argument].name}"


def _ports(asked: Asked, *protocols: str) -> list[str]:
    """The ports that `protocol-port` gives one of these protocols."""
    parts = [[part.strip().lower() for part in word.split(":")] for word in words("protocol_port").of(asked)]
    return [port for protocol, port in (part for part in parts if len(part) == 2) if protocol in protocols]


def _ends_tls(asked: Asked) -> bool:
    return str(asked.item["port"]) in _ports(asked, "https", "tcpssl")


def _unredirected(asked: Asked) -> str | None:
    redirected = {word.partition(":")[0].strip() for word in words("forward_port").of(asked)}
    in_clear, encrypted = _ports(asked, "http"), _ports(asked, "https")
    open_ports = [port for port in in_clear if port not in redirected]
    if not (open_ports and encrypted):
        return None
    return f"port {', '.join(open_ports)}: {_name('forward_port')}: {open_ports[0]}:{encrypted[0]}"


def _unprotected(asked: Asked) -> str | None:
    is_off = "id" not in asked.settings.given and text("delete_protection").of(asked) == "off"
    return f'{_name("delete_protection")}: "on", or no such annotation' if is_off else None


def _named(asked: Asked) -> frozenset[str]:
    return frozenset(word.partition(":")[0].strip() for word in words("zone_maps").of(asked))


def _crosses(asked: Asked) -> bool:
    """A CLB always does."""
    return asked.settings.kind != "NLB" or text("cross_zone_enabled").of(asked) != "off"


BALANCERS: Final = Balancers(
    ends_tls=_ends_tls,
    unredirected=_unredirected,
    unprotected=_unprotected,
    # Alibaba Cloud's documentation: NLB quotas (March 2026), limits of CLB (June 2025), elastic IPs.
    quotas={"CLB": 60, "NLB": 60, "listeners of CLB": 50, "listeners of NLB": 50, "addresses": 20},
)

ZONES: Final = Zones(
    annotation="zone_maps",
    subnets={"alicloud:vpc/switch:Switch": "zoneId"},
    pools={"alicloud:cs/nodePool:NodePool": "vswitchIds", "alicloud:ecs/instance:Instance": "vswitchId"},
    crosses=_crosses,
    named=_named,
)
