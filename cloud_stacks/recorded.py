"""What a previewed program would leave: its resources, as a state of Pulumi's CLI has them. Pure.

An update could not make it: where a cloud's answer is unknown, a program that is previewed goes on, and one that is
updated gets None.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from local.plugins.urn import PROVIDER_PREFIX
from local.plugins.wire import UNKNOWN_TEXT

Json = Any
_ID: Final = "recorded"
"""The id of each provider instance, which a preview does not know."""


def resources(digest: Json, events: Iterable[Json], plan: Json) -> list[Json]:
    """The resources, from all that one preview of a new stack wrote.

    The events have every resource in order, and ids; `preview --json` has options, but no default providers;
    `--save-plan` with `--show-secrets` has outputs and secrets.
    """
    states: dict[str, Json] = {}
    for event in events:
        for kind in ("resourcePreEvent", "resOutputsEvent"):
            if new := event.get(kind, {}).get("metadata", {}).get("new"):
                states[new["urn"]] = {key: value for key, value in new.items() if value}
    for step in digest["steps"]:
        states[step["urn"]] |= step.get("newState") or {}
    # What the program only reads is not planned.
    planned = plan["resourcePlans"]
    return [_resource(state, planned[urn]) if urn in planned else state for urn, state in states.items()]


def _resource(state: Json, planned: Json) -> dict[str, Json]:
    goal, outputs = planned["goal"], planned.get("state") or {}
    # The plan has none of the SDK's own inputs, but the outputs repeat them.
    inputs = {**(state.get("inputs") or {}), **{k: v for k, v in outputs.items() if k.startswith("__")}}
    given = {key: inputs[key] for key in state.get("inputs") or {}} | (goal["inputDiff"].get("adds") or {})
    found = {**state, "inputs": given, "outputs": outputs}
    if state["type"].startswith(PROVIDER_PREFIX):
        found["id"] = _ID
    if provider := state.get("provider"):
        found["provider"] = provider.replace(UNKNOWN_TEXT, _ID)
    return found
