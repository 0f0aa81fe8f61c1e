"""Whether to believe a cloud that shows nothing of the load balancers that Services have.

With the cloud config of another account, every load balancer looks deleted: WITHOUT THIS CHECK, FINALIZERS WOULD BE
RELEASED, AND LOAD BALANCERS MADE IN THAT ACCOUNT. If a Service says that it has one and the cloud shows none of it, the
machines tell whether it is the cluster's account (`InstanceSnapshot.anchored`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.seen_deletions import SeenDeletions
from cloud_controller.controllers.service.cache import LoadBalancerCache
from cloud_controller.controllers.service.rules import Rules, says_it_has_one, wants_load_balancer
from cloud_controller.kube import Object, ObjectCache
from cloud_controller.load_balancers.model import LoadBalancerBuilder, LoadBalancerState, ObservedLoadBalancer, Owner

_ENDING = (LoadBalancerState.DELETING, LoadBalancerState.PARTIAL)


def shows(load_balancers: Iterable[ObservedLoadBalancer], uid: str) -> bool:
    """Whether one of these, which may be the Service's, is: the Service owns it or a part of it, or may adopt it."""
    return any(lb.adoptable is not None or any(owner.uid == uid for owner in lb.owners) for lb in load_balancers)


def _stays(load_balancers: Iterable[ObservedLoadBalancer], uid: str) -> bool:
    """Whether something of the Service stays in the cloud."""
    return shows((lb for lb in load_balancers if lb.state not in _ENDING), uid)


def lacking(
    services: Iterable[Object],
    load_balancers: Sequence[ObservedLoadBalancer],
    builder: LoadBalancerBuilder,
    rules: Rules,
    *,
    identified: bool,
) -> bool:
    """Whether one of the Services says that it has a load balancer of which the cloud shows nothing. Pure.

    `identified`: see `says_it_has_one`.
    """
    owners = {owner.uid for lb in load_balancers for owner in lb.owners}
    adoptable = {lb.adoptable.name for lb in load_balancers if lb.adoptable is not None}

    def shown(metadata: Object) -> bool:
        owner = Owner(rules.cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])
        return owner.uid in owners or bool(adoptable and builder.foreign_name(owner) in adoptable)

    return any(says_it_has_one(each, rules, builder, identified) and not shown(each["metadata"]) for each in services)


class Anchor:
    """For the daemon, which knows what it has deleted itself. Asks the cloud only where something is in doubt."""

    def __init__(
        self,
        machines: InstanceSnapshot,
        nodes: ObjectCache,
        cache: LoadBalancerCache,
        builder: LoadBalancerBuilder,
        rules: Rules,
    ) -> None:
        self._machines = machines
        self._nodes = nodes
        self._cache = cache
        self._builder = builder
        self._rules = rules
        self._known = SeenDeletions()
        """The Services of which this process itself has left nothing."""
        self._doubts = False
        """By the last look. New Services say nothing themselves."""

    def look(self, services: Iterable[Object]) -> None:
        """All load balancers have been read. Raises CloudError."""
        unknown = [service for service in services if service["metadata"]["uid"] not in self._known]
        self._doubts = self._lacks(unknown, self._cache.all())
        self._doubts = self._doubts and not self._anchored(afresh=True)

    def doubts(self, service: Object, observed: Sequence[ObservedLoadBalancer]) -> bool:
        """Whether nothing may be done for this Service, for which the cloud shows this. Raises CloudError."""
        uid = service["metadata"]["uid"]
        if shows(observed, uid):
            if _stays(observed, uid):
                self._known.forget(uid)
            return False
        known = uid in self._known
        if known and not wants_load_balancer(service, self._rules, self._builder):
            return False
        if not known and self._lacks([service], observed):
            self._doubts = not self._anchored(afresh=True)
        elif self._doubts:
            self._doubts = not self._anchored(afresh=False)
        return self._doubts

    def changed(self, uid: str, left: Iterable[ObservedLoadBalancer]) -> None:
        """This process has changed what this Service has, and left this: if that is nothing, it will be no surprise."""
        if _stays(left, uid):
            self._known.forget(uid)
        else:
            self._known.remember(uid)

    def _lacks(self, services: Iterable[Object], load_balancers: Sequence[ObservedLoadBalancer]) -> bool:
        identified = self._machines.identifies(self._nodes.items())
        return lacking(services, load_balancers, self._builder, self._rules, identified=identified)

    def _anchored(self, *, afresh: bool) -> bool:
        """`afresh`: not by what was read of machines before the load balancers: credentials may have changed since."""
        nodes = self._nodes.items()
        return self._machines.anchored(nodes, after=self._cache.asked_at) if afresh else self._machines.anchored(nodes)
