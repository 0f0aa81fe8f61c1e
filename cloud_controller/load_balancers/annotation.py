"""One annotation of a Service that a cloud knows: its name, what its text may be, and what comes of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from cloud_controller.cloud_errors import InvalidConfiguration

Value = str | int | bool | tuple[str, ...]
"""A parsed annotation."""

_LONGEST_NUMBER = 20
"""Characters; no field of any API holds a longer integer."""
_SHOWN = 100
"""Characters of a wrong value that an error quotes: an annotation may be as long as 256 KiB, an event 1 KiB."""


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
    document that it comes from. `default_of_class`: what a Service without the annotation gets, by its
    `spec.loadBalancerClass` (None: it has none), where that is not `default`. `ignored` says why the cloud does not
    honour it, for one that is known but not offered. `any_case`: the allowed words are taken in any case. `true_words`
    and `false_words` are what `bool` takes besides its own words. `refused` says of values that people try why they
    can't be. `restricts` is for an entry that is ignored and restricts access: it is refused, unless its value is one
    of `harmless`, which ask for nothing more than there is. `honoured_by` names the other controllers that honour it,
    and since when. `exclusive`: no two load balancers can have what it names (addresses of one's own). `names`: the
    kind of resource that it names and somebody else keeps, one of `nameable.KINDS`.

    A family has a `suffix`, the placeholder at the end of its name, such as `PORT`; `suffix_pattern` says what may
    stand there, `suffix_example` is one. Its typed argument is a mapping from suffixes to values; each member is an
    annotation of its own (`member`).
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
    restricts: bool = False
    harmless: tuple[str, ...] = ()
    suffix: str | None = None
    suffix_pattern: str = ""
    suffix_example: str = ""

    def member(self, suffix: str) -> Annotation:
        """The annotation of this family with this suffix; raises InvalidConfiguration for one that can't be."""
        if not self._has(suffix):
            raise InvalidConfiguration(
                f"annotation {self.name}", f"{_shown(suffix)} is not a valid {self.suffix}", self.name
            )
        name = f"{self.name.removesuffix(self.suffix or '')}{suffix}"
        return replace(self, name=name, argument=member_argument(self.argument, suffix), suffix=None)

    def member_named(self, name: str) -> Annotation | None:
        """The member of this family with this name, if it has one."""
        suffix = name.removeprefix(self.name.removesuffix(self.suffix or ""))
        return self.member(suffix) if self.suffix and suffix != name and self._has(suffix) else None

    def given(self, value: Value | Mapping[str, Value]) -> list[tuple[Annotation, Value]]:
        """The annotations that a typed argument stands for, each with its value: of a family, a mapping of them."""
        if isinstance(value, Mapping):
            return [(self.member(suffix), of) for suffix, of in sorted(value.items())]
        return [(self, value)]

    def _has(self, suffix: str) -> bool:
        return re.fullmatch(self.suffix_pattern, suffix) is not None

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
        why = self.refused.get(text.strip())
        if self.restricts and text.strip() not in self.harmless:
            why = self.ignored
        if why:
            allowed = ", ".join(self.harmless) if self.restricts else self.allowed_text
            raise InvalidConfiguration(f"annotation {self.name}", f"{_shown(text)}: {why}", allowed or "none")

    def to_text(self, value: Value) -> str:
        """The annotation's text for a typed value, checked as `parse` checks."""
        if isinstance(value, bool):
            text = "true" if value else "false"
        else:
            text = ",".join(value) if isinstance(value, tuple | list) else str(value)
        self.parse(text)
        return text


def member_argument(argument: str, suffix: str) -> str:
    """What `Settings.given` calls the member of a family."""
    return f"{argument}.{suffix}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _number(value: int | None) -> str:
    return "any" if value is None else f"{value:,}"
