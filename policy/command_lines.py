"""Reads the command lines of containers: words, flags and the variables in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from policy.objects import dig, each, items
from policy.unknowns import collect, if_known

_VARIABLE = re.compile(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))")
_BETWEEN_WORDS = re.compile(r"[\s;&|<>]+")
_WITHOUT_VALUE = re.compile(r"--\w[\w.-]*")


def known_words(spec: Mapping[str, Any], field: str) -> list[str]:
    """The words of a container's `command` or `args`, up to the first that is unknown."""
    words: list[str] = []
    for word in each(if_known(partial(dig, spec, field))):
        text = if_known(word)
        if text is None:
            break
        words.append(str(text))
    return words


def flag(container: Mapping[str, Any], name: str) -> str | None:
    """The last value of a command-line flag: `NAME=VALUE`, or the word after NAME; None: the flag is absent.

    Also inside a word, as in `sh -c`; a variable with a value in `env` is replaced. As in Kubernetes' own components,
    `_` in a flag's name is `-`. Raises UnknownValueError only where a later, unknown word could be the flag, or its
    value is unknown.
    """
    following = ""
    for found in reversed(command_line(container)):
        for word in reversed(found()):
            _, equals, value = word.partition("=")
            if dashed(word) == name:
                return _resolved(container, value.strip("\"'") if equals else following)
            following = word
    return None


def command_line(container: Mapping[str, Any]) -> list[Callable[[], list[str]]]:
    """The words of a container's command line, also those of a shell's script in it.

    Variables have their values; one that is a whole word gives the words of its value. What is called for a word that
    is unknown raises UnknownValueError; an unknown value of a flag stays as the variable.
    """
    words: list[Callable[[], str]] = [str]  # Before the first word there is none: an empty one.
    for field in ("command", "args"):
        for word in collect(_words(container, field)):
            words += collect(_split(word))
    return [partial(_with_values, container, before, word) for before, word in pairwise(words)]


def flag_values(words: Iterable[str]) -> dict[str, str]:
    """The last value of each flag; empty for a flag without a value."""
    found: dict[str, str] = {}
    flag = ""
    for word in words:
        if word.startswith("-"):
            flag = dashed(word)
            found[flag] = word.partition("=")[2].strip("\"'")
        elif flag and not found[flag]:
            found[flag] = word
    return found


def dashed(word: str) -> str:
    """The name of a flag in a word, `--leader-elect` of `--leader_elect=false`: Kubernetes' programs take both."""
    return word.partition("=")[0].replace("_", "-")


def _words(container: Mapping[str, Any], field: str) -> Iterator[Callable[[], Any]]:
    yield from each(dig(container, field))


def _split(word: Callable[[], Any]) -> Iterator[Callable[[], str]]:
    """The words of a shell's script, or the one word."""
    text = str(word())
    for part in _BETWEEN_WORDS.split(text) if len(text.split()) > 1 else [text]:
        yield partial(str, part.strip("\"'"))


def _with_values(container: Mapping[str, Any], before: Callable[[], str], word: Callable[[], str]) -> list[str]:
    text = word()
    is_variable = bool(_VARIABLE.fullmatch(text))
    # Right after a flag without `=` it is that flag's value; elsewhere it may hold any flag.
    if is_variable and not _WITHOUT_VALUE.fullmatch(if_known(before) or ""):
        return _resolved(container, text).split()
    found = if_known(partial(_resolved, container, text))
    if found is None:
        return [text]
    return found.split() if is_variable else [found]


def _resolved(container: Mapping[str, Any], text: str) -> str:
    """The text with the values that `env` gives its variables; those from elsewhere stay."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        found = [dig(entry, "value") for entry in items(dig(container, "env")) if dig(entry, "name") == name]
        return match[0] if not found or found[-1] is None else str(found[-1])

    return _VARIABLE.sub(value, text)
