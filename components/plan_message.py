"""The plan of a `CloudController` as a message, so that a plain preview shows it: displays do not show inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pulumi
from pulumi.output import Unknown

from cloud_controller.plan import Action, ActionKind

from . import messages

LIMIT: Final = 200
"""The most lines to print: a plan for thousands of nodes would bury everything else."""


def plan_hook(name: str) -> pulumi.ResourceHook:
    """A hook for the `CloudController` `name`: before a create or an update, in previews too, it logs the plan."""

    def show(args: pulumi.ResourceHookArgs) -> None:
        if lines := plan_lines((args.new_inputs or {}).get("plan"), planning=pulumi.runtime.is_dry_run()):
            messages.info(args.urn, "\n".join(lines))

    # For display only: an error here must not block the change of a cluster.
    options = pulumi.ResourceHookOptions(on_dry_run=True, ignore_errors=True)
    return pulumi.ResourceHook(f"plan-of-{name}", show, options)


def plan_lines(plan: Any, *, planning: bool) -> list[str]:
    """A title with counts, then a line an action and, in a preview, one a changed field; empty without a plan.

    A plan that is too long loses its fields first. `planning`: in a preview. The update observes again what a preview
    assumes.
    """
    plan = _shown(plan)
    if isinstance(plan, str):
        return [f"plan: {plan}"]
    actions = [Action.from_json(entry) for entry in plan or ()]
    if not actions:
        return []
    kinds = Counter(action.kind for action in actions if action.pending)
    counts = [f"{kinds[kind]} to {kind}" for kind in ActionKind if kinds[kind]]
    lines = [f"plan: {', '.join(counts) or 'nothing to do'}"]
    fields = sum(len(action.changes) for action in actions) if planning else 0
    with_fields = planning and len(actions) + fields <= LIMIT
    for action in actions[:LIMIT]:
        lines.append(f"  {action if planning else replace(action, assumed=False)}")
        lines += [f"       {change}" for change in action.changes if with_fields]
    if left_out := len(actions) + fields - (len(lines) - 1):
        lines.append(f"  … {left_out} more lines; `--json` has the whole plan")
    return lines


def _shown(value: Any) -> Any:
    """The value with placeholders for unknown and secret parts."""
    if isinstance(value, Unknown):
        return "[unknown]"
    if isinstance(value, pulumi.Output):
        return "[secret]"
    if isinstance(value, Mapping):
        return {key: _shown(each) for key, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list | tuple) else value
