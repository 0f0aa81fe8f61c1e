"""What AWS refuses about attributes under its own names: those of load balancers, target groups and listeners."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from cloud_controller.clouds.aws import attributes as aws
from cloud_controller.clouds.aws.attributes import Rule
from cloud_controller.clouds.aws.port_terms import SERVES_UDP_TOO, TLS, field
from cloud_controller.load_balancers.annotation import member_argument
from cloud_controller.load_balancers.refusals import Refusal
from cloud_controller.load_balancers.terms import (
    ITEM,
    PORT_KEYS,
    PORT_NUMBER,
    PORTS,
    PROTOCOL,
    WORD_VALUE,
    Asked,
    Saying,
    Term,
    literal,
    part,
    say,
    shared,
    words,
)

_KEY = part(0, "=")
_NO_PAIR, _PAIRS = "'{}' is not of the form key=value", "comma-separated key=value"


def values_of(given: Term, key: str) -> Term:
    """The values of an attribute in a list of `key=value`, of which the last one counts."""
    return given.where(_KEY.is_(key)).map(WORD_VALUE)


def not_pairs(argument: str) -> Refusal:
    """A word without a key."""
    return Refusal(argument, _KEY.is_(""), say(_NO_PAIR, ITEM), _PAIRS, each=words(argument))


def _name(suffix: Term, stem: str) -> Term:
    """The annotation of a family for a port."""
    prefix = f"{field(stem).removeprefix('annotation ')}."
    return Term(f"{literal(prefix)} + {suffix.cel}", lambda asked: f"{prefix}{suffix.of(asked)}")


def _words(name: Term, family: str) -> Term:
    """The words of the family's annotation of this name, which may be missing."""

    def found(asked: Asked) -> tuple[str, ...]:
        suffix = name.of(asked).partition("-attributes.")[2]
        value = asked.settings.given.get(member_argument(family, suffix))
        return value if isinstance(value, tuple) else ()

    given = f"({name.cel} in variables.given ? variables.given[{name.cel}].split(',') : [])"
    return Term(f"{given}.map(w, w.trim()).filter(w, w != '')", found)


_PORT_FAMILY, _LISTENER_FAMILY = "target_group_attributes_of_port", "listener_attributes"
TARGETS_OF_PORT = _name(PORT_NUMBER, "target_group_attributes")
"""The name of the annotation for a port's target group."""


def values_of_port(key: str) -> Term:
    """An attribute's values there; without a value, it does not count."""
    return values_of(_words(TARGETS_OF_PORT, _PORT_FAMILY), key).where(~ITEM.is_(""))


TCP_KEY = Term(f"'TCP:' + {PORT_NUMBER.cel}", lambda asked: f"TCP:{PORT_NUMBER.of(asked)}")
_SERVES_BOTH = SERVES_UDP_TOO & TCP_KEY.within(PORT_KEYS)
_LISTENER = Term(
    f"({TLS.cel} ? 'TLS-' : {_SERVES_BOTH.cel} ? 'TCP_UDP-' : {PROTOCOL.cel} + '-') + {PORT_NUMBER.cel}",
    lambda a: f"{'TLS' if TLS.of(a) else 'TCP_UDP' if _SERVES_BOTH.of(a) else PROTOCOL.of(a)}-{PORT_NUMBER.of(a)}",
)
_OF_LISTENERS = PORTS.map(_name(_LISTENER, _LISTENER_FAMILY))
_OF_TARGETS = PORTS.map(TARGETS_OF_PORT)
MOST_OF_A_FAMILY = 100
"""Annotations: more than any load balancer has listeners."""


def _too_many(family: str, stem: str) -> Refusal:
    prefix = literal(f"{field(stem).removeprefix('annotation ')}.")
    count = Term(
        f"variables.given.filter(n, n.startsWith({prefix})).size()", lambda asked: len(asked.settings.members(family))
    )
    why = say("{} annotations are too many", count)
    return Refusal(say(f"{field(stem)}.…"), count.above(MOST_OF_A_FAMILY), why, f"at most {MOST_OF_A_FAMILY}")


