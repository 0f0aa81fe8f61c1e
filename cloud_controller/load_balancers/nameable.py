"""The administrator's list of existing resources that annotations of Services may name. Pure.

With entries for a kind, annotations may name only resources that match one of them. Without entries, they may name any
resource that the cloud does not show to belong to someone else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers.refusals import Refusal
from cloud_controller.load_balancers.settings import Settings
from cloud_controller.load_balancers.terms import ALWAYS, ITEM, Asked, Term, say
from cloud_controller.patterns import glob, is_whole

KINDS = (
    *("access-control-list", "bandwidth-package", "certificate", "elastic-ip", "floating-ip", "log-bucket"),
    *("log-prefix", "network", "port", "prefix-list", "resource-group", "security-group", "subnet", "tls-policy"),
)
WITH_TAGS = ("security-group", "subnet")
"""The kinds that support tag entries."""

OPTION = "--annotations-may-name"
_ANYTHING = "any"
_BY_TAG = "tag:"
_NOT_ALLOWED = f"is not allowed by {OPTION}"


@dataclass(frozen=True, slots=True)
class Naming:
    """How an annotation names existing resources: part of a cloud's catalogue.

    - `argument`: of the annotation, or the field of the spec (`spec.…`). `items`: the list of what it names.
    - `when`: whether it has that effect.
    - `only_name`: whether the API server knows that it names just this; other names, and what the cloud config makes
      of it, it does not.
    """

    kind: str
    argument: str
    items: Term
    when: Term = ALWAYS
    only_name: Term = ALWAYS


@dataclass(frozen=True, slots=True)
class Named:
    """An existing resource that an annotation names.

    - `names`: its id and other names.
    - `whose`: the evidence that it belongs to someone else, if there is any.
    - `tags`: its tags; needed only if an entry matches tags (see `Nameable.kinds_by_tag`).
    """

    kind: str
    field: str
    names: tuple[str, ...]
    whose: str | None = None
    tags: Mapping[str, str] = dataclass_field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Nameable:
    """The list, as pairs of kind and pattern. `anything`: no restrictions."""

    listed: tuple[tuple[str, str], ...] = ()
    anything: bool = False

    @classmethod
    def parse(cls, entries: Iterable[str]) -> Nameable:
        """Parse entries KIND=PATTERN and KIND=tag:KEY=VALUE, or the single word `any`. Raises ValueError."""
        given = [entry.strip() for entry in entries if entry.strip()]
        if given == [_ANYTHING]:
            return cls(anything=True)
        listed = []
        for entry in given:
            kind, equals, pattern = entry.partition("=")
            if kind not in KINDS or not equals:
                kinds = ", ".join(KINDS)
                raise ValueError(f"{entry!r} is not KIND=PATTERN, KIND=tag:KEY=VALUE or {_ANYTHING}; kinds: {kinds}")
            if pattern.startswith(_BY_TAG) and kind not in WITH_TAGS:
                raise ValueError(f"{entry!r}: only {' and '.join(WITH_TAGS)} can be matched by tags")
            is_whole(glob(pattern.removeprefix(_BY_TAG)), "")  # Raises ValueError for what is no pattern.
            listed.append((kind, pattern))
        return cls(tuple(listed))

    @property
    def kinds_by_tag(self) -> frozenset[str]:
        """The kinds with entries that match tags."""
        return frozenset(kind for kind, pattern in self.listed if pattern.startswith(_BY_TAG))

    def require(self, named: Iterable[Named]) -> None:
        """Raise InvalidConfiguration for the first resource that annotations may not name."""
        for each in () if self.anything else named:
            patterns = [pattern for kind, pattern in self.listed if kind == each.kind]
            if patterns and not any(_matches(pattern, each) for pattern in patterns):
                raise InvalidConfiguration(
                    each.field, f"{each.names[0]!r} {_NOT_ALLOWED}", _listed(each.kind, patterns)
                )
            if not patterns and each.whose:
                allowed = f"one that does not belong to others, or {each.kind}={each.names[0]} in {OPTION}"
                raise InvalidConfiguration(each.field, f"{each.names[0]!r} {each.whose}", allowed)

    def refusals(self, namings: Iterable[Naming]) -> Iterator[Refusal]:
        """The rules by which the API server refuses what only the list decides: not what tags do."""
        for each in namings:
            patterns = [pattern for kind, pattern in self.listed if kind == each.kind]
            if patterns and each.kind not in self.kinds_by_tag and not self.anything:
                allowed = ITEM.matches("|".join(map(glob, patterns)))
                why = say(f"'{{}}' {_NOT_ALLOWED}", ITEM)
                when = each.when & each.only_name & ~allowed
                yield Refusal(each.argument, when, why, _listed(each.kind, patterns), each=each.items)


def named_words(namings: Iterable[Naming], settings: Settings, spec: Mapping[str, Any]) -> Iterator[tuple[Naming, str]]:
    """What the annotations of a Service name."""
    asked = Asked(settings, spec)
    for naming in namings:
        if naming.when.of(asked):
            yield from ((naming, word) for word in naming.items.of(asked))


def named(namings: Iterable[Naming], settings: Settings, spec: Mapping[str, Any]) -> Iterator[Named]:
    """The same, on a cloud that shows nothing else of these resources."""
    for naming, word in named_words(namings, settings, spec):
        yield Named(naming.kind, field_of(naming, settings), (word,))


def field_of(naming: Naming, settings: Settings) -> str:
    """How an error names what names the resource."""
    if naming.argument.startswith("spec."):
        return naming.argument
    return f"annotation {settings.by_argument[naming.argument].name}"


def _listed(kind: str, patterns: Iterable[str]) -> str:
    return ", ".join(f"{kind}={pattern}" for pattern in patterns)


def _matches(pattern: str, named: Named) -> bool:
    if not pattern.startswith(_BY_TAG):
        return any(is_whole(glob(pattern), name) for name in named.names)
    key, equals, value = pattern.removeprefix(_BY_TAG).partition("=")
    present = named.tags.get(key)
    return present is not None and (not equals or is_whole(glob(value), present))
