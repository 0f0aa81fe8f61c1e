"""What a Service's annotations may say to a cloud: one entry an annotation, and everything else is made from it.

The parser, the typed arguments of `LoadBalancerService`, the policies, the plan (what a change does) and
`docs/annotations.md` all read the same entries. Pure: no cloud, no cluster.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from cloud_controller import restrictions
from cloud_controller.cloud_errors import InvalidConfiguration

Value = str | int | bool | tuple[str, ...]
"""A parsed annotation."""

_LONGEST_NUMBER = 20
"""Characters; no field of any API holds a longer integer."""
_SHOWN = 100
"""Characters of a wrong value that an error quotes: an annotation may be as long as 256 KiB, an event 1 KiB."""
_COMPARED = 64
"""How many unknown names of one Service are compared with every name of ours. There may be thousands, and one Service's
author must not slow down all others; a chart for several clouds has fewer."""
_REMEMBERED = 4096
"""Comparisons whose result is kept: a Service is parsed several times a reconcile, and many have the same names."""


class Mutability(StrEnum):
    """What happens to a load balancer that exists when the annotation changes."""

    IN_PLACE = "in-place"
    """It is changed; connections and address stay."""
    REPLACE = "replace"
    """A new one takes its place: the address changes."""
    CREATE_ONLY = "create-only"
    """Nothing: only a load balancer that is made later gets the new value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One annotation of a cloud.

    `argument` is the name of the typed argument that stands for it, `sets` the field of the model that it decides
    (`scheme`, `listener.max_qps`, `pool.scheduler`, `health_check.port`). `type` is `str`, `int`, `bool` or `tuple`
    (comma-separated words). `minimum` and `maximum` are for `int`; `allowed`, or a regular expression `pattern` with
    `form` saying it in words, for `str`. `since` is the first version of this project that knows it, `source` the
    document that it comes from. `ignored` says why the cloud does not honour it, for one that is known but not offered.
    `any_case`: the allowed words are taken in any case. `true_words` and `false_words` are what `bool` takes besides
    its own words. `refused` says of values that people try why they can't be; of an entry that is ignored, these are
    the values that would restrict access, which can't be passed over. `honoured_by` names the other controllers
    that honour it, and since when. `exclusive`: no two load balancers can have what it names (addresses of one's own).
    `names`: the kind of resource that it names and somebody else keeps, one of `nameable.KINDS`.
    """

    name: str
    argument: str
    sets: str
    type: type[str] | type[int] | type[bool] | type[tuple[str, ...]]
    description: str
    applies_to: str
    mutability: Mutability
    since: str
    source: str
    default: Value | None = None
    default_note: str | None = None
    allowed: tuple[str, ...] = ()
    pattern: str | None = None
    form: str = "text"
    minimum: int | None = None
    maximum: int | None = None
    unit: str | None = None
    example: str | None = None
    ignored: str | None = None
    any_case: bool = False
    true_words: tuple[str, ...] = ()
    false_words: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    honoured_by: str | None = None
    exclusive: bool = False
    names: str | None = None

    @property
    def allowed_text(self) -> str:
        """What values it takes, in words."""
        if self.allowed:
            return ", ".join(self.allowed)
        if self.type is bool:
            also = (*self.true_words, *self.false_words)
            return "true, false" + (f" (also taken: {', '.join(also)})" if also else "")
        if self.type is int:
            bounds = f"an integer from {_number(self.minimum)} to {_number(self.maximum)}"
            return f"{bounds}, in {self.unit}" if self.unit else bounds
        return "words, comma-separated" if self.type is tuple else self.form

    def parse(self, text: str) -> Value:
        """The typed value of `text`; raises InvalidConfiguration that names annotation, value and what is allowed."""
        value = text.strip()
        if self.any_case:
            value = next((word for word in self.allowed if word.lower() == value.lower()), value)
        if self.type is bool:
            if value == "true" or value in self.true_words:
                return True
            if value == "false" or value in self.false_words:
                return False
        elif self.type is int:
            # int() would take "1_000", "+5" and other digits than ASCII's, which nobody else's parser does, and raise
            # ValueError for thousands of digits.
            if value.isascii() and value.removeprefix("-").isdigit() and len(value) <= _LONGEST_NUMBER:
                number = int(value)
                low, high = self.minimum, self.maximum
                if (low is None or number >= low) and (high is None or number <= high):
                    return number
        elif self.type is tuple:
            words = tuple(word.strip() for word in value.split(",") if word.strip())
            # Commas alone are a list that went wrong: without words, source ranges would let everybody in.
            if words or not value:
                return words
        elif value in self.allowed or (value and not self.allowed and re.fullmatch(self.pattern or ".+", value)):
            return value
        self.check_refused(text)
        raise InvalidConfiguration(f"annotation {self.name}", f"{_shown(text)} is not a value of it", self.allowed_text)

    def check_refused(self, text: str) -> None:
        """Raise InvalidConfiguration with the reason if `text` is one of the values in `refused`."""
        if why := self.refused.get(text.strip()):
            raise InvalidConfiguration(f"annotation {self.name}", f"{_shown(text)}: {why}", self.allowed_text)

    def to_text(self, value: Value) -> str:
        """The annotation's text for a typed value, checked as `parse` checks."""
        if isinstance(value, bool):
            text = "true" if value else "false"
        else:
            text = ",".join(value) if isinstance(value, tuple | list) else str(value)
        self.parse(text)
        return text


@dataclass(frozen=True, slots=True)
class Settings:
    """The annotations of one Service, parsed: `given` by argument name, those left out not in it.

    `ignored` are entries that the Service sets and the cloud does not honour.
    """

    catalogue: Catalogue
    given: Mapping[str, Value]
    ignored: tuple[Annotation, ...] = ()

    def text(self, argument: str) -> str | None:
        """The value given or the default, for an entry of type `str`."""
        value = self._value(argument)
        return None if value is None else str(value)

    def flag(self, argument: str) -> bool:
        """Whether an entry of type `bool` is given or defaults to true."""
        return self._value(argument) is True

    def number(self, argument: str) -> int | None:
        """The value given or the default, for an entry of type `int`."""
        value = self._value(argument)
        if value is None or isinstance(value, int):
            return value
        raise TypeError(f"{argument} is no number in the catalogue")

    def integer(self, argument: str) -> int:
        """As `number`, for an entry that has a default."""
        value = self.number(argument)
        if value is None:
            raise TypeError(f"{argument} has no default in the catalogue")
        return value

    def _value(self, argument: str) -> Value | None:
        return self.given.get(argument, self.catalogue.by_argument[argument].default)


@dataclass(frozen=True)
class Catalogue:
    """The annotations of one cloud. Everything that begins with one of `prefixes` is the cloud's own."""

    cloud: str
    prefixes: tuple[str, ...]
    entries: tuple[Annotation, ...]
    by_name: Mapping[str, Annotation] = field(init=False, repr=False, compare=False)
    by_argument: Mapping[str, Annotation] = field(init=False, repr=False, compare=False)
    _domains: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for attribute, keys in (("by_name", "name"), ("by_argument", "argument")):
            index = {getattr(entry, keys): entry for entry in self.entries}
            if len(index) != len(self.entries):
                raise ValueError(f"the catalogue of {self.cloud} has two entries of one {keys}")
            object.__setattr__(self, attribute, index)
        object.__setattr__(self, "_domains", frozenset(map(_domain, self.by_name)))

    def __iter__(self) -> Iterator[Annotation]:
        return iter(self.entries)

    def parse(self, annotations: Mapping[str, str] | None) -> Settings:
        """A Service's annotations as typed values; those of others are passed over.

        Raises InvalidConfiguration for a value that is not allowed, for a name that is unknown but the cloud's
        (or all but spelt like one of its names), with the nearest name, and for a name of others that restricts access.
        Of thousands of names of others, which share the domain, not all are compared with the cloud's.
        """
        given: dict[str, Value] = {}
        ignored: list[Annotation] = []
        others: dict[str, str] = {}
        for name, text in sorted((annotations or {}).items()):
            entry = self.by_name.get(name)
            if entry is None and name.startswith(self.prefixes):
                raise self._not_known(name)
            if entry is None:
                others[name] = text
            elif entry.ignored:
                entry.check_refused(text)
                ignored.append(entry)
            else:
                given[entry.argument] = entry.parse(text)
        known = tuple(self.by_name)
        # Other clouds' annotations share the domain, so outside our prefixes only a near miss counts.
        for name in [each for each in others if _domain(each) in self._domains][:_COMPARED]:
            if _nearest(name, known, 0.93):
                raise self._not_known(name)
        schemes = [given.get(entry.argument) for entry in self.entries if entry.sets == "scheme"]
        restrictions.refuse_unknown(others, internal=True in schemes or "internal" in schemes)
        return Settings(self, given, tuple(ignored))

    def value(self, annotations: Mapping[str, str] | None, argument: str) -> Value | None:
        """One annotation's value or default, whatever the others say; None where the cloud has no such argument.

        Raises InvalidConfiguration as `parse` does.
        """
        entry = self.by_argument.get(argument)
        if entry is None:
            return None
        text = (annotations or {}).get(entry.name)
        return entry.default if text is None else entry.parse(text)

    def annotations(self, arguments: Mapping[str, Value]) -> dict[str, str]:
        """The annotations that typed arguments stand for; raises InvalidConfiguration as `parse` does."""
        texts: dict[str, str] = {}
        for argument, value in sorted(arguments.items()):
            entry = self.by_argument.get(argument)
            if entry is None:
                raise InvalidConfiguration(argument, _unknown(argument, self.by_argument, self.cloud))
            texts[entry.name] = entry.to_text(value)
        return texts

    def replacing(
        self, before: Mapping[str, str], after: Mapping[str, str]
    ) -> list[tuple[Annotation, Value | None, Value | None]]:
        """The entries whose change from `before` to `after` replaces the load balancer, each with both values.

        One with a value that is not allowed changes nothing: whoever parses the Service refuses it.
        """
        found = []
        for entry in self.entries:
            if entry.mutability is Mutability.REPLACE and before.get(entry.name) != after.get(entry.name):
                with suppress(InvalidConfiguration):
                    was, will_be = self.value(before, entry.argument), self.value(after, entry.argument)
                    if was != will_be:
                        found.append((entry, was, will_be))
        return found

    def mutability(self, sets: str) -> Mutability:
        """What a change of this field of the model does; fields without an entry are changed in place."""
        return next((entry.mutability for entry in self.entries if entry.sets == sets), Mutability.IN_PLACE)

    @property
    def exclusive(self) -> tuple[str, ...]:
        """The fields of the model whose words only one load balancer at a time can have."""
        return tuple(entry.sets for entry in self.entries if entry.exclusive)

    def _not_known(self, name: str) -> InvalidConfiguration:
        return InvalidConfiguration(f"annotation {name}", _unknown(name, self.by_name, self.cloud))


def _domain(name: str) -> str:
    return name.partition("/")[0]


def _unknown(name: str, known: Iterable[str], cloud: str) -> str:
    nearest = _nearest(name, tuple(known), 0.4)
    return f"{cloud} does not know it" + (f"; did you mean {nearest}?" if nearest else "")


@lru_cache(_REMEMBERED)
def _nearest(name: str, known: tuple[str, ...], cutoff: float) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=cutoff)), None)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _number(value: int | None) -> str:
    return "any" if value is None else f"{value:,}"
