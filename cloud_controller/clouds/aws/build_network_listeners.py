"""Builds the listeners of a network load balancer: TLS, and attributes by their AWS names. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cloud_controller.clouds.aws import attributes as aws
from cloud_controller.clouds.aws import build_common as common
from cloud_controller.clouds.aws.names import LISTENER_ATTRIBUTES_TAG
from cloud_controller.clouds.aws.request import Port, Request
from cloud_controller.load_balancers.model import Ignored, Listener

_FAMILY = "listener_attributes"


def listener(asked: Request, transport: str, port: Port, pool: str) -> Listener:
    """The listener of this port, which forwards to this pool."""
    tls, settings = common.speaks_tls(asked, port), asked.settings
    protocol = "TLS" if tls else transport
    certificates = tuple(map(aws.Arn, asked.words("ssl_cert") if tls else ()))
    return Listener(
        transport,
        port["port"],
        pool,
        attributes={
            "protocol": protocol,
            "certificates": (
                *certificates[:1],
                *sorted({*certificates[1:]} - {*certificates[:1]}, key=str.lower),
            ),
            "ssl_policy": (settings.text("ssl_negotiation_policy") or aws.DEFAULT_SSL_POLICY) if tls else None,
            "alpn_policy": (settings.text("alpn_policy") or aws.DEFAULT_ALPN_POLICY) if tls else None,
            **aws.listener_defaults(protocol),
            **_given(asked, protocol, port["port"]),
        },
    )


def marks(asked: Request, listeners: Sequence[Listener]) -> dict[str, str]:
    """The tag of a load balancer whose listeners have non-default attributes: only with it are they read."""
    given = any(_given(asked, str(each.attributes["protocol"]), each.port) for each in listeners)
    return {LISTENER_ATTRIBUTES_TAG: "true"} if given else {}


def ignored(asked: Request, listeners: Sequence[Listener]) -> Iterator[Ignored]:
    """Annotations for listeners that the Service does not have."""
    protocols = {f"{each.attributes['protocol']}-{each.port}": each for each in listeners}
    for suffix in asked.settings.members(_FAMILY):
        if suffix not in protocols:
            shown = ", ".join(protocols)
            yield from asked.ignored(f"{_FAMILY}.{suffix}", f"the Service has no such listener; it has {shown}")
    if not any(each.attributes["protocol"] == "TCP" for each in listeners):
        why = "only TCP listeners have a configurable idle timeout, and there are none"
        yield from asked.ignored("connection_idle_timeout", why)


def _given(asked: Request, protocol: str, number: int) -> dict[str, str]:
    """The listener's attributes from annotations."""
    found: dict[str, str] = {}
    if protocol == "TCP" and "connection_idle_timeout" in asked.settings.given:
        found = {aws.TCP_IDLE_TIMEOUT: str(asked.settings.given["connection_idle_timeout"])}
    return found | asked.pairs(f"{_FAMILY}.{protocol}-{number}")
