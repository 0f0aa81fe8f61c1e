"""The security groups of load balancers of both kinds: which clients may connect, and how traffic reaches the nodes.

Each load balancer has its own front groups, with a rule for each port and CIDR; several groups if the rules exceed
the quota. All load balancers of a cluster share one more group, and one rule in the nodes' groups admits its
traffic, however many Services exist. Groups that users name are never changed.

A group gets its owner's tags at creation and is found again by name. TO SURVIVE A CRASH AFTER ANY CALL, callers must
call `join` only when a resource with the Service's tags exists, and delete that resource after `delete`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cloud_controller.clouds.aws.attributes import texts
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.facts import SecurityGroup
from cloud_controller.clouds.aws.ip_permissions import MOST_GROUPS, MOST_RULES
from cloud_controller.clouds.aws.names import LOAD_BALANCER_TAG
from cloud_controller.clouds.aws.security_group_calls import SecurityGroupCalls
from cloud_controller.clouds.aws.security_rules import distributed
from cloud_controller.clouds.aws.shared_group import SharedGroup
from cloud_controller.clouds.aws.upstream import is_name, own_groups
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import CLUSTER_TAG, LoadBalancerModel, Owner


class SecurityGroups:
    """The security groups of one cluster's load balancers. Safe to share between threads."""

    def __init__(self, api: Api, config: Config, vpc_state: VpcState) -> None:
        self._cluster_id = config.cluster_id
        self._vpc_state = vpc_state
        self._calls = SecurityGroupCalls(api, vpc_state)
        self._shared = SharedGroup(api, config, vpc_state, self._calls)

    def attributes(self, load_balancer_id: str, attached: Collection[str]) -> dict[str, Value | None]:
        """`ingress_rules` and `security_groups` in the model of a load balancer with these groups.

        Deviations that a model cannot express appear as a difference: `security_groups` is None if the shared group
        is missing, or the nodes do not admit it; `ingress_rules` is () if a front group exists but is not attached.
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
        """The IDs of this controller's groups for a load balancer: its front groups and the shared group."""
        shared = self._shared.group()
        groups = (*self._front(load_balancer_id, attached).values(), *(() if shared is None else (shared,)))
        return frozenset(group.id for group in groups)

    def has_front(self, load_balancer_id: str) -> bool:
        """Whether a front group with the Service's tags exists for it."""
        return bool(self._front(load_balancer_id))

    def left_behind(self, load_balancer_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """The tags of the cluster's groups whose load balancer is not in `load_balancer_ids`, by load balancer ID."""
        present = self._vpc_state.facts().front_groups.keys() - {*load_balancer_ids}
        fronts = {of: [*self._front(of).values()] for of in sorted(present)}
        return {of: groups[0].tags for of, groups in fronts.items() if groups}

    def adopt(self, load_balancer_id: str, attached: Collection[str], tags: Mapping[str, str]) -> None:
        """Tag the groups that upstream created for a load balancer, to adopt them."""
        marked = {**tags, LOAD_BALANCER_TAG: load_balancer_id}
        for group in own_groups(self._vpc_state.facts().groups, load_balancer_id, attached):
            self._calls.tag(group, marked)

    def front(self, load_balancer_id: str, model: LoadBalancerModel) -> tuple[str, ...]:
        """The IDs of the groups that admit clients: front groups with the model's rules, and the groups that users
        named.

        Creates and changes front groups where they differ. `build` has checked that the rules fit.
        """
        named = texts(model.attributes["security_groups"])
        if model.attributes["ingress_rules"] is None:
            return named
        rules = frozenset(texts(model.attributes["ingress_rules"]))
        present = self._front(load_balancer_id)
        # AWS does not order groups. Numbered names let a repetition find them; an adopted group keeps its name, by
        # which upstream would find it again.
        numbered = [load_balancer_id, *(f"{load_balancer_id}-{number}" for number in range(2, MOST_GROUPS + 1))]
        names = [*(name for name in present if name not in numbered), *numbered]
        known = [present[name].ingress if name in present else frozenset() for name in names]
        wanted = distributed(known, rules, MOST_RULES)
        tags = {**model.tags, LOAD_BALANCER_TAG: load_balancer_id}
        owner = Owner.of_tags(model.tags)
        description = f"Clients of the load balancer of {owner}"[:255]
        ids = []
        for name, ingress in zip(names[: len(wanted)], wanted, strict=True):
            group = present.get(name) or self._calls.create(name, description, tags)
            ids.append(self._calls.change(group, ingress, tags).id)
        return (*ids, *named)

    def join(self, load_balancer_id: str) -> tuple[str, ...]:
        """The shared group, which a load balancer needs to reach nodes; created and admitted by the nodes if necessary.

        Empty if the cloud config says that the administrator opens the nodes.
        """
        return self._shared.join(load_balancer_id)

    def drop(self, load_balancer_id: str, kept: Collection[str]) -> None:
        """Delete the front groups that a load balancer is no longer in; groups still in use are deleted with it."""
        shared = self._shared.group()
        for group in self._front(load_balancer_id).values():
            if shared is not None and shared.id in kept:
                # Upstream opened the nodes to this group; now they are open to the shared group.
                self._shared.close_to(group.id)
            if group.id not in kept:
                self._calls.delete_unused(group)

    def delete(self, load_balancer_id: str, names: Collection[str] = ()) -> bool:
        """Delete a deleted load balancer's groups; with the last one, the shared group and the nodes' rule.

        `names`: see `SharedGroup.leave`.

        Makes one attempt without waiting. False: AWS reports that a group is still in use (for minutes); call again
        later. Raises Conflict if that does not end by itself.
        """
        if not self._shared.leave(load_balancer_id, names):
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
