"""Compares what two controllers leave after each phase of recorded scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.compatibility.differences import Found, found

Json = dict[str, Any]


def name_of(recorded: Json, phase: Json) -> str:
    """`scenario: phase`; the creation is the scenario alone."""
    scenario = recorded["scenario"].partition("/")[2] or recorded["scenario"]
    return str(scenario if phase is recorded["phases"][0] else f"{scenario}: {phase['title']}")


def differences(peer: Mapping[str, Json], ours: Mapping[str, Json]) -> list[Found]:
    """In what the phases of both differ that was not there after the phase before; after a deletion, in everything.

    An object that one alone has is one difference. ValueError: one alone has a phase, though no creation was refused.
    """
    _require_the_same_phases(peer, ours)
    listed: list[Found] = []
    before: dict[str, tuple[Any, Any]] = {}
    last = ""
    for name in (each for each in peer if each in ours):
        scenario, _, title = name.partition(": ")
        if scenario != last or title == "deletion":
            before = {}
        now = found({name: _beside(peer[name], ours[name])}, {name: _beside(ours[name], peer[name])})
        listed += [each for each in now if before.get(each.field) != (each.peer, each.ours)]
        before, last = {each.field: (each.peer, each.ours) for each in now}, scenario
    return listed


def refused(*states: Mapping[str, Json]) -> set[str]:
    """The scenarios whose creation one of the controllers refused for good."""
    return {name for of in states for name, state in of.items() if state["refused"]}


def _require_the_same_phases(peer: Mapping[str, Json], ours: Mapping[str, Json]) -> None:
    after_refusal = tuple(f"{name}: " for name in refused(peer, ours))
    alone = sorted(name for name in peer.keys() ^ ours.keys() if not name.startswith(after_refusal))
    if alone:
        raise ValueError(f"phases that only one controller has: {', '.join(alone)}")


def _beside(state: Json, other: Json) -> Json:
    return {name: "there" if isinstance(of, dict) and name not in other else of for name, of in state.items()}
