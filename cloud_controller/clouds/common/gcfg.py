"""Reads a cloud config in gcfg, git's dialect of INI, which upstream's cloud configs use too.

Names of sections and keys are case-insensitive; a section may have a quoted name of its own; a bare key, without
`= value`, is a flag that is set; quotes preserve `#`, `;` and spaces at the ends of a value.

Errors name the line, or the section and key. THEY QUOTE NEITHER VALUES NOR UNKNOWN NAMES, which may be a secret in the
wrong place.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from cloud_controller.cloud_errors import InvalidConfiguration

T = TypeVar("T", bound=str)

_SECTION = re.compile(r'\[\s*(?P<name>[\w.-]+)(?:\s+"(?P<own>[^"]*)")?\s*\]\s*(?:[#;].*)?')
_PLAIN = re.compile(r"[\w.:/-]+")
_KEY = re.compile(r"(?P<key>[A-Za-z][\w-]*)\s*(?:=(?P<value>.*)|(?:[#;].*)?)")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True, slots=True)
class Section:
    """The values of one section. A key with an empty value counts as missing."""

    shown: str
    """The section in errors."""
    values: dict[str, list[str | None]] = field(default_factory=dict, repr=False)
    """The values of each key, in their order; None stands for a bare key."""
    own: str = ""
    """The name of its own: `x` of `[kind "x"]`."""

    def wrong(self, key: str, why: str, allowed: str | None = None) -> InvalidConfiguration:
        """The error for a key of this section."""
        return wrong(f"{self.shown} {key}", why, allowed)

    def texts(self, key: str) -> list[str]:
        """All values of a key that may be repeated. Raises InvalidConfiguration for a bare key."""
        if None in (values := self.values.get(key, [])):
            raise self.wrong(key, "has no value")
        return [value for value in values if value]

    def text(self, key: str) -> str | None:
        """The value, if there is one. Raises InvalidConfiguration for a bare key."""
        return next(iter(self.texts(key)), None)

    def required(self, key: str) -> str:
        """The value. Raises InvalidConfiguration if there is none."""
        value = self.text(key)
        if value is None:
            raise self.wrong(key, "missing")
        return value

    def matching(self, key: str, pattern: str, why: str, allowed: str) -> str | None:
        """The value, if there is one. Raises InvalidConfiguration if the pattern does not match all of it."""
        value = self.text(key)
        if value is not None and not re.fullmatch(pattern, value):
            raise self.wrong(key, why, allowed)
        return value

    def one_of(self, key: str, allowed: Sequence[T], default: T) -> T:
        """The value or the default. Raises InvalidConfiguration if the value is not in `allowed`."""
        value = self.text(key)
        if value is None:
            return default
        if value not in allowed:
            raise self.wrong(key, "not a valid value", ", ".join(allowed))
        return allowed[allowed.index(value)]

    def flag(self, key: str) -> bool:
        """Whether the flag is set: by a bare key, or a value such as `true`. Raises InvalidConfiguration."""
        value = "true" if self.values.get(key) == [None] else (self.text(key) or "false").lower()
        if value not in (*_TRUE, *_FALSE):
            raise self.wrong(key, "not a valid value", "true, false")
        return value in _TRUE


def read(
    text: str, known: Mapping[str, Collection[str]], *, named: Collection[str] = (), repeated: Collection[str] = ()
) -> dict[str, list[Section]]:
    """The sections of each kind and their values, with kinds and keys spelled as in `known`.

    There is one section of each kind, empty if the text lacks it; of kinds in `named`, one for each name of its own.
    Keys in `repeated` may appear several times. Raises InvalidConfiguration.
    """
    found = {(kind, ""): Section(f"[{kind}]") for kind in known if kind not in named}
    kind, section = "", None
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped[0] == "[":
            kind, own = _section(stripped, number, known, named)
            section = found.setdefault((kind, own), Section(f"[{kind}] (line {number})", own=own))
            continue
        entry = _KEY.fullmatch(stripped)
        if entry is None:
            raise wrong(f"line {number}", "not of the form 'key = value'")
        if section is None:
            raise wrong(f"line {number}", "not in a [section]")
        key = _known(number, f"key in [{kind}]", entry["key"], known[kind])
        values = section.values.setdefault(key, [])
        if values and key not in repeated:
            raise wrong(f"line {number}", f"[{kind}] {key} appears twice")
        values.append(None if entry["value"] is None else _value(entry["value"], number))
    return {kind: [section for (of, _), section in found.items() if of == kind] for kind in known}


def written(value: str) -> str:
    """The value as `read` reads it back, quoted if necessary."""
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def wrong(field: str, why: str, allowed: str | None = None) -> InvalidConfiguration:
    """The error for one location in the cloud config."""
    return InvalidConfiguration(f"cloud config: {field}", why, allowed)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest known one, if any is near."""
    by_lower = {each.lower(): each for each in known}
    nearest = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[nearest[0]]!r}?" if nearest else ""


def is_url(value: str) -> bool:
    """Whether this is an HTTP URL of a host, without credentials in it."""
    try:
        parts = urlsplit(value)
        # Reading the port validates it.
        host = bool(re.fullmatch(r"[\w.:-]+", parts.hostname or ""))
        return parts.scheme in ("http", "https") and host and parts.port != 0 and parts.username is None
    except ValueError:
        return False


def _section(line: str, number: int, known: Collection[str], named: Collection[str]) -> tuple[str, str]:
    shown = ", ".join(f'[{section} "NAME"]' if section in named else f"[{section}]" for section in known)
    found = _SECTION.fullmatch(line)
    if found is None:
        raise wrong(f"line {number}", "not a known section", shown)
    section = _known(number, "section", found["name"], known)
    if (section in named) != bool(found["own"]):
        raise wrong(f"line {number}", "not a known section", shown)
    return section, found["own"] or ""


def _known(number: int, what: str, name: str, known: Collection[str]) -> str:
    by_lower = {each.lower(): each for each in known}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    raise wrong(f"line {number}", f"unknown {what}{did_you_mean(name, known)}", ", ".join(known))


def _value(raw: str, number: int) -> str:
    value, in_quotes, characters = "", False, iter(raw.strip())
    kept = 0  # The length that must stay: quoted spaces at the end are kept.
    for character in characters:
        if character == '"':
            in_quotes = not in_quotes
            kept = len(value)
        elif character == "\\":
            escaped = next(characters, None)
            if escaped not in ('"', "\\"):
                raise wrong(f"line {number}", "a backslash may escape only a quote or a backslash")
            value += escaped
            kept = len(value)
        elif not in_quotes and character in "#;":
            if len(value) > kept and not value[-1].isspace():
                # gcfg would cut the value off here, and nobody would notice: it may be a token.
                why = f"{character!r} inside the value starts a comment"
                raise wrong(f"line {number}", why, f"the value in quotes, or a space before {character!r}")
            break
        else:
            value += character
    if in_quotes:
        raise wrong(f"line {number}", "unclosed quote")
    return value[:kept] + value[kept:].rstrip()
