"""Chooses the backend of the next connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from local.forwarding.target import Target


@dataclass(frozen=True, slots=True)
class Candidate:
    """An available backend; `weight` is at least 1."""

    target: Target
    weight: int


class Scheduler(Protocol):
    """Chooses among candidates; it may remember earlier choices."""

    def choose(self, candidates: Sequence[Candidate], active: Mapping[Target, int]) -> Target | None:
        """One of the candidates, or None if there is none. `active`: open connections of each backend."""
        ...


class RoundRobin:
    """Smooth weighted round robin: a backend of weight 3 among three of weight 1 gets half, never three in a row."""

    def __init__(self) -> None:
        self._credit: dict[Target, int] = {}

    def choose(self, candidates: Sequence[Candidate], active: Mapping[Target, int]) -> Target | None:  # noqa: ARG002
        if not candidates:
            return None
        self._credit = {each.target: self._credit.get(each.target, 0) + each.weight for each in candidates}
        chosen = max(candidates, key=lambda each: self._credit[each.target]).target
        self._credit[chosen] -= sum(each.weight for each in candidates)
        return chosen


class LeastConnections:
    """The backend with the fewest open connections for its weight; equals take turns."""

    def __init__(self) -> None:
        self._turn = RoundRobin()

    def choose(self, candidates: Sequence[Candidate], active: Mapping[Target, int]) -> Target | None:
        loads = {each.target: active.get(each.target, 0) / each.weight for each in candidates}
        least = min(loads.values(), default=0.0)
        return self._turn.choose([each for each in candidates if loads[each.target] == least], active)


def scheduler(name: str) -> Scheduler:
    """The scheduler that a backend set names."""
    return LeastConnections() if name == "least_connections" else RoundRobin()
