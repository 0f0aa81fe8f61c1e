"""The security groups of load balancers, of both kinds: who may reach them, and how they reach the nodes.

Each load balancer has a group of its own in front, with a rule for each port and range of clients; where those are more
than a group may have, it has several. All load balancers of a cluster are in one shared group besides, and one rule on
the nodes' groups lets in what is in that, however many Services there are. Groups that people name are never changed.

A group carries its owner's tags from the call on that makes it, and is found again by its name. To be safe from a crash
after any call, callers `join` only when something with the Service's tags exists, and delete that after `delete`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cloud_controller.clouds.aws.attributes import texts
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.names import LOAD_BALANCER_TAG
from cloud_controller.clouds.aws.security_group_calls import SecurityGroupCalls
from cloud_controller.clouds.aws.security_group_rules import MOST_GROUPS, distributed
from cloud_controller.clouds.aws.shared_group import SharedGroup
from cloud_controller.clouds.aws.upstream import is_name, own_groups
from cloud_controller.clouds.aws.vpc_state import SecurityGroup, VpcState
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import CLUSTER_TAG, LoadBalancerModel, Owner


class SecurityGroups:
    """The security groups of one cluster's load balancers; safe to share between threads."""

    def __init__(self, api: Api, config: Config, vpc_state: VpcState) -> None:
        self._cluster_id = config.cluster_id
        self._vpc_state = vpc_state
        self._calls = SecurityGroupCalls(api, vpc_state)
        self._shared = SharedGroup(api, config, vpc_state, self._calls)

    def attributes(self, load_balancer_id: str, attached: Collection[str]) -> dict[str, Value | None]:
        """`ingress_rules` and `security_groups` of the model of a load balancer that is in these groups.

        What no model holds makes a difference: `security_groups` None where it lacks the shared group, or the nodes do
        not let that in; `ingress_rules` () where a group of ours was made for it and it is not, or no longer, in it.
        """
        front = self._front(load_balancer_id, attached).values()
        rules: tuple[str, ...] | None = None
        if front:
            complete = all(group.id in attached for group in front)
            rules = tuple(sorted({rule for group in front for rule in group.ingress})) if complete else ()
        return {
            "ingress_rules": rules,
            "security_groups": (
                tuple(sorted(set(attached) - self.own(load_balancer_id, attached)))
                if self._shared.serves(attached)
                else None
            ),
        }

    def own(self, load_balancer_id: str, attached: Collection[str] = ()) -> frozenset[str]:
        """The ids of our groups that a load balancer may be in: those in front of it, and the shared one."""
        shared = self._shared.group()
        groups = (*self._front(load_balancer_id, attached).values(), *(() if shared is None else (shared,)))
        return frozenset(group.id for group in groups)

    def has_front(self, load_balancer_id: str) -> bool:
        """Whether a group of ours, with its Service's tags, was made for it."""
        return bool(self._front(load_balancer_id))

    def left_behind(self, load_balancer_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """The tags of groups of this cluster whose load balancer is not one of these, by its id."""
        present = self._vpc_state.facts().front_groups.keys() - {*load_balancer_ids}
        fronts = {of: [*self._front(of).values()] for of in sorted(present)}
        return {of: groups[0].tags for of, groups in fronts.items() if groups}

    def adopt(self, load_balancer_id: str, attached: Collection[str], tags: Mapping[str, str]) -> None:
        """Make the groups ours that upstream's controller made for a load balancer, which is in those attached."""
        marked = {**tags, LOAD_BALANCER_TAG: load_balancer_id}
        for group in own_groups(self._vpc_state.facts().groups, load_balancer_id, attached):
            self._calls.tag(group, marked)

    def front(self, load_balancer_id: str, model: LoadBalancerModel) -> tuple[str, ...]:
        """The ids of the groups that let clients in: the model's rules in groups of our own, and those people named.

        Makes and changes ours as far as they differ. The rules are no more than fit, which `build` has seen to.
        """
        named = texts(model.attributes["security_groups"])
        if model.attributes["ingress_rules"] is None:
            return named
        rules = frozenset(texts(model.attributes["ingress_rules"]))
        present = self._front(load_balancer_id)
        # AWS has no order of groups; ours have numbers, so that a repetition finds them by name.
        # One that was adopted has a name of its own, by which upstream's controller would find it again.
        numbered = [load_balancer_id, *(f"{load_balancer_id}-{number}" for number in range(2, MOST_GROUPS + 1))]
        names = [*(name for name in present if name not in numbered), *numbered]
        known = [present[name].ingress if name in present else frozenset() for name in names]
        wanted = distributed(known, rules)
        tags = {**model.tags, LOAD_BALANCER_TAG: load_balancer_id}
        owner = Owner.of_tags(model.tags)
        description = f"Clients of the load balancer of {owner}"[:255]
        ids = []
        for name, ingress in zip(names[: len(wanted)], wanted, strict=True):
            group = present.get(name) or self._calls.create(name, description, tags)
            ids.append(self._calls.change(group, ingress, tags).id)
        return (*ids, *named)

    def join(self, load_balancer_id: str) -> tuple[str, ...]:
        """The shared group, in which a load balancer must be to reach nodes: made if there is none, and let in.

        Nothing where the cloud config says that somebody else opens the nodes.
        """
        return self._shared.join(load_balancer_id)

    def drop(self, load_balancer_id: str, kept: Collection[str]) -> None:
        """Delete the groups of our own that a load balancer is no longer in; one still in use goes with it later."""
        shared = self._shared.group()
        for group in self._front(load_balancer_id).values():
            if shared is not None and shared.id in kept:
                # Upstream's controller opened the nodes to it; now they are open to the shared group.
                self._shared.close_to(group.id)
            if group.id not in kept:
                self._calls.delete_unused(group)

    def delete(self, load_balancer_id: str) -> bool:
        """Delete what served a load balancer that is gone; with the last one the shared group and the nodes' rule.

        One attempt, no waiting. False: AWS says that something is still in use (for minutes); call again later. Raises
        Conflict where that does not end by itself.
        """
        if not self._shared.leave(load_balancer_id):
            return False
        fronts = self._front(load_balancer_id).values()
        for group in fronts:
            self._shared.close_to(group.id)
        return all(self._calls.delete(group) for group in fronts)

    def _front(self, load_balancer_id: str, attached: Collection[str] = ()) -> dict[str, SecurityGroup]:
        facts = self._vpc_state.facts()
        groups = facts.front_groups.get(load_balancer_id, ())
        own = [group for group in groups if group.tags.get(CLUSTER_TAG, self._cluster_id) == self._cluster_id]
        own += own_groups(facts.groups, load_balancer_id, attached) if is_name(load_balancer_id) and attached else []
        return {group.name: group for group in sorted(own, key=lambda group: group.name)}
