"""The catalogue of a cloud's Service annotations: the single source for everything about them. Pure.

The parser, the typed arguments of `LoadBalancerService`, the policies, the plan (effect of a change) and
`docs/annotations.md` all read its entries.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers import restrictions
from cloud_controller.load_balancers.annotation import Annotation, Mutability, Value
from cloud_controller.load_balancers.nameable import Naming
from cloud_controller.load_balancers.refusals import Refusal
from cloud_controller.load_balancers.settings import Settings
from cloud_controller.load_balancers.terms import Term

__all__ = ["Annotation", "Catalogue", "Check", "Mutability", "Value"]

_COMPARED = 64
"""How many unknown names of one Service are checked for typos. The limit keeps one Service with thousands of
annotations from slowing down all others; a chart that supports several clouds has fewer."""
_REMEMBERED = 4096
"""Cached typo checks: each reconcile parses a Service several times, and many Services have the same names."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check of one annotation. `entry`: None for a name that the catalogue does not have.

    `run` returns the value, or None where nothing is set or the cloud does not support it; raises InvalidConfiguration.
    """

    name: str
    entry: Annotation | None
    run: Callable[[], Value | None]


@dataclass(frozen=True)
class Catalogue:
    """The annotations of one cloud. Every name with one of `prefixes` belongs to the cloud.

    A cloud whose kinds of load balancers differ in annotations or defaults has a catalogue for each `kind`, with the
    `spec.loadBalancerClass` values (None: no class) that select it, and one of all (`joined`). What concerns one
    Service asks `of_class` for its kind's. `empty_is_unset`: an annotation without text is as if it were not there,
    unless the empty text is a value of it (one of its `harmless`). `refusals`: the rules about several settings, which
    `refusals.refuse` checks. `shared`: what several of them need, by the name of its variable in the admission policy.
    `namings`: the annotations that name existing resources. `exclusive_by_spec`: the exclusive model fields that no
    annotation sets, each with the Service's field that does.
    """

    cloud: str
    prefixes: tuple[str, ...]
    entries: tuple[Annotation, ...]
    kind: str = ""
    classes: tuple[str | None, ...] = ()
    kinds: tuple[Catalogue, ...] = ()
    empty_is_unset: bool = False
    refusals: tuple[Refusal, ...] = ()
    shared: Mapping[str, Term] = field(default_factory=dict)
    namings: tuple[Naming, ...] = ()
    exclusive_by_spec: Mapping[str, str] = field(default_factory=dict)
    by_name: Mapping[str, Annotation] = field(init=False, repr=False, compare=False)
    by_argument: Mapping[str, Annotation] = field(init=False, repr=False, compare=False)
    _domains: frozenset[str] = field(init=False, repr=False, compare=False)
    _families: tuple[Annotation, ...] = field(init=False, repr=False, compare=False)
    _may_be_empty: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [(name, entry) for entry in self.entries for name in (entry.name, *entry.aliases)]
        arguments = [(entry.argument, entry) for entry in self.entries]
        for attribute, pairs in (("by_name", names), ("by_argument", arguments)):
            index = dict(pairs)
            if len(index) != len(pairs):
                raise ValueError(f"catalogue {self.cloud}: duplicate {attribute.removeprefix('by_')}")
            object.__setattr__(self, attribute, index)
        object.__setattr__(self, "_domains", frozenset(map(_domain, self.by_name)))
        object.__setattr__(self, "_families", tuple(entry for entry in self.entries if entry.suffix))
        may_be_empty = (name for name, entry in names if "" in entry.harmless and not entry.ignored)
        object.__setattr__(self, "_may_be_empty", frozenset(may_be_empty))

    @classmethod
    def joined(cls, *kinds: Catalogue) -> Catalogue:
        """The catalogue of a cloud with these kinds of load balancers; its own entries are those of any kind.

        In each kind's catalogue, an annotation that only other kinds have is an ignored entry that says so. Raises
        ValueError if kinds disagree on what an annotation is.
        """
        entries: dict[str, Annotation] = {}
        for entry in sorted((entry for kind in kinds for entry in kind), key=lambda each: bool(each.ignored)):
            known = entries.setdefault(entry.name, entry)
            if (known.argument, known.type, known.aliases) != (entry.argument, entry.type, entry.aliases):
                raise ValueError(f"catalogue {entry.name}: kinds differ in argument, type or aliases")
        every = tuple(entries.values())
        return cls(
            kinds[0].cloud,
            kinds[0].prefixes,
            every,
            kinds=tuple(_of_kind(kind, every, kinds) for kind in kinds),
            empty_is_unset=kinds[0].empty_is_unset,
        )

    def of_class(self, load_balancer_class: str | None) -> Catalogue:
        """The catalogue for Services of this class; the whole one for a class that selects no kind."""
        return next((kind for kind in self.kinds if load_balancer_class in kind.classes), self)

    def __iter__(self) -> Iterator[Annotation]:
        return iter(self.entries)

    def parse(self, annotations: Mapping[str, str] | None) -> Settings:
        """Parse a Service's annotations into typed values; unrelated annotations are skipped.

        Raises InvalidConfiguration for an invalid value, for an unknown name with one of the cloud's prefixes or a
        near miss of one of its names, and for another cloud's annotation that restricts access. Checks only the first
        `_COMPARED` unknown names for near misses.
        """
        texts = self.meant(annotations)
        given: dict[str, Value] = {}
        ignored: list[Annotation] = []
        for check in self.checks(texts):
            value = check.run()
            if check.entry is None:
                continue
            if check.entry.ignored:
                ignored.append(check.entry)
            elif value is not None:
                given[check.entry.argument] = value
        others = {name: text for name, text in texts.items() if self.entry(name) is None}
        restrictions.refuse_unknown(others, internal=self.is_internal(given))
        return self.settings(given, ignored)

    def settings(self, given: Mapping[str, Value], ignored: Iterable[Annotation] = ()) -> Settings:
        """The settings of a Service with these values, by argument."""
        return Settings(self.by_argument, given, tuple(ignored), self.kind)

    def checks(self, annotations: Mapping[str, str]) -> Iterator[Check]:
        """What `parse` checks of each annotation by itself: unknown names, then values, then near misses.

        A check reads no other annotation, so a caller may run each whatever becomes of the others.
        """
        set_here: dict[str, Annotation] = {}
        others: list[str] = []
        for name in sorted(annotations):
            entry = self.entry(name)
            if entry is not None:
                set_here[entry.argument] = entry
            elif name.startswith(self.prefixes):
                yield Check(name, None, partial(self._refuse_name, name, annotations))
            else:
                others.append(name)
        for entry in set_here.values():
            yield Check(entry.name, entry, partial(self._value_of, entry, annotations))
        # Other clouds' annotations share the domain, so only a near miss is an error outside our prefixes.
        known = tuple(self.by_name)
        for name in [each for each in others if _domain(each) in self._domains][:_COMPARED]:
            if _nearest(name, known, 0.93):
                yield Check(name, None, partial(self._refuse_name, name, annotations))

    def is_internal(self, given: Mapping[str, Value]) -> bool:
        """Whether these values, by argument, make the load balancer internal."""
        schemes = {given.get(entry.argument) for entry in self.entries if entry.sets in restrictions.SCHEMES}
        return not schemes.isdisjoint({True, *restrictions.INTERNAL_VALUES})

    def meant(self, annotations: Mapping[str, str] | None) -> Mapping[str, str]:
        """The annotations without those that count as unset."""
        if not self.empty_is_unset:
            return annotations or {}
        return {name: text for name, text in (annotations or {}).items() if self._is_set(name, text)}

    def entry(self, name: str) -> Annotation | None:
        """The entry with this name, or the member of a family."""
        found = self.by_name.get(name)
        if found is not None and found.suffix is None:
            return found
        return next((member for family in self._families if (member := family.member_named(name)) is not None), None)

    def of_argument(self, argument: str) -> Annotation:
        """The entry of this key of `Settings.given`, which may be a member of a family. Raises KeyError."""
        stem, _, suffix = argument.partition(".")
        return self.by_argument[stem].member(suffix) if suffix else self.by_argument[stem]

    def value(self, annotations: Mapping[str, str] | None, argument: str) -> Value | None:
        """The value or default of one annotation, regardless of the others; None if the cloud has no such argument.

        Raises InvalidConfiguration like `parse`.
        """
        entry = self.by_argument.get(argument)
        if entry is None:
            return None
        text = entry.text_in(self.meant(annotations))
        return entry.default if text is None else entry.parse(text)

    def annotations(self, arguments: Mapping[str, Value | Mapping[str, Value]]) -> dict[str, str]:
        """The annotations for typed arguments. Raises InvalidConfiguration like `parse`."""
        texts: dict[str, str] = {}
        for argument, value in sorted(arguments.items()):
            entry = self.by_argument.get(argument)
            if entry is None:
                raise InvalidConfiguration(argument, _unknown(argument, self.by_argument, self.cloud))
            for each, of in entry.given(value):
                texts[each.name] = each.to_text(of)
        return texts

    def readdressing(
        self, before: Mapping[str, str], after: Mapping[str, str], of_class: str | None = None
    ) -> list[tuple[Annotation, Value | None, Value | None]]:
        """The entries whose change from `before` to `after` costs the Service an address, with both values.

        It replaces the load balancer, or (`moves`) may take addresses away in place. `of_class`: the Service's
        `spec.loadBalancerClass`, which affects some defaults. Invalid values are skipped: `parse` rejects them.
        """
        found = []
        for entry in self.entries:
            if self.readdresses(entry):
                with suppress(InvalidConfiguration):
                    was, will_be = (_effective(entry, self.meant(each), of_class) for each in (before, after))
                    if was != will_be and not self._keeps_addresses(entry, will_be, was):
                        found.append((entry, was, will_be))
        return found

    def readdresses(self, entry: Annotation) -> bool:
        """Whether a change of the annotation may cost the Service an address."""
        return entry.mutability is Mutability.REPLACE or entry.sets in self.moving

    def _keeps_addresses(self, entry: Annotation, after: Value | None, before: Value | None) -> bool:
        """As `keeps_addresses`; a default that only the cloud knows may be any of the allowed values."""
        if entry.mutability is Mutability.REPLACE:
            return False
        possible = entry.allowed if before is None else (before,)
        return bool(possible) and all(
            each == after or self.keeps_addresses(entry.sets, after, each) for each in possible
        )

    def mutability(self, sets: str) -> Mutability:
        """What a change of this model field does; fields without an entry are changed in place."""
        return next((entry.mutability for entry in self.entries if entry.sets == sets), Mutability.IN_PLACE)

    @property
    def exclusive(self) -> Mapping[str, str]:
        """The model fields whose values only one load balancer at a time can have, with what sets them."""
        by_annotation = {name: f"annotation {entry.name}" for entry in self.entries for name in entry.exclusive}
        return {**by_annotation, **self.exclusive_by_spec}

    @property
    def moving(self) -> frozenset[str]:
        """The model fields, or families of them, whose change in place gives clients other addresses."""
        return frozenset(name for entry in self.entries for name in entry.moves)

    def keeps_addresses(self, field: str, after: object, before: object) -> bool:
        """Whether a moving field (or family) with the value `after` leaves clients every address that `before` gave."""
        if isinstance(after, tuple) and isinstance(before, tuple):
            return {*after} >= {*before}
        was, will_be = str(before).lower(), str(after).lower()
        return any(was in entry.keeps.get(will_be, ()) for entry in self.entries if field in entry.moves)

    def _is_set(self, name: str, text: str) -> bool:
        return not self.empty_is_unset or bool(text.strip()) or name in self._may_be_empty

    def _refuse_name(self, name: str, annotations: Mapping[str, str]) -> None:
        if self._is_set(name, annotations[name]):
            raise InvalidConfiguration(f"annotation {name}", _unknown(name, self.by_name, self.cloud))

    def _value_of(self, entry: Annotation, annotations: Mapping[str, str]) -> Value | None:
        names = (name for name in (entry.name, *entry.aliases) if name in annotations)
        text = entry.text_in({name: annotations[name] for name in names if self._is_set(name, annotations[name])})
        if text is None:
            return None
        if entry.ignored:
            entry.check_refused(text)
            return None
        return entry.parse(text)


def _effective(entry: Annotation, annotations: Mapping[str, str], of_class: str | None) -> Value | None:
    text = entry.text_in(annotations)
    return entry.default_of_class.get(of_class, entry.default) if text is None else entry.parse(text)


def _of_kind(kind: Catalogue, every: Iterable[Annotation], kinds: Iterable[Catalogue]) -> Catalogue:
    others = []
    for entry in every:
        if entry.name not in kind.by_name:
            have_it = " and ".join(each.kind for each in kinds if entry.name in each.by_name)
            others.append(replace(entry, ignored=entry.ignored or f"only {have_it} load balancers have it"))
    return replace(kind, entries=(*kind.entries, *others))


def _domain(name: str) -> str:
    return name.partition("/")[0]


def _unknown(name: str, known: Iterable[str], cloud: str) -> str:
    nearest = _nearest(name, tuple(known), 0.4)
    return f"unknown on {cloud}" + (f"; did you mean {nearest}?" if nearest else "")


@lru_cache(_REMEMBERED)
def _nearest(name: str, known: tuple[str, ...], cutoff: float) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=cutoff)), None)
