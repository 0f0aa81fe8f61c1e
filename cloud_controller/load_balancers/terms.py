"""What rules about Services are made of: terms with a value here, and the same in CEL for the API server. Pure.

A term of an annotation reads variables that the admission policy defines (`service_admission.py`): `has_ARGUMENT`,
whether the Service sets it, and `value_ARGUMENT`, its value or default; `port_keys` are those of `PORT_KEYS`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cloud_controller import patterns
from cloud_controller.load_balancers.settings import Settings


@dataclass(frozen=True, slots=True)
class Asked:
    """What a Service asks for, and the item of a list at which a rule looks."""

    settings: Settings
    spec: Mapping[str, Any]
    item: Any = None
    _found: dict[Term, Any] = field(default_factory=dict, compare=False, repr=False)

    def of_item(self, item: Any) -> Asked:
        """The same, at another item."""
        return Asked(self.settings, self.spec, item, self._found)

    def once(self, term: Term) -> Any:
        """The value of a term that does not depend on the item: found once, however many items ask for it."""
        if term not in self._found:
            self._found[term] = term.of(self)
        return self._found[term]


@dataclass(frozen=True, slots=True)
class Term:
    """A value: `of` what a Service asks for, and as an expression in `cel`. Both must say the same."""

    cel: str
    of: Callable[[Asked], Any]

    def __and__(self, other: Term) -> Term:
        return Term(f"({self.cel} && {other.cel})", lambda asked: self.of(asked) and other.of(asked))

    def __or__(self, other: Term) -> Term:
        return Term(f"({self.cel} || {other.cel})", lambda asked: self.of(asked) or other.of(asked))

    def __invert__(self) -> Term:
        return Term(f"!({self.cel})", lambda asked: not self.of(asked))

    def is_(self, *values: str) -> Term:
        """Whether it is one of these texts."""
        return Term(f"({self.cel} in {literal(values)})", lambda asked: self.of(asked) in values)

    def above(self, other: Term | int) -> Term:
        """Whether the number is higher."""
        than = Term(str(other), lambda _: other) if isinstance(other, int) else other
        return Term(f"({self.cel} > {than.cel})", lambda asked: self.of(asked) > than.of(asked))

    def same(self, other: Term) -> Term:
        """Whether it is the value of the other term."""
        return Term(f"({self.cel} == {other.cel})", lambda asked: self.of(asked) == other.of(asked))

    def matches(self, pattern: str) -> Term:
        """Whether the whole text matches this pattern."""
        cel = f"{self.cel}.matches({literal(f'^(?:{pattern})$')})"
        return Term(cel, lambda asked: patterns.is_whole(pattern, self.of(asked)))

    def only_of(self, categories: str, others: str) -> Term:
        """Whether it has only characters of these Unicode categories (`L`: letters, `N`: digits) and these others."""
        classes = "".join(rf"\p{{{each}}}" for each in categories) + re.escape(others)
        cel = f"{self.cel}.matches({literal(f'^[{classes}]*$')})"
        return Term(cel, lambda a: all(unicodedata.category(c)[0] in categories or c in others for c in self.of(a)))

    @property
    def once(self) -> Term:
        """The same, where it does not depend on the item of another list."""
        return Term(self.cel, lambda asked: asked.once(self))

    def within(self, items: Term) -> Term:
        """Whether the list has it, which does not depend on the item of another."""
        every = Term(items.cel, lambda asked: frozenset(items.of(asked)))
        return Term(f"({self.cel} in {items.cel})", lambda asked: self.of(asked) in asked.once(every))

    @property
    def lower(self) -> Term:
        """The text with A to Z in lower case."""
        return Term(f"{self.cel}.lowerAscii()", lambda asked: patterns.lower(self.of(asked)))

    def split(self, separator: str, index: int) -> Term:
        """One of the text's parts, without spaces around it; '' without."""
        cel = f"({self.cel}.split('{separator}') + ['', '', '', ''])[{index}].trim()"
        return Term(cel, lambda asked: [*self.of(asked).split(separator), "", "", "", ""][index].strip())

    def start(self, length: int) -> Term:
        """The text's first characters."""
        cel = f"({self.cel}.size() > {length} ? {self.cel}.substring(0, {length}) : {self.cel})"
        return Term(cel, lambda asked: self.of(asked)[:length])

    @property
    def number(self) -> Term:
        """The number that the text is; only after a check that it is one."""
        return Term(f"int({self.cel})", lambda asked: int(self.of(asked)))

    @property
    def size(self) -> Term:
        """How many items the list has, or characters the text."""
        return Term(f"{self.cel}.size()", lambda asked: len(self.of(asked)))

    @property
    def any(self) -> Term:
        """Whether the list has items."""
        return self.size.above(0)

    @property
    def first(self) -> Term:
        """The list's first item; only after a check that there is one."""
        return Term(f"{self.cel}[0]", lambda asked: self.of(asked)[0])

    @property
    def joined(self) -> Term:
        """The list's texts, separated by commas."""
        return Term(f"{self.cel}.join(', ')", lambda asked: ", ".join(self.of(asked)))

    def where(self, when: Term) -> Term:
        """The list's items for which `when` holds, a term of `ITEM`."""
        cel = f"{self.cel}.filter(item, {when.cel})"
        return Term(cel, lambda asked: [each.item for each in self.each(asked) if when.of(each)])

    def map(self, to: Term) -> Term:
        """A term of `ITEM` for each of the list's items."""
        return Term(f"{self.cel}.map(item, {to.cel})", lambda asked: [to.of(each) for each in self.each(asked)])

    @property
    def repeated(self) -> Term:
        """The list's items that it has several times."""
        cel = f"{self.cel}.filter(item, {self.cel}.indexOf(item) != {self.cel}.lastIndexOf(item))"

        def found(asked: Asked) -> list[Any]:
            counts = Counter(items := self.of(asked))
            return [each for each in items if counts[each] > 1]

        return Term(cel, found)

    def each(self, asked: Asked) -> Iterator[Asked]:
        """What the Service asks for, with each of the list's items."""
        return (asked.of_item(item) for item in self.of(asked))


