"""The security group that all load balancers of a cluster share, and the nodes' rule that admits its traffic.

It is created with the first load balancer and deleted with the last one. AWS's lists decide which is the last,
unless this process knows of another. No load balancer can join during that decision.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.facts import SHARED_GROUP_TAG, SecurityGroup
from cloud_controller.clouds.aws.ip_permissions import from_group
from cloud_controller.clouds.aws.names import shared_group_name
from cloud_controller.clouds.aws.security_group_calls import SecurityGroupCalls
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.load_balancers.model import CLUSTER_TAG

_BELIEVED = 120.0
"""Seconds for which a load balancer that joined or was listed is assumed to exist until it leaves, and one that left to
be gone although a list shows it."""


class SharedGroup:
    """The shared group of one cluster. Safe to share between threads."""

    def __init__(
        self,
        api: Api,
        config: Config,
        vpc_state: VpcState,
        calls: SecurityGroupCalls,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._config = config
        self._vpc_state = vpc_state
        self._calls = calls
        self._clock = clock
        self._lock = threading.Lock()
        self._joined: dict[str, float] = {}
        self._listed: dict[str, float] = {}
        self._left: dict[str, float] = {}

    def group(self) -> SecurityGroup | None:
        """The group, if it exists."""
        name = shared_group_name(self._config.cluster_id)
        return next((group for group in self._vpc_state.facts().shared_groups if group.name == name), None)

    def serves(self, attached: Collection[str]) -> bool:
        """Whether a load balancer in these groups is in the shared group as configured, and all nodes' groups admit
        it."""
        group = self.group()
        joined = group is not None and group.id in attached
        if self._config.disable_security_group_ingress:
            return not joined
        if group is None or not joined:
            return False
        nodes = self._vpc_state.facts().node_groups
        return bool(nodes) and all(from_group(group.id) in each.ingress for each in nodes)

    def join(self, load_balancer_id: str) -> tuple[str, ...]:
        """The group, created if necessary and admitted by the nodes; empty with DisableSecurityGroupIngress.

        Raises InvalidConfiguration if the nodes have no security group with the cluster's tag.
        """
        if self._config.disable_security_group_ingress:
            return ()
        with self._lock:
            self._joined[load_balancer_id] = self._clock()
            self._left.pop(load_balancer_id, None)
            nodes = self._vpc_state.facts().node_groups or self._vpc_state.facts(max_age=0).node_groups
            if not nodes:
                why = f"no security group has the tag {self._config.cluster_tag}"
                allowed = (
                    "that tag on the nodes' security group, or [Global] DisableSecurityGroupIngress in the cloud config"
                )
                raise InvalidConfiguration("security groups of the nodes", why, allowed)
            group = self.group() or self._made()
            with self._vpc_state.changing_nodes:
                for each in self._vpc_state.facts().node_groups:
                    self._calls.allow(each, from_group(group.id))
            return (group.id,)

    def close_to(self, group_id: str) -> None:
        """Remove the nodes' rules that admit this group."""
        with self._vpc_state.changing_nodes:
            for each in self._vpc_state.facts().node_groups:
                self._calls.forbid(each, from_group(group_id))

    def leave(self, load_balancer_id: str, names: Collection[str] = ()) -> bool:
        """Record that a load balancer is deleted; with the last one, delete the nodes' rule and the group. False:
        still in use.

        `names`: its names in lists, which differ from its ID if a user chose them.
        """
        with self._lock:
            names = {load_balancer_id, *names}
            if load_balancer_id not in self._left and self._listed.keys().isdisjoint(names):
                # It may be listed by a name that this process has forgotten, so the lists are read again.
                self._listed = {}
            for each in names:
                self._joined.pop(each, None)
                self._listed.pop(each, None)
                self._left[each] = self._clock()
            group = self.group()
            if group is None or self._others(group.id):
                return True
            self.close_to(group.id)
            return self._calls.delete(group)

    def _made(self) -> SecurityGroup:
        cluster_id = self._config.cluster_id
        tags = {self._config.cluster_tag: "owned", CLUSTER_TAG: cluster_id, SHARED_GROUP_TAG: cluster_id}
        description = f"All load balancers of the Services of cluster {cluster_id}"[:255]
        return self._calls.create(shared_group_name(cluster_id), description, tags)

    def _others(self, group_id: str) -> bool:
        now = self._clock()
        # A chosen name may have passed to another load balancer since.
        self._joined, self._listed, self._left = (
            {each: at for each, at in of.items() if at > now - _BELIEVED}
            for of in (self._joined, self._listed, self._left)
        )
        if not self._joined and not self._listed:
            # Lists may still show deleted load balancers; a group kept because of one would never be deleted.
            self._listed = dict.fromkeys(self._members(group_id) - self._left.keys(), now)
        return bool(self._joined or self._listed)

    def _members(self, group_id: str) -> set[str]:
        network = self._api.pages("elbv2", "DescribeLoadBalancers", "LoadBalancers")
        classic = self._api.pages("elb", "DescribeLoadBalancers", "LoadBalancerDescriptions")
        return {
            *(each["LoadBalancerName"] for each in network if group_id in each.get("SecurityGroups", ())),
            *(each["LoadBalancerName"] for each in classic if group_id in each.get("SecurityGroups", ())),
        }
