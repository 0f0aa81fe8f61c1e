"""Combines answers that may depend on a value unknown until the update: or, and, and all of them.

An `UnknownValueError` that leaves a rule makes the engine report the rule as not evaluated. So a rule may swallow one
only where its answer does not depend on the value. Only the functions here do that.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

from pulumi_policy import ReportViolation
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, UnknownValueError

T = TypeVar("T")

ODD = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading a value of the wrong type raises: a text for a number, a number for an object. The rule is violated:
"not evaluated" would pass, and a crash would end the run without saying where."""
UNREADABLE = "cannot be judged"
"""How the message of such a violation starts."""

Problem = Callable[[], str | None]
"""What is wrong with one part of a resource, as a message; None if nothing is. Raises UnknownValueError."""


def first_known(values: Iterable[Callable[[], T | None]]) -> T | None:
    """The first known value that is not empty. Raises the first UnknownValueError only if there is none."""
    unknown: UnknownValueError | None = None
    for value in values:
        try:
            found = value()
        except UnknownValueError as error:
            unknown = unknown or error
            continue
        if found:
            return found
    if unknown is not None:
        raise unknown
    return None


def every_known(values: Iterable[Callable[[], T | None]]) -> list[T]:
    """The known values that are not empty. Raises the first UnknownValueError only if there are none."""
    found, unknown = known(values)
    if unknown is not None and not found:
        raise unknown
    return found


def known(values: Iterable[Callable[[], T | None]]) -> tuple[list[T], UnknownValueError | None]:
    """The known values that are not empty, and the first UnknownValueError, for those that it matters to."""
    found: list[T] = []
    unknown: UnknownValueError | None = None
    for value in values:
        try:
            one = value()
        except UnknownValueError as error:
            unknown = unknown or error
            continue
        if one:
            found.append(one)
    return found, unknown


def not_evaluated(why: str) -> UnknownValueError:
    """What to raise where the program does not say what a rule needs to know: the rule neither passes nor fails."""
    error = UnknownValueError(UNKNOWN_STRING_VALUE, [])
    error.message = why
    return error


def if_known(value: Callable[[], T]) -> T | None:
    """The value; None where it is unknown. For evidence that is not missed where there is none."""
    try:
        return value()
    except UnknownValueError:
        return None


def only_known(values: Iterable[Callable[[], T | None]]) -> list[T]:
    """The known values that are not empty: as evidence, which an unknown value neither adds nor refutes."""
    return known(values)[0]


def problem_if(conditions: Iterable[Callable[[], object]], problem: Problem) -> str | None:
    """The problem, where all conditions hold. Raises UnknownValueError only if nothing known makes it None."""
    unknown: UnknownValueError | None = None
    message: str | None = None
    for question in (*conditions, problem):
        try:
            answer = question()
        except UnknownValueError as error:
            unknown = unknown or error
            continue
        if not answer:
            return None
        message = str(answer)
    if unknown is not None:
        raise unknown
    return message


def judge(conditions: Iterable[Callable[[], object]], problems: Iterable[Problem], report: ReportViolation) -> None:
    """Report the problems, in one go, if all conditions hold; then raise the first UnknownValueError that matters.

    `problems` may raise it, too: which problems come after that depends on the value.
    """
    conditions = tuple(conditions)
    unknown: UnknownValueError | None = None
    messages: list[str] = []
    for problem in collect(problems):
        try:
            message = problem_if(conditions, problem)
        except UnknownValueError as error:
            # Judge the others all the same; this one makes the rule "not evaluated" besides.
            unknown = unknown or error
            continue
        except ODD as error:
            message = unreadable(error)
        if message:
            messages.append(message)
    if messages:
        report("; ".join(messages), None)
    if unknown is not None:
        raise unknown


def collect(values: Iterable[Callable[[], T]]) -> list[Callable[[], T]]:
    """The values as a list, whose last one raises what `values` did because of an unknown or an odd value."""
    found: list[Callable[[], T]] = []
    try:
        for value in values:
            found.append(value)  # noqa: PERF402 - keeps what came before that value
    except (UnknownValueError, *ODD) as error:
        found.append(partial(_raise, error))
    return found


def unreadable(error: Exception) -> str:
    """What to report where a rule stumbles over an odd value; its text is left out, which may be a secret."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"
    return f"{UNREADABLE}: a value is of another type than its field has ({place})"


def _raise(error: Exception) -> NoReturn:
    raise error
