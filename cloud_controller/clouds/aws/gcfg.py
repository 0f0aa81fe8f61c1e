"""The syntax of AWS's cloud config: gcfg, git's dialect of INI, which upstream's controllers read.

Names of sections and keys are case-insensitive; a section may have a quoted subsection name; a key without `= value` is
true; quotes preserve `#`, `;` and spaces at the ends of a value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from cloud_controller.cloud_errors import InvalidConfiguration

_SECTION = re.compile(r'\[\s*(?P<name>[\w.-]+)(?:\s+"(?P<sub>[^"]*)")?\s*\]\s*(?:[#;].*)?')
_PLAIN = re.compile(r"[\w.:/-]+")
_KEY = re.compile(r"(?P<key>[A-Za-z][\w-]*)\s*(?:=(?P<value>.*)|(?:[#;].*)?)")


class Entry(NamedTuple):
    """One line with a value; `name` is the quoted subsection name, or ""."""

    line: int
    section: str
    name: str
    key: str
    value: str


def entries(text: str, known: Mapping[str, Collection[str]], named: Collection[str]) -> Iterator[Entry]:
    """Each line with a value, with section and key spelled as in `known`; sections in `named` need a subsection name.

    Raises InvalidConfiguration that names the line, or the section and key. It does not quote unknown text, which may
    be a secret in the wrong place.
    """
    section: tuple[str, str] | None = None
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped[0] == "[":
            section = _section(stripped, number, known, named)
            continue
        found = _KEY.fullmatch(stripped)
        if found is None:
            raise wrong(f"line {number}", "not of the form 'key = value'")
        if section is None:
            raise wrong(f"line {number}", "not in a [section]")
        key = _known(number, f"key in [{section[0]}]", found["key"], known[section[0]])
        yield Entry(number, *section, key, _value(found["value"], number))


def written(value: str) -> str:
    """The value as `entries` reads it back, quoted if necessary."""
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def wrong(field: str, why: str, allowed: str | None = None) -> InvalidConfiguration:
    """The error for one location in the cloud config."""
    return InvalidConfiguration(f"cloud config: {field}", why, allowed)


def _section(line: str, number: int, known: Collection[str], named: Collection[str]) -> tuple[str, str]:
    shown = ", ".join(f'[{section} "NAME"]' if section in named else f"[{section}]" for section in known)
    found = _SECTION.fullmatch(line)
    if found is None:
        raise wrong(f"line {number}", "not a known section", shown)
    section = _known(number, "section", found["name"], known)
    if (section in named) != bool(found["sub"]):
        raise wrong(f"line {number}", "not a known section", shown)
    return section, found["sub"] or ""


def _known(number: int, what: str, name: str, known: Collection[str]) -> str:
    by_lower = {each.lower(): each for each in known}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    nearest = difflib.get_close_matches(name.lower(), by_lower, n=1)
    why = f"unknown {what}" + (f"; did you mean {by_lower[nearest[0]]!r}?" if nearest else "")
    raise wrong(f"line {number}", why, ", ".join(known))


def _value(raw: str | None, number: int) -> str:
    if raw is None:
        return "true"
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
            break
        else:
            value += character
    if in_quotes:
        raise wrong(f"line {number}", "unclosed quote")
    return value[:kept] + value[kept:].rstrip()
