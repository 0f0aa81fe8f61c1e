"""Describes and parses one Service annotation of a cloud: name, allowed values, and effect. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from cloud_controller import patterns
from cloud_controller.cloud_errors import InvalidConfiguration

Value = str | int | bool | tuple[str, ...]
"""A parsed annotation."""

_LONGEST_NUMBER = 20
"""Characters; no field of any API holds a longer integer."""
MOST_WORDS = 100
"""Of a list, unless its entry says otherwise: work on a Service grows with its lists, and each goes into requests."""
OLDER_NAME = ", an older name of the same annotation"
SHOWN = 100
"""Characters of an invalid value that an error quotes: annotations may have 256 KiB, an event message 1 KiB."""


# Why an annotation names no existing resource of others (`Annotation.names_nothing`):
VALUE = "it is a value of the load balancer, and names nothing"
OWN_NAME = "it is a name that the load balancer, or the Service's status, gets"
ADDRESS = "the cloud gives only an address that is free"
SELECTS = "it selects the Service's ports, nodes or clients"
OFFERED = "the cloud offers it to everybody"
TAGS = "the tags of others are reserved"
SHARED = "`--shared-load-balancers` decides"


class Mutability(StrEnum):
    """What a change of the annotation does to an existing load balancer."""

    IN_PLACE = "in-place"
    """Changed in place; connections and address stay."""
    REPLACE = "replace"
    """Replaced: THE ADDRESS CHANGES."""
    CREATE_ONLY = "create-only"
    """No effect: only load balancers created later get the new value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One annotation of a cloud.

    - `argument`: the name of its typed argument.
    - `sets`: the model field that it sets (`scheme`, `listener.max_qps`, `pool.scheduler`, `health_check.port`).
    - `type`: `str`, `int`, `bool` or `tuple` (comma-separated words).
    - `not_pattern`: values that `pattern` allows and the cloud does not. Both are within RE2's syntax (admission).
    - `most`: for `tuple`, the most words.
    - `minimum`, `maximum`: for `int`. `allowed`, or a regular expression `pattern` described by `form`: for `str`.
    - `since`: the first version of this project that supports it. `source`: the document that defines it.
    - `default_of_class`: the default by `spec.loadBalancerClass` (None: no class), if it differs from `default`.
    - `ignored`: why the cloud does not support it, for an annotation that is known but has no effect.
    - `any_case`: the allowed words are case-insensitive. `true_words`, `false_words`: more words for `bool`.
    - `refused`: plausible but unsupported values, each with the reason.
    - `restricts`: an ignored entry that restricts access. It is an error, unless its value is one of `harmless`.
    - `honoured_by`: other controllers that honour it, and since when.
    - `exclusive`: the model fields, or families of them (`eip` of `eip.ZONE`), with values that only one load balancer
      at a time can have, such as addresses of its own.
    - `moves`: the model fields, or families of them, whose change in place gives clients other addresses.
    - `keeps`: of these fields' values, in lower case, those that keep the addresses of others:
      `{"dualstack": ("ipv4",)}`.
    - `names_nothing`: why a text of the author's choice names no existing resource of others. Without a reason, the
      catalogue has a `Naming` of the annotation.
    - `aliases`: older names of the same annotation, without a `suffix`.

    A family has a `suffix`, the placeholder at the end of its name, such as `PORT`; `suffix_pattern` defines valid
    suffixes, and `suffix_example` is one. Its typed argument is a mapping from suffix to value; each member is an
    annotation (`member`).
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
    default_of_class: Mapping[str | None, Value] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()
    pattern: str | None = None
    not_pattern: str | None = None
    form: str = "text"
    most: int = MOST_WORDS
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
    exclusive: tuple[str, ...] = ()
    moves: tuple[str, ...] = ()
    keeps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names_nothing: str | None = None
    aliases: tuple[str, ...] = ()
    restricts: bool = False
    harmless: tuple[str, ...] = ()
    suffix: str | None = None
    suffix_pattern: str = ""
    suffix_example: str = ""

    def member(self, suffix: str) -> Annotation:
        """The member of this family with this suffix. Raises InvalidConfiguration for an invalid suffix."""
        if not self._has(suffix):
            raise InvalidConfiguration(
                f"annotation {self.name}", f"{shown(suffix)} is not a valid {self.suffix}", self.name
            )
        name = f"{self.name.removesuffix(self.suffix or '')}{suffix}"
        return replace(self, name=name, argument=member_argument(self.argument, suffix), suffix=None)

    def member_named(self, name: str) -> Annotation | None:
        """The member of this family with this name, or None."""
        suffix = name.removeprefix(self.name.removesuffix(self.suffix or ""))
        return self.member(suffix) if self.suffix and suffix != name and self._has(suffix) else None

    def given(self, value: Value | Mapping[str, Value]) -> list[tuple[Annotation, Value]]:
        """The annotations and values of a typed argument; for a family, `value` is a mapping from suffixes."""
        if isinstance(value, Mapping):
            return [(self.member(suffix), of) for suffix, of in sorted(value.items())]
        return [(self, value)]

    def _has(self, suffix: str) -> bool:
        return patterns.is_whole(self.suffix_pattern, suffix)

    @property
    def allowed_text(self) -> str:
        """A description of the allowed values."""
        if self.allowed:
            return ", ".join(self.allowed)
        if self.type is bool:
            also = (*self.true_words, *self.false_words)
            return "true, false" + (f" (also accepted: {', '.join(also)})" if also else "")
        if self.type is int:
            bounds = f"an integer from {_number(self.minimum)} to {_number(self.maximum)}"
            return f"{bounds}, in {self.unit}" if self.unit else bounds
        return f"at most {self.most:,} comma-separated words" if self.type is tuple else self.form

    def text_in(self, annotations: Mapping[str, str]) -> str | None:
        """The annotation's text, under its name or an older one; None if it is not set.

        Raises InvalidConfiguration if two of its names are set to different texts.
        """
        texts = {name: annotations[name] for name in (self.name, *self.aliases) if name in annotations}
        if len({text.strip() for text in texts.values()}) > 1:
            (name, text), (other, its_text), *_ = texts.items()
            why = f"{shown(text)} contradicts {shown(its_text)} of {other}{OLDER_NAME}"
            raise InvalidConfiguration(f"annotation {name}", why, f"one of the two; remove {other}")
        return next(iter(texts.values()), None)

    def parse(self, text: str) -> Value:
        """The typed value of `text`. Raises InvalidConfiguration, naming annotation, value and what is allowed."""
        value = text.strip()
        if self.any_case:
            value = next((word for word in self.allowed if patterns.lower(word) == patterns.lower(value)), value)
        if self.type is bool:
            if value == "true" or value in self.true_words:
                return True
            if value == "false" or value in self.false_words:
                return False
        elif self.type is int:
            # int() also accepts "1_000", "+5" and non-ASCII digits, which other parsers do not, and raises ValueError
            # for thousands of digits.
            if value.isascii() and value.removeprefix("-").isdigit() and len(value) <= _LONGEST_NUMBER:
                number = int(value)
                low, high = self.minimum, self.maximum
                if (low is None or number >= low) and (high is None or number <= high):
                    return number
        elif self.type is tuple:
            if (number := value.count(",") + 1) > self.most:
                raise InvalidConfiguration(f"annotation {self.name}", f"{number} words are too many", self.allowed_text)
            words = tuple(word.strip() for word in value.split(",") if word.strip())
            # Only commas is a broken list: as empty source ranges, it would allow every client.
            if words or not value:
                return words
        elif value in self.allowed or (value and not self.allowed and self._matches(value)):
            return value
        self.check_refused(text)
        raise InvalidConfiguration(f"annotation {self.name}", f"{shown(text)} is not a valid value", self.allowed_text)

    def _matches(self, value: str) -> bool:
        if self.not_pattern and patterns.is_whole(self.not_pattern, value):
            return False
        return patterns.is_whole(self.pattern or ".+", value)

    def check_refused(self, text: str) -> None:
        """Raise InvalidConfiguration with the reason if `text` is a refused value."""
        why = self.refused.get(text.strip())
        if self.ignored and self.restricts and text.strip() not in self.harmless:
            why = self.ignored
        if why:
            allowed = ", ".join(self.harmless) if self.ignored and self.restricts else self.allowed_text
            raise InvalidConfiguration(f"annotation {self.name}", f"{shown(text)}: {why}", allowed or "none")

    def to_text(self, value: Value) -> str:
        """The annotation's text for a typed value, validated like in `parse`."""
        if isinstance(value, bool):
            text = "true" if value else "false"
        else:
            text = ",".join(value) if isinstance(value, tuple | list) else str(value)
        self.parse(text)
        return text


def member_argument(argument: str, suffix: str) -> str:
    """The key of a family's member in `Settings.given`."""
    return f"{argument}.{suffix}"


def shown(text: str) -> str:
    """The value as errors quote it."""
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


def _number(value: int | None) -> str:
    return "any" if value is None else f"{value:,}"
