"""The administrator's list of existing resources that annotations of Services may name. Pure.

With entries for a kind, annotations may name only resources that match one of them. Without entries, they may name any
resource that the cloud does not show to belong to someone else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from fnmatch import fnmatchcase

from cloud_controller.cloud_errors import InvalidConfiguration

KINDS = ("certificate", "elastic-ip", "log-bucket", "log-prefix", "security-group", "subnet")
WITH_TAGS = ("security-group", "subnet")
"""The kinds that support tag entries."""

OPTION = "--annotations-may-name"
_ANYTHING = "any"
_BY_TAG = "tag:"


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
                listed = ", ".join(f"{each.kind}={pattern}" for pattern in patterns)
                why = f"{each.names[0]!r} is not allowed by {OPTION}"
                raise InvalidConfiguration(each.field, why, listed)
            if not patterns and each.whose:
                allowed = f"one that does not belong to others, or {each.kind}={each.names[0]} in {OPTION}"
                raise InvalidConfiguration(each.field, f"{each.names[0]!r} {each.whose}", allowed)


def _matches(pattern: str, named: Named) -> bool:
    if not pattern.startswith(_BY_TAG):
        return any(fnmatchcase(name, pattern) for name in named.names)
    key, equals, value = pattern.removeprefix(_BY_TAG).partition("=")
    present = named.tags.get(key)
    return present is not None and (not equals or fnmatchcase(present, value))
