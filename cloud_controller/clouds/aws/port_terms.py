"""Terms about one port of a Service on AWS."""

from __future__ import annotations

from cloud_controller.clouds.aws.annotation_entries import PREFIX
from cloud_controller.load_balancers.terms import PORT_KEYS, PORT_NUMBER, PROTOCOL, Term, words


def field(argument: str) -> str:
    """How errors name the annotation of this argument."""
    return f"annotation {PREFIX}{argument.replace('_', '-')}"


CERTIFICATES, _PORTS = words("ssl_cert"), words("ssl_ports")
_NAME = Term("(has(item.name) ? item.name : '*')", lambda asked: asked.item.get("name") or "*")
_ANY = Term("'*'", lambda _: "*")
TLS = (
    PROTOCOL.is_("TCP")
    & CERTIFICATES.any
    & (~_PORTS.any | _ANY.within(_PORTS) | PORT_NUMBER.within(_PORTS) | _NAME.within(_PORTS))
)
"""Whether its listener terminates TLS."""
SERVES_UDP_TOO = Term("'UDP:' + string(item.port)", lambda asked: f"UDP:{asked.item['port']}").within(PORT_KEYS)
"""Whether there is a UDP port of the same number."""
