"""What a previewed program would leave: its resources as a deployment that Pulumi's CLI imports. Pure.

An update could not make it: where a cloud's answer is unknown, a program that is previewed goes on, and one that is
updated gets None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from local.plugins.urn import PROVIDER_PREFIX
from local.plugins.wire import UNKNOWN_TEXT

Json = Any
_ID: Final = "recorded"
"""The id of each provider instance, which a preview does not know."""
_MANIFEST: Final = {"time": "2020-01-01T00:00:00Z", "magic": "", "version": ""}


def deployment(digest: Json, events: Iterable[Json], plan: Json) -> dict[str, Json]:
    """The deployment, from all that one preview of a new stack wrote.

    `preview --json` has each resource in order, but secrets masked and no outputs; `--save-plan` with `--show-secrets`
    has those; the events have the ids.
    """
    done = (event["resOutputsEvent"]["metadata"] for event in events if "resOutputsEvent" in event)
    ids = {each["urn"]: each["new"]["id"] for each in done if (each["new"] or {}).get("id")}
    steps = (step for step in digest["steps"] if "newState" in step)
    resources = [_resource(step["newState"], ids, plan["resourcePlans"][step["urn"]]) for step in steps]
    return {"version": 3, "deployment": {"manifest": _MANIFEST, "resources": resources}}


def _resource(state: Json, ids: Mapping[str, str], planned: Json) -> dict[str, Json]:
    goal, outputs = planned["goal"], planned.get("state") or {}
    # The plan has none of the SDK's own inputs, but the outputs repeat them.
    inputs = {**(state.get("inputs") or {}), **{k: v for k, v in outputs.items() if k.startswith("__")}}
    given = {key: inputs[key] for key in state.get("inputs") or {}} | (goal["inputDiff"].get("adds") or {})
    found = {**state, "inputs": given, "outputs": outputs}
    if state["custom"]:
        found["id"] = _ID if state["type"].startswith(PROVIDER_PREFIX) else ids[state["urn"]]
    if provider := state.get("provider"):
        found["provider"] = provider.replace(UNKNOWN_TEXT, _ID)
    return found