@dataclass(frozen=True, slots=True)
class Saying:
    """A sentence with the values of terms in place of each `{}`; what may hold any character is in quotes: `'{}'`."""

    template: str
    terms: tuple[Term, ...] = ()

    @property
    def cel(self) -> str:
        """The sentence in CEL."""
        first, *rest = map(literal, self.template.split("{}"))
        return " + ".join([first, *(f"string({t.cel}) + {text}" for t, text in zip(self.terms, rest, strict=True))])

    @property
    def term(self) -> Term:
        """The sentence as a value."""
        return Term(f"({self.cel})", self.of)

    def of(self, asked: Asked) -> str:
        """The sentence for what a Service asks for."""
        # As in other errors, control characters are escaped; CEL cannot do that.
        return self.template.replace("'{}'", "{!r}").format(*(str(term.of(asked)) for term in self.terms))


def say(template: str, *terms: Term) -> Saying:
    """A sentence with the values of these terms."""
    return Saying(template, terms)


def literal(value: str | int | bool | tuple[str, ...]) -> str:
    """A literal of CEL, whose escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False)


def shared(name: str, term: Term) -> Term:
    """A term that the policy evaluates once, as a variable; `Catalogue.shared` lists it under this name."""
    return Term(f"variables.{name}", term.of)


ALWAYS = Term("true", lambda _: True)


def choice(when: Term, then: int, otherwise: int) -> Term:
    """One of two numbers."""
    return Term(f"({when.cel} ? {then} : {otherwise})", lambda asked: then if when.of(asked) else otherwise)


def one(item: Term) -> Term:
    """A list with this item."""
    return Term(f"[{item.cel}]", lambda asked: [item.of(asked)])


# ------------------------------------------------------------------------------------------------------ annotations


def given(argument: str) -> Term:
    """Whether the Service sets the annotation."""
    return Term(f"variables.has_{argument}", lambda asked: argument in asked.settings.given)


def text(argument: str) -> Term:
    """The value or default of an annotation; '' without."""
    return Term(f"variables.value_{argument}", lambda asked: asked.settings.text(argument) or "")


def number(argument: str, default: int | None = None) -> Term:
    """The value of an annotation, or its default; `default`: for one without a default in the catalogue."""
    cel = f"variables.value_{argument}"
    if default is not None:
        cel = f"(variables.has_{argument} ? {cel} : {default})"

    def found(asked: Asked) -> int:
        value = asked.settings.number(argument)
        return (default or 0) if value is None else value

    return Term(cel, found)


def flag(argument: str) -> Term:
    """Whether an annotation is true, by value or default."""
    return Term(f"variables.value_{argument}", lambda asked: asked.settings.flag(argument))


def words(argument: str) -> Term:
    """The words of a list annotation."""

    def found(asked: Asked) -> tuple[str, ...]:
        value = asked.settings.given.get(argument)
        return value if isinstance(value, tuple) else ()

    return Term(f"variables.value_{argument}", found)


# ------------------------------------------------------------------------------------------------------- the spec


def spec(field: str) -> Term:
    """A text of the spec; '' without."""
    return Term(
        f"(has(object.spec.{field}) ? object.spec.{field} : '')", lambda asked: str(asked.spec.get(field) or "")
    )


FIRST_FAMILY = Term(
    "(has(object.spec.ipFamilies) ? object.spec.ipFamilies + ['IPv4'] : ['IPv4'])[0]",
    lambda asked: (asked.spec.get("ipFamilies") or ["IPv4"])[0],
)
"""The family of the Service's first cluster address, which its backends have."""
PORTS = Term("object.spec.ports", lambda asked: asked.spec.get("ports") or [])
PORT_KEYS = Term(
    "variables.port_keys",
    lambda asked: [f"{port['protocol']}:{port['port']}" for port in asked.spec.get("ports") or []],
)
"""Each port as PROTOCOL:PORT."""

# ------------------------------------------------------------------------------------------------ items of a list

ITEM = Term("item", lambda asked: asked.item)


def part(index: int, separator: str = ":") -> Term:
    """One of the parts of a word, without spaces around it; '' without."""
    return ITEM.split(separator, index)


WORD_VALUE = Term("(item.split('=', 2) + [''])[1].trim()", lambda asked: asked.item.partition("=")[2].strip())
"""What a word of the form key=value has after the first `=`; '' without."""
PORT = Term("item.port", lambda asked: asked.item["port"])
PORT_NUMBER = Term("string(item.port)", lambda asked: str(asked.item["port"]))
"""The same as a text."""
PROTOCOL = Term("item.protocol", lambda asked: asked.item["protocol"])
INDEX = Term("object.spec.ports.indexOf(item)", lambda asked: asked.spec["ports"].index(asked.item))
"""Where in `spec.ports` the port is."""
HAS_NODE_PORT = Term("has(item.nodePort)", lambda asked: bool(asked.item.get("nodePort")))
