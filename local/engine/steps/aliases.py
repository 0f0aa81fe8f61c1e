"""The former names under which a resource may be in the state. Pure: a goal and its parents' names in, URNs out."""

from __future__ import annotations

from collections.abc import Mapping

from local.engine.program.goal import Alias, Goal
from local.plugins import urn as urns


def former_urns(goal: Goal, urn: str, stack: str, project: str, parents: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The URNs that a resource may have had, likeliest first: from its own aliases, and from its parent's.

    `parents` has, by present URN, the possible former URNs of each resource registered before.
    """
    named = [u for alias in goal.aliases for u in _collapse(alias, goal, stack, project, parents)]
    inherited = [
        _inherited(child, goal.parent, parent) for parent in parents.get(goal.parent, ()) for child in (urn, *named)
    ]
    return [u for u in dict.fromkeys([*named, *inherited]) if u != urn]


def _collapse(
    alias: Alias, goal: Goal, stack: str, project: str, parents: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    if alias.urn:
        return (alias.urn,)
    if alias.no_parent:
        found: tuple[str, ...] = ("",)
    elif alias.parent:
        # The parent in an alias may itself have had another name when this was its child.
        found = (alias.parent, *parents.get(alias.parent, ()))
    else:
        found = (goal.parent,)
    where = (alias.type or goal.type, alias.name or goal.name, alias.stack or stack, alias.project or project)
    return tuple(_child(parent, *where) for parent in found)


def _inherited(child: str, parent: str, former_parent: str) -> str:
    """The child's URN under its parent's former name; its own name started with the parent's in either case."""
    name, prefix = urns.name_of(child), urns.name_of(parent)
    if name.startswith(prefix):
        name = urns.name_of(former_parent) + name.removeprefix(prefix)
    return _child(former_parent, urns.type_of(child), name, urns.stack_of(child), urns.project_of(child))


def _child(parent: str, type: str, name: str, stack: str, project: str) -> str:
    if parent and urns.type_of(parent) != urns.STACK_TYPE:
        # A child was in its parent's former stack and project, whatever these are now.
        stack, project = urns.stack_of(parent), urns.project_of(parent)
    return urns.make(stack, project, parent, type, name)
