"""What people read at a Service while its load balancer is worked on: events with upstream's reasons."""

from __future__ import annotations

from collections.abc import Iterable

from cloud_controller.cloud_errors import Postponed
from cloud_controller.controllers.service.apply import HandingOver
from cloud_controller.controllers.service.plan import NO_NODES, RemoveFinalizer, ServicePlan, SetIngress
from cloud_controller.events import Events
from cloud_controller.kube import Object
from cloud_controller.load_balancers.operations import AddMembers, Operation, RemoveMembers

Said = tuple[str, str]
"""Reason and message of an event."""


class ServiceEvents:
    """The events of one visit to a Service; a visit that changes nothing says nothing.

    `said`: the events of earlier visits that this one does not repeat, for it goes on with their wait.
    """

    def __init__(self, events: Events, service: Object, *, wanted: bool, said: Iterable[Said] = ()) -> None:
        self._events = events
        self._service = service
        self._wanted = wanted
        self._said = {*said}
        self._at_rest: Said | None = None
        self._hosts_only = False
        self._preserved = False

    @property
    def said(self) -> frozenset[Said]:
        """The events so far."""
        return frozenset(self._said)

    def before(self, found: ServicePlan) -> None:
        """A plan with changes is about to be carried out."""
        operations = [action.operation for action in found.plan.changes]
        in_cloud = [operation for operation in operations if isinstance(operation, Operation)]
        self._hosts_only = all(isinstance(operation, AddMembers | RemoveMembers) for operation in operations)
        if not self._wanted:
            if found.preserves:
                self._normal("PreservedOnDelete", f"Load balancer {found.preserves} stays, and belongs to nobody now")
                self._preserved = True
            elif in_cloud and not found.again:
                self._normal("DeletingLoadBalancer", "Deleting load balancer")
            if any(isinstance(operation, RemoveFinalizer) for operation in operations) and not self._preserved:
                self._at_rest = ("DeletedLoadBalancer", "Deleted load balancer")
            return
        if self._hosts_only:
            # As upstream: without any node there is only the warning.
            if not any(reason == NO_NODES for reason, _ in found.warnings):
                self._at_rest = self._at_rest or ("UpdatedLoadBalancer", "Updated load balancer with new hosts")
        elif in_cloud:
            self._normal("EnsuringLoadBalancer", "Ensuring load balancer")
            self._at_rest = ("EnsuredLoadBalancer", "Ensured load balancer")
        elif any(isinstance(operation, SetIngress) for operation in operations):
            self._at_rest = ("EnsuredLoadBalancer", "Ensured load balancer")
        if in_cloud:
            for reason, message in found.warnings:
                self._warning(reason, message)

    def postponed(self, why: Postponed) -> None:
        """A part of the plan has to wait: members that should go still serve, or the cloud is not ready."""
        if isinstance(why, HandingOver):
            self._normal("HandingOver", f"Old members serve on for a while: {why}")
        else:
            self._normal("Waiting", str(why))

    def carried_out(self) -> None:
        """That plan is done."""
        self._hosts_only = False

    def at_rest(self) -> None:
        """Nothing is left to do, and the cloud has nothing left to make."""
        if self._at_rest is not None:
            self._normal(*self._at_rest)

    def failed(self, error: Exception) -> None:
        """The visit ended in an error."""
        if self._wanted and self._hosts_only:
            self._warning("UpdateLoadBalancerFailed", f"Error updating load balancer with new hosts: {error}")
        else:
            self._warning("SyncLoadBalancerFailed", f"Error syncing load balancer: {error}")

    def _normal(self, reason: str, message: str) -> None:
        if (reason, message) not in self._said:
            self._said.add((reason, message))
            self._events.normal(self._service, reason, message)

    def _warning(self, reason: str, message: str) -> None:
        if (reason, message) not in self._said:
            self._said.add((reason, message))
            self._events.warning(self._service, reason, message)
