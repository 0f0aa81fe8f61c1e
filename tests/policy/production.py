"""The production stacks as the policies see them, planned without a cloud, to be damaged by tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.struct_pb2 import Struct

from cloud_stacks.checkouts import working_folder
from cloud_stacks.offline import left, preview, rehearsal
from cloud_stacks.policies.host import AnalyzedProvider, AnalyzedResource, Finding, PolicyHost
from local.plugins.urn import name_of
from local.plugins.values import SECRET, SIGNATURE, PropertyMap
from local.plugins.wire import from_struct
from local.pulumi.rehearsal import Runs
from local.pulumi.toolchain import find

ROOT = Path(__file__).parents[2]
STACKS = sorted(
    path.name.split(".")[1]
    for path in (ROOT / "stacks").glob("policies.*.json")
    if json.loads(path.read_text()).get("all") == "mandatory"
)
"""The stacks where every rule is mandatory, but for those that report good programs."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A resource as the rules for single resources see it, and as those for whole stacks do."""

    alone: AnalyzedResource
    in_stack: AnalyzedResource

    def without_dependencies(self) -> Seen:
        """The same, on which nothing waits and which waits for nothing."""
        return Seen(self.alone, replace(self.in_stack, parent="", dependencies=(), property_dependencies={}))

    def changed(self, change: Callable[[PropertyMap], PropertyMap], type: str = "") -> Seen:
        """The same with other properties, and perhaps of another type."""
        return Seen(
            *(
                replace(each, properties=change(each.properties), type=type or each.type)
                for each in (self.alone, self.in_stack)
            )
        )


@cache
def resources(stack: str) -> tuple[Seen, ...]:
    """Everything that a stack's preview would leave."""
    checkout = working_folder(ROOT)
    with rehearsal(find(print), stack, Runs()) as folder:
        problems = preview(folder, checkout, ()).problems
        assert not any(problem.severity == "error" for problem in problems), problems
        made = left(folder, checkout)
    by_urn = {each["urn"]: each for each in made}
    return tuple(_seen(each, by_urn.get(each.get("provider", "").rpartition("::")[0])) for each in made)


def _seen(resource: Any, provider: Any) -> Seen:
    alone = AnalyzedResource(
        type=resource["type"],
        urn=resource["urn"],
        name=name_of(resource["urn"]),
        properties=_public(resource["inputs"]),
        provider=None if provider is None else _provider(provider),
        parent=resource.get("parent", ""),
    )
    in_stack = replace(
        alone,
        properties=_public(resource["outputs"]),
        dependencies=tuple(resource.get("dependencies", ())),
        property_dependencies={k: v for k, v in resource.get("propertyDependencies", {}).items() if v},
    )
    return Seen(alone, in_stack)


def _provider(state: Any) -> AnalyzedProvider:
    return AnalyzedProvider(state["type"], state["urn"], name_of(state["urn"]), _public(state["inputs"]))


def _public(state: Any) -> PropertyMap:
    """The values of a state, without the SDK's own keys, which rules do not see."""
    struct = Struct()
    struct.update({key: _on_wire(value) for key, value in state.items() if not key.startswith("__")})
    return from_struct(struct)


def _on_wire(value: Any) -> Any:
    if isinstance(value, list):
        return [_on_wire(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get(SIGNATURE) == SECRET:
        return {SIGNATURE: SECRET, "value": _on_wire(json.loads(value["plaintext"]))}
    return {key: _on_wire(each) for key, each in value.items()}


def findings(pack: PolicyHost, alone: Sequence[Seen], stack: Sequence[Seen]) -> list[Finding]:
    """What the pack finds in single resources, and in the stack as a whole."""
    found = [finding for each in alone for finding in pack.analyze(each.alone)]
    return [*found, *pack.analyze_stack([each.in_stack for each in stack])]
