"""The production stacks as the policies see them, planned without a cloud, to be damaged by tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from local.engine.policies.packs import analyzed, analyzed_for_stack

from cloud_stacks.checkouts import working_folder
from cloud_stacks.offline import plan
from cloud_stacks.policies.host import AnalyzedResource, Finding, PolicyHost
from local.plugins.values import PropertyMap

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
    """Everything in a stack's plan."""
    made = plan(working_folder(ROOT), stack, ())
    assert made.ok, made.events
    by_urn = {each.urn: each for each in made.resources}
    found = []
    for each in made.resources:
        provider = by_urn.get(each.provider.rpartition("::")[0])
        public = {key: value for key, value in each.inputs.items() if not key.startswith("__")}
        found.append(Seen(analyzed(each, provider, public), analyzed_for_stack(each, provider)))
    return tuple(found)


def findings(pack: PolicyHost, alone: Sequence[Seen], stack: Sequence[Seen]) -> list[Finding]:
    """What the pack finds in single resources, and in the stack as a whole."""
    found = [finding for each in alone for finding in pack.analyze(each.alone)]
    return [*found, *pack.analyze_stack([each.in_stack for each in stack])]