TOO_MANY_ATTRIBUTES = (
    _too_many(_PORT_FAMILY, "target_group_attributes"),
    _too_many(_LISTENER_FAMILY, _LISTENER_FAMILY),
)


def _table(rules: Mapping[str, Rule]) -> Term:
    texts = {
        key: {"words": " ".join(rule.words), "low": str(low), "high": str(high), "text": rule.text}
        for key, rule in rules.items()
        for low, high in [rule.bounds]
    }
    return Term(json.dumps(texts), lambda _: rules)


_RULES = {
    "attributes_of_load_balancers": aws.LOAD_BALANCER,
    "attributes_of_target_groups": aws.TARGET_GROUP,
    "attributes_of_listeners": aws.LISTENER,
}
ATTRIBUTES_SHARED = {
    "listeners": _OF_LISTENERS,
    **{name: _table(rules) for name, rules in _RULES.items()},
}
"""See `Catalogue.shared`."""


def _checked(setting: str | Saying, given: Term, table: str, what: str, each: Term | None = None) -> Iterator[Refusal]:
    rules = shared(table, ATTRIBUTES_SHARED[table])
    known, without = given.where(_KEY.within(rules)), given.where(_KEY.is_(""))
    unknown = given.where(~_KEY.within(rules)).map(_KEY)
    yield Refusal(setting, without.any, say(_NO_PAIR, without.first), _PAIRS, each)
    why = say(f"'{{}}' is not an attribute of {what}", unknown.first)
    yield Refusal(setting, unknown.any, why, ", ".join(_RULES[table]), each)
    wrong = known.where(~_allowed(rules))
    why = say("'{}' is not a valid value of {}", wrong.map(WORD_VALUE).first, wrong.map(_KEY).first)
    text = Term(f"{rules.cel}[{_KEY.cel}].text", lambda asked: rules.of(asked)[_KEY.of(asked)].text)
    yield Refusal(setting, wrong.any, why, say("{}", wrong.map(text).first), each)


def _allowed(rules: Term) -> Term:
    """Whether AWS accepts the value of a word whose key has a rule."""
    value = WORD_VALUE.cel
    number = f"{value}.matches('^[0-9]{{1,9}}$') && int(r.low) <= int({value}) && int({value}) <= int(r.high)"
    word = f"{value} != '' && {value} in r.words.split(' ')"
    return Term(
        f"[{rules.cel}[{_KEY.cel}]].exists(r, r.text == '' || ({word}) || ({number}))",
        lambda asked: rules.of(asked)[_KEY.of(asked)].allows(WORD_VALUE.of(asked)),
    )


def _refusals() -> Iterator[Refusal]:
    yield from _checked("attributes", words("attributes"), "attributes_of_load_balancers", "network load balancers")
    targets = ("attributes_of_target_groups", "network target groups")
    yield from _checked("target_group_attributes", words("target_group_attributes"), *targets)
    counting = _words(ITEM, _PORT_FAMILY).where(_KEY.is_("") | ~WORD_VALUE.is_(""))
    member = ITEM.split("-attributes.", 1)
    yield from _checked(say(f"{field('target_group_attributes')}.{{}}", member), counting, *targets, _OF_TARGETS)
    setting, listeners = say(f"{field(_LISTENER_FAMILY)}.{{}}", member), shared("listeners", _OF_LISTENERS)
    protocol, texts = member.split("-", 0), _words(ITEM, _LISTENER_FAMILY)
    yield Refusal(
        setting,
        ~protocol.is_("TCP") & texts.any,
        say("{} listeners have no attributes", protocol),
        "attributes only on TCP listeners",
        each=listeners,
    )
    yield from _checked(setting, texts, "attributes_of_listeners", "TCP listeners", listeners)


OF_ATTRIBUTES = tuple(_refusals())
