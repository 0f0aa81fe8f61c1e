"""What AWS refuses about the attributes of target groups: those of all ports, and those of one port before them."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.clouds.aws import attributes as aws
from cloud_controller.clouds.aws.port_terms import SERVES_UDP_TOO, TLS, field
from cloud_controller.load_balancers.refusals import Refusal
from cloud_controller.load_balancers.terms import (
    PORT_KEYS,
    PORT_NUMBER,
    PORTS,
    PROTOCOL,
    Asked,
    Term,
    literal,
    say,
    spec,
    text,
)

_ALL = "target_group_attributes"
_FAMILY = f"{_ALL}_of_port"
_OF_PORT = Term(
    f"{literal(field(_ALL).removeprefix('annotation ') + '.')} + {PORT_NUMBER.cel}",
    lambda asked: f"{field(_ALL).removeprefix('annotation ')}.{PORT_NUMBER.of(asked)}",
)
"""The name of the port's own annotation."""
_VALUE = "(w.split('=', 2) + [''])[1].trim()"


def _values(words: tuple[str, ...], key: str) -> list[str]:
    pairs = (word.partition("=") for word in words)
    return [value.strip() for each, _, value in pairs if each.strip() == key]


def _own(key: str) -> Term:
    """The values of an attribute in the port's own annotation; without a value, it does not count there."""

    def found(asked: Asked) -> list[str]:
        words = asked.settings.given.get(f"{_FAMILY}.{asked.item['port']}")
        return [value for value in _values(words, key) if value] if isinstance(words, tuple) else []

    words = f"({_OF_PORT.cel} in variables.given ? variables.given[{_OF_PORT.cel}].split(',') : [])"
    has_key = f"w.split('=')[0].trim() == {literal(key)}"
    return Term(f"{words}.filter(w, {has_key} && {_VALUE} != '').map(w, {_VALUE})", found)


def _of_all(key: str) -> Term:
    """Its values in the annotation of all ports."""

    def found(asked: Asked) -> list[str]:
        words = asked.settings.given.get(_ALL)
        return _values(words, key) if isinstance(words, tuple) else []

    has_key = f"w.split('=')[0].trim() == {literal(key)}"
    return Term(f"variables.value_{_ALL}.filter(w, {has_key}).map(w, {_VALUE})", found)


def _value(key: str) -> Term:
    """The value that counts, the last one; '' without."""
    of_all, own = _of_all(key), _own(key)
    every = f"([''] + {of_all.cel} + {own.cel})"
    return Term(f"{every}[{of_all.cel}.size() + {own.cel}.size()]", lambda a: ["", *of_all.of(a), *own.of(a)][-1])


def _where(key: str) -> Term:
    """The annotation that it is from, as errors name it."""
    own = _own(key)
    return Term(
        f"'annotation ' + ({own.any.cel} ? {_OF_PORT.cel} : {literal(field(_ALL).removeprefix('annotation '))})",
        lambda asked: f"annotation {_OF_PORT.of(asked)}" if own.of(asked) else field(_ALL),
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
        (_of_all(aws.DRAIN_UNHEALTHY).any | _own(aws.DRAIN_UNHEALTHY).any)
        & (terminates.is_("true") | (terminates.is_("") & ~_DATAGRAMS)),
        f"{aws.DRAIN_UNHEALTHY} has no effect while {aws.TERMINATE_UNHEALTHY} is true",
        f"with {aws.TERMINATE_UNHEALTHY}=false",
    )


OF_TARGETS = tuple(_of_targets())
