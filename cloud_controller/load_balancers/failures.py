"""Which operations of a change are still attempted after one has failed: the one rule for executor and clouds. Pure.

A rejected setting or a missing permission must not keep dead nodes in service, so changes of members continue.
Everything else depends on what came before: no listener without its pool, no deletion before its successor. Pools keep
what listeners were that are given back, so pools wait with listeners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cloud_controller.cloud_errors import CloudError, LeftOut, Postponed, Throttled, Unavailable
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.load_balancers.operations import (
    AddMembers,
    DeletePool,
    Operation,
    OperationResult,
    PutListener,
    PutPool,
    RemoveMembers,
)


class Failures:
    """The failed operations of one Service so far."""

    def __init__(self) -> None:
        self._failed: list[object] = []
        self._ended = False
        self._listener_waits = False
        self._without_successors: set[tuple[str, str]] = set()
        """The pools whose additions the cloud has refused whole."""

    def record(self, operation: object, error: Exception | None) -> None:
        """Record the outcome of an operation. What only has to wait, or was made but for a part, has not failed."""
        if isinstance(error, Postponed):
            self._listener_waits = self._listener_waits or isinstance(operation, PutListener)
        if isinstance(operation, AddMembers) and isinstance(error, LeftOut):
            done = OperationResult(operation, error).done
            if isinstance(done, AddMembers) and not done.members:
                self._without_successors.add((operation.id, operation.pool))
        if error is None or isinstance(error, Postponed | LeftOut):
            return
        self._failed.append(operation)
        # While the cloud does not answer, or after an error of Kubernetes, no further operation would succeed.
        self._ended = self._ended or isinstance(error, Throttled | Unavailable) or not isinstance(error, CloudError)

    def permit(self, operation: object) -> bool:
        """Whether the operation may be attempted now."""
        if self._listener_waits and isinstance(operation, PutPool | DeletePool):
            return False
        if isinstance(operation, RemoveMembers) and (operation.id, operation.pool) in self._without_successors:
            return False
        if not self._failed:
            return True
        if self._ended:
            return False
        if isinstance(operation, AddMembers):
            return True
        # Removed members need successors, so their addition must have succeeded.
        return isinstance(operation, RemoveMembers) and not any(
            isinstance(each, AddMembers) and each.pool == operation.pool for each in self._failed
        )


def one_by_one(
    operations: Iterable[Operation], functions: Mapping[type, Callable[[Any], ObservedLoadBalancer | None]]
) -> list[OperationResult]:
    """`LoadBalancers.perform` of a cloud whose API takes operations singly.

    `functions`: for each type of operation, one that raises CloudError, and returns the load balancer that it created.
    """
    failures = Failures()
    results: list[OperationResult] = []
    for operation in operations:
        if failures.permit(operation):
            try:
                result = OperationResult(operation, created=functions[type(operation)](operation))
            except CloudError as error:
                result = OperationResult(operation, error)
            failures.record(operation, result.error)
            results.append(result)
    return results
