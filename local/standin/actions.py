"""The action table of a stand-in: by operation a function, and the schemas of what it takes and gives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from local.standin.refusals import Refusal
from local.standin.shapes import Check, compile_schema

S = TypeVar("S")
"""What the actions work on: the stand-in's account."""


class Arguments(Mapping[str, Any]):
    """The parameters of one call; remembers which were read, for one that no code reads would be accepted in vain."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.raw = values
        """All of them, unnoticed."""
        self._seen: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._seen.add(name)
        return self.raw[name]

    def __iter__(self) -> Iterator[str]:
        self._seen.update(self.raw)
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)

    def __contains__(self, name: object) -> bool:
        self._seen.add(str(name))
        return name in self.raw

    def unread(self) -> list[str]:
        """The parameters that were given and not looked at."""
        return sorted(self.raw.keys() - self._seen)


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it was received."""

    operation: str
    """`product.Action`, as in counts and faults."""
    arguments: Mapping[str, Any]
    token: str | None = None
    """The client's idempotency token."""
    caller: str = ""
    """Whose credential signed it."""


@dataclass(frozen=True)
class Action(Generic[S]):
    """One operation. Its schemas are made when it is first called."""

    operation: str
    run: Callable[[S, Arguments], dict[str, Any]]
    request_schema: Callable[[], Mapping[str, Any]]
    answer_schema: Callable[[], Mapping[str, Any]]
    ignored: frozenset[str] = frozenset()
    """Parameters that change nothing in the stand-in."""

    @functools.cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The schema of a request."""
        return self.request_schema()

    @functools.cached_property
    def check_request(self) -> Check:
        """Of the arguments."""
        return compile_schema(self.parameters)

    @functools.cached_property
    def check_answer(self) -> Check:
        """Of what `run` returns."""
        return compile_schema(self.answer_schema())

    def require_all_read(self, arguments: Arguments) -> None:
        """Refuse a call with a parameter that the stand-in knows of, but does not simulate."""
        if unread := [name for name in arguments.unread() if name not in self.ignored]:
            raise Refusal(501, "NotSimulated", f"the stand-in does not simulate {unread[0]} of {self.operation}")


class ActionTable(Generic[S]):
    """All operations of a stand-in, and the steps that end its jobs."""

    def __init__(self) -> None:
        self.actions: dict[str, Action[S]] = {}
        self.steps: dict[str, Callable[[S, dict[str, Any]], None]] = {}

    def add(self, action: Action[S]) -> None:
        """Add an operation."""
        if action.operation in self.actions:
            raise ValueError(f"{action.operation} has two functions")
        self.actions[action.operation] = action

    def step(self, name: str) -> Callable[[Callable[[S, dict[str, Any]], None]], Callable[[S, dict[str, Any]], None]]:
        """Register what happens when a job with this step is done."""

        def register(function: Callable[[S, dict[str, Any]], None]) -> Callable[[S, dict[str, Any]], None]:
            if name in self.steps:
                raise ValueError(f"step {name} has two functions")
            self.steps[name] = function
            return function

        return register
