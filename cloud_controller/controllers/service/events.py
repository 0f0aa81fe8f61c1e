"""Reports the progress of a Service's load balancer as Kubernetes Events, with upstream's reasons."""

from __future__ import annotations

from collections.abc import Iterable

from cloud_controller.cloud_errors import Postponed
from cloud_controller.controllers.service.apply import HandingOver
from cloud_controller.controllers.service.plan import NO_NODES, ServicePlan
from cloud_controller.controllers.service.status import SetCondition, SetIngress
from cloud_controller.controllers.service.summary import Summary
from cloud_controller.events import Events
from cloud_controller.kube import Object
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.load_balancers.operations import AddMembers, Operation, RemoveMembers
from cloud_controller.plan import Action

Reported = tuple[str, str]
"""Reason and message of an event."""


class ServiceEvents:
    """The events of one reconcile of a Service. A reconcile that changes nothing reports nothing.

    `reported`: events of earlier reconciles that this one must not repeat, because it continues their wait.
    """

    def __init__(self, events: Events, service: Object, *, wanted: bool, reported: Iterable[Reported] = ()) -> None:
        self._events = events
        self._service = service
        self._wanted = wanted
        self._reported = {*reported}
        self._on_completion: Reported | None = None
        self._summary = Summary()
        self._hosts_only = False

    @property
    def reported(self) -> frozenset[Reported]:
        """The events reported so far."""
        return frozenset(self._reported)

    def before(self, found: ServicePlan, *, again: bool = False) -> None:
        """A plan with changes is about to be applied. `again`: only what the cloud has left out before."""
        # It keeps its load balancer until its author acknowledges that it is left to another controller.
        self._wanted = self._wanted or bool(found.plan.held)
        operations = [action.operation for action in found.plan.changes]
        conditions = [operation for operation in operations if isinstance(operation, SetCondition)]
        for condition in conditions:
            if condition.message is not None:
                self._warning(condition.reason, condition.message)
        operations = [operation for operation in operations if operation not in conditions]
        in_cloud = [operation for operation in operations if isinstance(operation, Operation)]
        self._hosts_only = bool(operations) and all(isinstance(each, AddMembers | RemoveMembers) for each in operations)
        if not self._wanted:
            if found.preserves:
                self._normal("PreservedOnDelete", f"Load balancer {found.preserves} is kept and no longer has an owner")
            elif in_cloud and not found.again:
                self._normal("DeletingLoadBalancer", "Deleting load balancer")
            if found.deleted:
                self._on_completion = ("DeletedLoadBalancer", "Deleted load balancer")
            return
        if self._hosts_only or again:
            # As upstream: without nodes, report only the warning.
            if not any(reason == NO_NODES for reason, _ in found.warnings):
                self._on_completion = self._on_completion or (
                    "UpdatedLoadBalancer",
                    "Updated load balancer with new hosts",
                )
        elif in_cloud:
            self._normal("EnsuringLoadBalancer", "Ensuring load balancer")
            self._on_completion = ("EnsuredLoadBalancer", "Ensured load balancer")
        elif any(isinstance(operation, SetIngress) for operation in operations):
            self._on_completion = ("EnsuredLoadBalancer", "Ensured load balancer")
        if in_cloud and not again:
            for reason, message in found.warnings:
                self._warning(reason, message)

    def done(self, action: Action, before: ObservedLoadBalancer | None) -> None:
        """An action was carried out; see `Summary.add`."""
        self._summary.add(action, before)

    def postponed(self, why: Postponed) -> None:
        """A part of the plan is postponed: old members must keep serving, or the cloud is not ready."""
        if isinstance(why, HandingOver):
            self._normal("HandingOver", f"Old members keep serving: {why}")
        else:
            self._normal("Waiting", str(why))

    def waits_long(self, why: str, seconds: float) -> None:
        """The cloud has not been ready for this long."""
        self._warning("StillWaiting", f"Waiting for more than {seconds / 60:.0f} minutes: {why}")

    def applied(self) -> None:
        """The plan has been applied."""
        self._hosts_only = False

    def completed(self) -> None:
        """Nothing is left to do here; the cloud may still be working on changes of a load balancer that serves."""
        if self._on_completion is not None:
            reason, message = self._on_completion
            done = str(self._summary) if self._wanted else ""
            if not done and reason == "UpdatedLoadBalancer":
                return  # The cloud has refused every new member.
            self._normal(reason, f"{message}: {done}" if done else message)

    def failed(self, error: Exception) -> None:
        """The reconcile failed."""
        if self._wanted and self._hosts_only:
            self._warning("UpdateLoadBalancerFailed", f"Error updating load balancer with new hosts: {error}")
        else:
            self._warning("SyncLoadBalancerFailed", f"Error syncing load balancer: {error}")

    def _normal(self, reason: str, message: str) -> None:
        if (reason, message) not in self._reported:
            self._reported.add((reason, message))
            self._events.normal(self._service, reason, message)

    def _warning(self, reason: str, message: str) -> None:
        if (reason, message) not in self._reported:
            self._reported.add((reason, message))
            self._events.warning(self._service, reason, message)
