"""What a Service's annotations may say to a cloud: one entry an annotation, and everything else is made from it.

The parser, the typed arguments of `LoadBalancerService`, the policies, the plan (what a change does) and
`docs/annotations.md` all read the same entries. Pure: no cloud, no cluster.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers import restrictions
from cloud_controller.load_balancers.annotation import Annotation, Mutability, Value, member_argument

__all__ = ["Annotation", "Catalogue", "Mutability", "Settings", "Value"]

_COMPARED = 64
"""How many unknown names of one Service are compared with every name of ours. There may be thousands, and one Service's
author must not slow down all others; a chart for several clouds has fewer."""
_REMEMBERED = 4096
"""Comparisons whose result is kept: a Service is parsed several times a reconcile, and many have the same names."""


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

    def members(self, argument: str) -> dict[str, Value]:
        """What is given of a family, by suffix."""
        stem = member_argument(argument, "")
        return {name.removeprefix(stem): value for name, value in self.given.items() if name.startswith(stem)}

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
    _families: tuple[Annotation, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for attribute, keys in (("by_name", "name"), ("by_argument", "argument")):
            index = {getattr(entry, keys): entry for entry in self.entries}
            if len(index) != len(self.entries):
                raise ValueError(f"the catalogue of {self.cloud} has two entries of one {keys}")
            object.__setattr__(self, attribute, index)
        object.__setattr__(self, "_domains", frozenset(map(_domain, self.by_name)))
        object.__setattr__(self, "_families", tuple(entry for entry in self.entries if entry.suffix))

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
            entry = self.entry(name)
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

    def entry(self, name: str) -> Annotation | None:
        """The entry of this name; of a family, the member that has it."""
        found = self.by_name.get(name)
        if found is not None and found.suffix is None:
            return found
        return next((member for family in self._families if (member := family.member_named(name)) is not None), None)

    def of_argument(self, argument: str) -> Annotation:
        """The entry that this argument of `Settings` stands for, be it a member of a family; KeyError for none."""
        stem, _, suffix = argument.partition(".")
        return self.by_argument[stem].member(suffix) if suffix else self.by_argument[stem]

    def value(self, annotations: Mapping[str, str] | None, argument: str) -> Value | None:
        """One annotation's value or default, whatever the others say; None where the cloud has no such argument.

        Raises InvalidConfiguration as `parse` does.
        """
        entry = self.by_argument.get(argument)
        if entry is None:
            return None
        text = (annotations or {}).get(entry.name)
        return entry.default if text is None else entry.parse(text)

    def annotations(self, arguments: Mapping[str, Value | Mapping[str, Value]]) -> dict[str, str]:
        """The annotations that typed arguments stand for; raises InvalidConfiguration as `parse` does."""
        texts: dict[str, str] = {}
        for argument, value in sorted(arguments.items()):
            entry = self.by_argument.get(argument)
            if entry is None:
                raise InvalidConfiguration(argument, _unknown(argument, self.by_argument, self.cloud))
            for each, of in entry.given(value):
                texts[each.name] = each.to_text(of)
        return texts

    def replacing(
        self, before: Mapping[str, str], after: Mapping[str, str], of_class: str | None = None
    ) -> list[tuple[Annotation, Value | None, Value | None]]:
        """The entries whose change from `before` to `after` replaces the load balancer, each with both values.

        `of_class` is the Service's `spec.loadBalancerClass`, which decides some defaults.
        One with a value that is not allowed changes nothing: whoever parses the Service refuses it.
        """
        found = []
        for entry in self.entries:
            if entry.mutability is Mutability.REPLACE and before.get(entry.name) != after.get(entry.name):
                with suppress(InvalidConfiguration):
                    was, will_be = (_effective(entry, each, of_class) for each in (before, after))
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


def _effective(entry: Annotation, annotations: Mapping[str, str], of_class: str | None) -> Value | None:
    text = annotations.get(entry.name)
    return entry.default_of_class.get(of_class, entry.default) if text is None else entry.parse(text)


def _domain(name: str) -> str:
    return name.partition("/")[0]


def _unknown(name: str, known: Iterable[str], cloud: str) -> str:
    nearest = _nearest(name, tuple(known), 0.4)
    return f"{cloud} does not know it" + (f"; did you mean {nearest}?" if nearest else "")


@lru_cache(_REMEMBERED)
def _nearest(name: str, known: tuple[str, ...], cutoff: float) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=cutoff)), None)
