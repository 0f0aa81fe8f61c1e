"""Compares what two controllers leave after each phase of recorded scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.compatibility.differences import Found, found

Json = dict[str, Any]


def name_of(recorded: Json, phase: Json) -> str:
    """`scenario: phase`; the creation is the scenario alone."""
    scenario = recorded["scenario"].partition("/")[2] or recorded["scenario"]
    return str(scenario if phase is recorded["phases"][0] else f"{scenario}: {phase['title']}")


def differences(peer: Mapping[str, Json], ours: Mapping[str, Json]) -> list[Found]:
    """In what the phases of both differ that was not there after the phase before; after a deletion, in everything.

    An object that one alone has is one difference.
    """
    both = [name for name in peer if name in ours]
    pairs = {name: (_beside(peer[name], ours[name]), _beside(ours[name], peer[name])) for name in both}
    return _new(found({name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}))


def _beside(state: Json, other: Json) -> Json:
    return {name: "there" if isinstance(of, dict) and name not in other else of for name, of in state.items()}


def _new(differences: Iterable[Found]) -> list[Found]:
    listed: list[Found] = []
    before: dict[str, Any] = {}
    now: dict[str, Any] = {}
    phase = ""
    for each in differences:
        if each.service != phase:
            scenario, _, title = each.service.partition(": ")
            goes_on = scenario == phase.partition(": ")[0] and title != "deletion"
            before, now, phase = now if goes_on else {}, {}, each.service
        now[each.field] = (each.peer, each.ours)
        if before.get(each.field) != now[each.field]:
            listed.append(each)
    return listed
