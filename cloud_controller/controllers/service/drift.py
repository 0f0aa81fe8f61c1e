"""Tells changes that somebody else made in the cloud from those that Kubernetes asks for.

A plan follows from what the cloud has and from everything else. If it would be empty for what this process left in the
cloud, then the cloud differs from that, and nothing else explains the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.load_balancers.operations import AddMembers, Operation
from cloud_controller.plan import Plan

Observed = Sequence[ObservedLoadBalancer]


class Left:
    """The load balancers of each Service (NAMESPACE/NAME) when nothing was left to do. Of other processes, nothing."""

    def __init__(self) -> None:
        self._left: dict[str, Observed] = {}

    def note(self, key: str, observed: Observed) -> None:
        """Nothing is left to do for this Service."""
        self._left[key] = observed

    def forget(self, keys: Iterable[str]) -> None:
        """These Services are gone, or we change their load balancers ourselves."""
        for key in keys:
            self._left.pop(key, None)

    def differs(self, key: str, observed: Observed, plan: Callable[[Observed], Plan]) -> bool:
        """Whether somebody else changed the load balancers: `plan` has changes for `observed`, but for what we left
        it has none."""
        left = self._left.get(key)
        return left is not None and left != observed and not plan(left).changes


def corrections(plan: Plan) -> int:
    """How many changes of this plan undo something in the cloud.

    Added members do not count: the cloud itself removes those whose machines it has terminated.
    """
    operations = (action.operation for action in plan.changes)
    return sum(isinstance(operation, Operation) and not isinstance(operation, AddMembers) for operation in operations)
