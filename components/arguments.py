"""Checks a component's arguments against their TypedDict at run time: not every program is type-checked.

A mistyped argument must not vanish: without its `source_ranges` a load balancer is open to everyone.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import (
    Any,
    Literal,
    NoReturn,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import pulumi

from . import inputs

Args = TypeVar("Args", bound=Mapping[str, Any])

_WORDS = {str: "text", int: "a whole number", bool: "True, False"}


def checked(kind: type[Args], args: Args, path: str = "") -> Args:
    """The arguments without those that are None, which count as not given.

    `kind` is their TypedDict. Raises `WrongInput` for an argument that is missing, unknown or of another type. The
    error shows no values: they may be secret. An output may stand wherever an Input may.
    What `kind` leaves open (`Any`), such as a cloud's own settings, is for the caller to check, with its `path`.
    """
    return cast("Args", _dictionary(kind, args, path))


@cache
def _hints(kind: type) -> dict[str, Any]:
    # What the SDK calls Input has a forward reference that only its own module resolves.
    return get_type_hints(kind, localns={"Output": pulumi.Output, "T": Any}, include_extras=True)


def _dictionary(kind: type, given: Any, path: str) -> dict[str, Any]:
    hints = _hints(kind)
    allowed = f"allowed: {', '.join(hints)}"
    if not isinstance(given, Mapping):
        _refuse(path or "args", f"{_type(given)}; allowed: a dictionary of {', '.join(hints)}")
    prefix = f"{path}." if path else ""
    for key in given:
        if key not in hints:
            nearest = difflib.get_close_matches(str(key), hints, n=1)
            _refuse(f"{prefix}{key}", f"unknown argument; {f'did you mean {nearest[0]}? ' if nearest else ''}{allowed}")
    found = {}
    for key, hint in hints.items():
        optional = get_origin(hint) is NotRequired
        if given.get(key) is not None:
            found[key] = _value(get_args(hint)[0] if optional else hint, given[key], f"{prefix}{key}")
        elif not optional:
            _refuse(f"{prefix}{key}", f"is missing; allowed: {_allowed(hint)}")
    return found


def _value(hint: Any, value: Any, path: str) -> Any:
    if hint is Any:
        return value
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    plain = [member for member in members if get_origin(member) not in (pulumi.Output, Awaitable)]
    if not inputs.is_known(value):
        if len(plain) == len(members):
            _refuse(path, "is an output; allowed: a plain value, because it decides which resources exist")
        return value
    if len(plain) == 1:
        return _plain(plain[0], value, path)
    if not any(_is_a(member, value) for member in plain):
        _refuse(path, f"{_type(value)}; allowed: {', '.join(_WORDS[member] for member in plain)}")
    return value


def _plain(hint: Any, value: Any, path: str) -> Any:
    origin, of = get_origin(hint), get_args(hint)
    if is_typeddict(hint):
        return _dictionary(hint, value, path)
    if origin is Literal:
        inputs.check(path, value, ", ".join(of), of.__contains__)
        return value
    if origin is Sequence:
        if not isinstance(value, list | tuple):
            _refuse(path, f"{_type(value)}; allowed: a list")
        return [_value(of[0], each, f"{path}[{index}]") for index, each in enumerate(value)]
    if origin is Mapping:
        if not isinstance(value, Mapping):
            _refuse(path, f"{_type(value)}; allowed: a dictionary")
        return {key: _value(of[1], each, f"{path}[{key}]") for key, each in value.items() if each is not None}
    if not _is_a(hint, value):
        _refuse(path, f"{_type(value)}; allowed: {_WORDS[hint]}")
    return value


def _allowed(hint: Any) -> str:
    """The values that an argument may have, in words."""
    if get_origin(hint) in (Union, UnionType):
        plain = [each for each in get_args(hint) if get_origin(each) not in (pulumi.Output, Awaitable)]
        return " or ".join(_allowed(each) for each in plain)
    if get_origin(hint) is Literal:
        return ", ".join(get_args(hint))
    if is_typeddict(hint):
        return f"a dictionary of {', '.join(_hints(hint))}"
    return _WORDS.get(hint) or ("a list" if get_origin(hint) is Sequence else "a dictionary")


def _is_a(hint: Any, value: Any) -> bool:
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _type(value: Any) -> str:
    return f"is of type {type(value).__name__}"


def _refuse(path: str, why: str) -> NoReturn:
    raise inputs.WrongInput(path, why)
