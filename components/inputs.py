"""Checks of a component's inputs: a wrong one is refused at once, with its name; some outputs once they are known."""

from __future__ import annotations

import functools
import inspect
import re
import traceback
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, TypeVar, cast

import pulumi
from pulumi.output import Unknown

_LABEL_NAME = re.compile(r"(?=.{1,63}\Z)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_DOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = "at most 63 of A-Z, a-z, 0-9, - _ . (a letter or digit at both ends)"
_Init = TypeVar("_Init", bound=Callable[..., None])
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class WrongInput(pulumi.InputPropertyError, pulumi.RunError):
    """An input that is not allowed. Also a RunError: so a program ends with this one line and without a traceback."""

    component = ""
    """The component whose input it is, and where the program makes it."""

    def __str__(self) -> str:
        return f"{self.component}{': ' if self.component else ''}{self.property_path}: {self.reason}"


def naming_itself(init: _Init) -> _Init:
    """Make the WrongInput of a component's `__init__` begin with the component and the line that makes it."""

    @functools.wraps(init)
    def naming(self: object, name: str, *args: Any, **more: Any) -> None:
        try:
            init(self, name, *args, **more)
        except WrongInput as error:
            error.component = error.component or f"{component(self, name)} ({_line_of_program()})"
            raise

    return cast("_Init", naming)


def component(made: object, name: str) -> str:
    """A component's name in messages."""
    return f"{type(made).__name__} {name!r}"


def _line_of_program() -> str:
    """The innermost line outside of this package: the user's own."""
    here = Path(__file__).parent
    for frame, number in traceback.walk_stack(inspect.currentframe()):
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(here):
            cwd = Path.cwd()
            return f"{path.relative_to(cwd) if path.is_relative_to(cwd) else path.name}:{number}"
    return "?"


def is_known(value: object) -> bool:
    """Whether the input is a plain value."""
    return not isinstance(value, pulumi.Output | Awaitable)


def later(value: Any, use: Callable[[Any, bool], Any]) -> pulumi.Output[Any]:
    """What `use` makes of an output's value once it is known, and of whether it is secret: no error may show that."""
    output = pulumi.Output.from_input(value)

    async def used(known: Any) -> Any:
        return use(known, await output.is_secret())

    # The SDK's type leaves out functions that are awaited.
    awaited: Any = used
    made: pulumi.Output[Any] = output.apply(awaited)
    return made


def check(path: str, value: Any, allowed: str, is_allowed: Callable[[Any], bool]) -> None:
    """Raise `WrongInput` for a plain value that is not allowed."""
    if is_known(value) and not is_allowed(value):
        raise WrongInput(path, f"{value!r}; allowed: {allowed}")


def check_dns_label(path: str, value: Any) -> None:
    """The value must be a DNS label."""
    allowed = "a DNS label: at most 63 of a-z, 0-9 and - (not at either end)"
    check(path, value, allowed, lambda v: isinstance(v, str) and bool(DNS_LABEL.fullmatch(v)))


def check_port(path: str, value: Any) -> None:
    """The value must be a port number."""
    check(path, value, "1 to 65535", lambda v: isinstance(v, int) and not isinstance(v, bool) and 1 <= v <= 65535)


def check_cidr(path: str, value: Any) -> None:
    """The value must be an IPv4 range in CIDR notation, without host bits."""
    check(path, value, "an IPv4 range such as 10.4.0.0/16, without host bits", is_cidr)


def label_problem(key: str, value: object) -> str | None:
    """Why Kubernetes would refuse this label; None if it would not. An output as value counts as valid."""
    domain, slash, name = key.rpartition("/")
    if not _LABEL_NAME.fullmatch(name) or (slash and not _LABEL_DOMAIN.fullmatch(domain)):
        return f"is not a valid label name; allowed: {_LABEL}, optionally after DOMAIN/"
    if is_known(value) and value != "" and not _LABEL_NAME.fullmatch(str(value)):
        return f"has an invalid value; allowed: {_LABEL}, or the empty string"
    return None


def deadline_problem(value: object) -> str | None:
    """Why a number of seconds is no deadline; None if it is one, or is not known yet."""
    if isinstance(value, Unknown) or (isinstance(value, int | float) and value > 0):
        return None
    return f"{value!r}; allowed: seconds, more than 0"


def is_cidr(value: object) -> bool:
    """Whether the value is an IPv4 range in CIDR notation, without host bits."""
    try:
        # The library also takes 10.0.0.0/255.0.0.0, which Kubernetes does not.
        return isinstance(value, str) and bool(re.search(r"/[0-9]+\Z", value)) and bool(IPv4Network(value))
    except ValueError:
        return False
