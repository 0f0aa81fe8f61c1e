"""Combines answers that may depend on a value unknown until the update: or, and, and all of them.

An `UnknownValueError` that leaves a rule makes the engine report the rule as not evaluated. So a rule may swallow one
only where its answer does not depend on the value. Only the functions here do that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from pulumi_policy import ReportViolation
from pulumi_policy.proxy import UnknownValueError

T = TypeVar("T")

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
    if unknown is not None and not found:
        raise unknown
    return found


def if_known(value: Callable[[], T]) -> T | None:
    """The value; None where it is unknown. For evidence that is not missed where there is none."""
    try:
        return value()
    except UnknownValueError:
        return None


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
        if message:
            messages.append(message)
    if messages:
        report("; ".join(messages), None)
    if unknown is not None:
        raise unknown


def collect(problems: Iterable[Problem]) -> list[Problem]:
    """The problems as a list, whose last one raises UnknownValueError where `problems` did."""
    found: list[Problem] = []
    try:
        for problem in problems:
            found.append(problem)  # noqa: PERF402 - keeps what came before the unknown value
    except UnknownValueError as error:
        found.append(partial(_raise, error))
    return found


def _raise(error: UnknownValueError) -> None:
    raise error
