"""What AWS refuses about the attributes of target groups: those of all ports, and those of one port before them."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.clouds.aws import attributes as aws
from cloud_controller.clouds.aws.attribute_refusals import TARGETS_OF_PORT, values_of, values_of_port
from cloud_controller.clouds.aws.port_terms import SERVES_UDP_TOO, TLS, field
from cloud_controller.load_balancers.refusals import Refusal
from cloud_controller.load_balancers.terms import (
    PORT_KEYS,
    PORT_NUMBER,
    PORTS,
    PROTOCOL,
    Term,
    literal,
    say,
    spec,
    text,
    words,
)

_ALL = "target_group_attributes"


def _of_all(key: str) -> Term:
    """Its values in the annotation of all ports."""
    return values_of(words(_ALL), key)


def _value(key: str) -> Term:
    """The value that counts, the last one; '' without."""
    of_all, own = _of_all(key), values_of_port(key)
    every = f"([''] + {of_all.cel} + {own.cel})"
    return Term(f"{every}[{of_all.cel}.size() + {own.cel}.size()]", lambda a: ["", *of_all.of(a), *own.of(a)][-1])


def _where(key: str) -> Term:
    """The annotation that it is from, as errors name it."""
    own = values_of_port(key)
    return Term(
        f"'annotation ' + ({own.any.cel} ? {TARGETS_OF_PORT.cel} : {literal(field(_ALL).removeprefix('annotation '))})",
        lambda asked: f"annotation {TARGETS_OF_PORT.of(asked)}" if own.of(asked) else field(_ALL),
    )


def _refused(key: str, when: Term, why: str, allowed: str, *terms: Term) -> Refusal:
    return Refusal(say("{}", _where(key)), when, say(why, *terms), allowed, each=PORTS)


_STICKY = spec("sessionAffinity").is_("ClientIP")
_NOT_STICKY = ("AWS does not support stickiness with TLS listeners or TLS targets", "None; or a listener without TLS")
_DATAGRAMS = PROTOCOL.is_("UDP") | SERVES_UDP_TOO
_PROTOCOL = Term(
    f"('TCP:' + {PORT_NUMBER.cel} in {PORT_KEYS.cel} ? 'TCP_UDP' : 'UDP')",
    lambda asked: "TCP_UDP" if f"TCP:{asked.item['port']}" in PORT_KEYS.of(asked) else "UDP",
)


def _agreement(key: str, asked_for: Term, by: str) -> Refusal:
    return _refused(key, asked_for & _value(key).is_("false"), f"{key}=false contradicts {by}", "only one of the two")


def _of_targets() -> Iterator[Refusal]:
    yield _agreement(aws.PROXY_PROTOCOL, text("proxy_protocol").is_("*"), field("proxy_protocol"))
    yield _agreement(aws.STICKINESS, _STICKY, "spec.sessionAffinity")
    yield Refusal("spec.sessionAffinity", _STICKY & TLS, *_NOT_STICKY, each=PORTS)
    yield _refused(aws.STICKINESS, ~_STICKY & TLS & _value(aws.STICKINESS).is_("true"), *_NOT_STICKY)
    for key, refused in ((aws.PRESERVE_CLIENT_IP, "false"), (aws.TERMINATE_UNHEALTHY, "true")):
        why = f"{key}={refused} is not supported by {{}} target groups"
        allowed = f"{key}={refused} only on ports without UDP"
        yield _refused(key, _DATAGRAMS & _value(key).is_(refused), why, allowed, _PROTOCOL)
    terminates = _value(aws.TERMINATE_UNHEALTHY)
    yield _refused(
        aws.DRAIN_UNHEALTHY,
        (_of_all(aws.DRAIN_UNHEALTHY).any | values_of_port(aws.DRAIN_UNHEALTHY).any)
        & (terminates.is_("true") | (terminates.is_("") & ~_DATAGRAMS)),
        f"{aws.DRAIN_UNHEALTHY} has no effect while {aws.TERMINATE_UNHEALTHY} is true",
        f"with {aws.TERMINATE_UNHEALTHY}=false",
    )


OF_TARGETS = tuple(_of_targets())
