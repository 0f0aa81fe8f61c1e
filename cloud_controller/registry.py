"""What packages offer for a cloud under an entry-point group: how a cloud joins without a fork.

Each layer has a group of its own, PACKAGE.clouds: `cloud_controller.clouds` (its controllers), `components.clouds`
(`pulumi_cloud_controller.clouds` in the library), `policy.clouds` and `local.clouds` (what stands in for the cloud on
one machine). An entry point is named after the cloud and leads to its descriptor there.
"""

from __future__ import annotations

import difflib
import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

T = TypeVar("T")


class UnknownName(LookupError):
    """No package offers this name; `hint` is the nearest one or "", `known` lists all."""

    def __init__(self, name: str, known: list[str]) -> None:
        nearest = difflib.get_close_matches(name, known, n=1)
        self.hint = f"did you mean {nearest[0]!r}?" if nearest else ""
        self.known = known
        super().__init__(f"{name!r} is unknown; known: {', '.join(known)}")


class InvalidEntryPoint(Exception):
    """A package's entry point does not lead to a usable descriptor; the message names both."""


class Registry(Generic[T]):
    """The entry points of one group; each is loaded when it is asked for, and must be a `kind`."""

    def __init__(self, group: str, kind: type[T]) -> None:
        self._group = group
        self._kind = kind
        self._loaded: dict[str, T] = {}

    def names(self) -> list[str]:
        """What there is, sorted; loads nothing."""
        return sorted({point.name for point in self._points()})

    def get(self, name: str) -> T:
        """Load one. Raises UnknownName, or InvalidEntryPoint if it fails to load or leads to something else."""
        if name in self._loaded:
            return self._loaded[name]
        points = [point for point in self._points() if point.name == name]
        if not points:
            raise UnknownName(name, self.names())
        where = f"entry point {name!r} of {self._group} ({', '.join(point.value for point in points)})"
        if len(points) > 1:
            raise InvalidEntryPoint(f"{where} is not unique")
        try:
            found = points[0].load()
        except Exception as error:  # A package may fail to import in any way.
            raise InvalidEntryPoint(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
        if not isinstance(found, self._kind):
            raise InvalidEntryPoint(f"{where} is not a {self._kind.__name__}")
        if getattr(found, "name", name) != name:
            raise InvalidEntryPoint(f"{where} has the name {getattr(found, 'name', '')!r}")
        self._loaded[name] = found
        return found

    def all(self) -> list[T]:
        """Every one, by name."""
        return [self.get(name) for name in self.names()]

    def _points(self) -> tuple[EntryPoint, ...]:
        return _points(self._group, tuple(sys.path))


@cache
def _points(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    # Reads every installed package's metadata, 6 ms for each call: a policy pack would do so twenty times as it starts.
    return tuple(entry_points(group=group))
