"""A controller's process, reduced to what it does to one Service's load balancer: read, plan, perform, again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from cloud_controller import apply
from cloud_controller.cloud import CloudError, Conflict, LeftOut, Postponed, Throttled, Unavailable
from cloud_controller.controllers.service.apply import perform
from cloud_controller.kube import Object
from cloud_controller.load_balancers.diff import diff
from cloud_controller.load_balancers.model import LoadBalancerModel, LoadBalancerState, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.operations import (
    AddMembers,
    CreateLoadBalancer,
    LoadBalancers,
    Operation,
    OperationResult,
)
from tests.contract.harness import UID, Harness, desired

_PASSING = (Conflict, Postponed, Throttled, Unavailable)
"""After these, a controller tries again."""
ROUNDS = 40
"""More than any change needs: a process that gets there does not converge."""


class Process:
    """A new process for one cluster. Its requests pass `harness.wire`."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self.cloud = harness.new_cloud()

    @property
    def load_balancers(self) -> LoadBalancers:
        """The cloud's."""
        assert self.cloud.load_balancers is not None
        return self.cloud.load_balancers

    def token(self, uid: str = UID) -> str:
        """The client token of a Service's first load balancer."""
        return Owner(self.cloud.cluster_id, uid, "default", "web").client_token

    def desired(self, service: Object, nodes: Sequence[Object]) -> LoadBalancerModel:
        """What the Service should have."""
        return desired(self.cloud, service, nodes)

    # ------------------------------------------------------------------------------------------------- single steps

    def create(self, model: LoadBalancerModel, *, token: str | None = None) -> ObservedLoadBalancer:
        """Perform one creation. Raises its error."""
        (result,) = self.load_balancers.perform(None, [CreateLoadBalancer(model, token or self.token())])
        if result.error is not None:
            raise result.error
        assert result.created is not None, "a creation returns what it made"
        return result.created

    def served(self, service: Object, nodes: Sequence[Object]) -> ObservedLoadBalancer:
        """The Service's load balancer, ready."""
        uid = str(service["metadata"]["uid"])
        self.bring(self.desired(service, nodes), uid)
        return self.only(uid)

    def only(self, uid: str = UID) -> ObservedLoadBalancer:
        """The Service's only load balancer."""
        (found,) = self._observe(uid, None)
        return found

    def own(self) -> list[str]:
        """The ids of the cluster's own load balancers among all that it reads, without remains of any."""
        found = [lb for lb in self.load_balancers.read() if lb.state is not LoadBalancerState.PARTIAL]
        return [lb.id for lb in found if lb.owner is not None and lb.owner.cluster_id == self.cloud.cluster_id]

    def change(self, lb: ObservedLoadBalancer, *operations: Operation) -> Sequence[OperationResult]:
        """Perform one change."""
        return self.load_balancers.perform(lb, operations)

    # ----------------------------------------------------------------------------------------------- until it is done

    def bring(self, model: LoadBalancerModel | None, uid: str = UID) -> None:
        """Do what a controller does until the Service has this load balancer, or (None) nothing is left of it."""
        known: list[ObservedLoadBalancer] | None = None
        trouble: Exception | None = None
        operations: Sequence[Operation] = ()
        for _ in range(ROUNDS):
            try:
                known = self._observe(uid, known)
                operations = self._operations(model, known, uid)
                if not operations and all(lb.settled for lb in known) and not (model is None and known):
                    return
                trouble = self._perform(operations, known)
            except _PASSING as error:
                trouble = error
            if trouble is not None or any(isinstance(each, CreateLoadBalancer) for each in operations):
                known = None  # There may be more than is known: everything is read again.
            self._harness.settle()
        raise trouble or AssertionError(f"did not converge in {ROUNDS} rounds: {known}")

    def brought(self, model: LoadBalancerModel) -> tuple[ObservedLoadBalancer, dict[str, set[tuple[str, int]]]]:
        """The load balancer once all that is left to do are members that the cloud leaves out, and these by pool."""
        for _ in range(ROUNDS):
            found = self._observe(UID, None)
            operations = self._operations(model, found, UID)
            if not operations and found and all(lb.settled for lb in found):
                return found[0], {}
            run = apply.Run(cast("Any", None), self.cloud, cast("Any", None), {lb.id: lb for lb in found})
            outcomes = [*perform(operations, run)]
            errors = [each.error for each in outcomes if each.error is not None]
            assert all(isinstance(each, Postponed | LeftOut) for each in errors), errors
            self._harness.settle()
            if operations and all(
                isinstance(each.operation, AddMembers) and isinstance(each.error, LeftOut) for each in outcomes
            ):
                left = {
                    each.operation.pool: {*each.error.members}
                    for each in outcomes
                    if isinstance(each.operation, AddMembers) and isinstance(each.error, LeftOut)
                }
                return self.only(), left
        raise AssertionError(f"did not converge in {ROUNDS} rounds: {operations}")

    def _observe(self, uid: str, known: Sequence[ObservedLoadBalancer] | None) -> list[ObservedLoadBalancer]:
        """As a controller does: first by the Service's UID, then by what it knows."""
        found = self.load_balancers.read({uid}) if not known else self.load_balancers.read((), {lb.id for lb in known})
        return [lb for lb in found if lb.owner is not None and self._owns(lb.owner, uid)]

    def _owns(self, owner: Owner, uid: str) -> bool:
        return (owner.cluster_id, owner.uid) == (self.cloud.cluster_id, uid)

    def _operations(
        self, model: LoadBalancerModel | None, known: Sequence[ObservedLoadBalancer], uid: str
    ) -> list[Operation]:
        catalogue = self.load_balancers.builder.catalogue.of_class(self._harness.load_balancer_class)
        plan = diff(model, known, catalogue, target="service/default/web", client_token=self.token(uid))
        return [cast("Operation", action.operation) for action in plan.changes]

    def _perform(self, operations: Sequence[Operation], known: Sequence[ObservedLoadBalancer]) -> CloudError | None:
        """The first error. Raises one that a controller does not simply try again."""
        nothing = cast("Any", None)
        run = apply.Run(nothing, self.cloud, nothing, {lb.id: lb for lb in known})
        errors = [outcome.error for outcome in perform(operations, run) if outcome.error is not None]
        for error in errors:
            if not isinstance(error, _PASSING):
                raise error
        return cast("CloudError | None", errors[0] if errors else None)
