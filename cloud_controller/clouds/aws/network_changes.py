"""Changes a network load balancer as a whole: security groups, subnets, addresses, attributes and tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from cloud_controller.clouds.aws.attributes import SOURCE_NAT, texts
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.leaving_zones import until_free
from cloud_controller.clouds.aws.listeners import Listeners, has_own_attributes
from cloud_controller.clouds.aws.memory import Known, Memory, View
from cloud_controller.clouds.aws.names import LISTENER_ATTRIBUTES_TAG, LOAD_BALANCER_TAG, POOL_TAG
from cloud_controller.clouds.aws.network_creation import settable, subnet_params
from cloud_controller.clouds.aws.network_model import exchange
from cloud_controller.clouds.aws.node_rules import NodeRules
from cloud_controller.clouds.aws.security_groups import SecurityGroups
from cloud_controller.clouds.aws.tags import tag_list
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.load_balancers.model import LoadBalancerModel

_FAMILIES = ("ip_address_type", SOURCE_NAT)
_PREFIX = "EnablePrefixForIpv6SourceNat"


class NetworkChanges:
    """Changes of load balancers. Safe to share between threads."""

    def __init__(
        self,
        api: Api,
        vpc_state: VpcState,
        security_groups: SecurityGroups,
        nodes: NodeRules,
        memory: Memory,
        listeners: Listeners,
        concurrently: ConcurrentCalls,
    ) -> None:
        self._api = api
        self._vpc_state = vpc_state
        self._security_groups = security_groups
        self._nodes = nodes
        self._memory = memory
        self._listeners = listeners
        self._concurrently = concurrently

    def load_balancer(self, view: View, known: Known, before: LoadBalancerModel, model: LoadBalancerModel) -> Known:
        """Change a load balancer from `before` to `model`, with the calls that the differences need; return the new
        details.

        Tags of others stay.
        """
        tags = self._memory.tags.get(known.arn) or {}
        lacking = {key: value for key, value in model.tags.items() if tags.get(key) != value}
        differs = {key for key, value in model.attributes.items() if before.attributes.get(key) != value}
        changed = {key: value for key, value in settable(model).items() if key in differs}
        if lacking.keys() - {LISTENER_ATTRIBUTES_TAG} or differs & {"ingress_rules", "security_groups"}:
            self._put_security_groups(view, model)
        known = self._put_network(known, before, model)
        if changed:
            listed = tag_list(changed)
            self._api.call("elbv2", "ModifyLoadBalancerAttributes", LoadBalancerArn=known.arn, Attributes=listed)
        if lacking:
            self._add_tags(known, lacking)
        return replace(known, attributes={**known.attributes, **changed})

    def adopt(self, lb_id: str, known: Known, tags: Mapping[str, str]) -> None:
        """Tag its parts, then the load balancer; target groups also get the tags by which they are found."""
        pools = {group.arn: name for name, group in known.groups.items()}
        self._concurrently(
            [
                *(partial(self._tag, each.arn, tags) for each in known.listeners.values()),
                *(
                    partial(self._tag, arn, {**tags, LOAD_BALANCER_TAG: lb_id, POOL_TAG: name})
                    for arn, name in pools.items()
                ),
            ]
        )
        self._tag(known.arn, tags)

    def unmark(self, before: Known, after: Known) -> None:
        """Remove the mark once the last listener with non-default attributes has AWS's defaults, so that reads skip
        them."""
        had, has = (any(has_own_attributes(each.listener) for each in of.listeners.values()) for of in (before, after))
        if had and not has:
            arn = after.arn
            self._api.call("elbv2", "RemoveTags", ResourceArns=[arn], TagKeys=[LISTENER_ATTRIBUTES_TAG])
            rest = {
                key: value
                for key, value in (self._memory.tags.get(arn) or {}).items()
                if key != LISTENER_ATTRIBUTES_TAG
            }
            self._memory.tags.put(arn, rest)

    def _put_security_groups(self, view: View, model: LoadBalancerModel) -> None:
        lb_id = view["LoadBalancerName"]
        if not view.get("SecurityGroups") and not self._security_groups.has_front(lb_id):
            self._nodes.put(lb_id, model)
            return
        wanted = (*self._security_groups.front(lb_id, model), *self._security_groups.join(lb_id))
        if {*view.get("SecurityGroups", ())} != {*wanted}:
            arn = view["LoadBalancerArn"]
            self._api.call("elbv2", "SetSecurityGroups", LoadBalancerArn=arn, SecurityGroups=[*wanted])
        self._security_groups.drop(lb_id, wanted)

    def _put_network(self, known: Known, before: LoadBalancerModel, model: LoadBalancerModel) -> Known:
        present, wanted = (texts(each.attributes.get("subnets")) for each in (before, model))
        zones = {subnet.id: subnet.zone for subnet in self._vpc_state.facts().subnets}
        steps = exchange(present, wanted, zones)
        kind, nat = model.attributes["ip_address_type"], model.attributes.get(SOURCE_NAT, "off")
        if "on" in (nat, before.attributes.get(SOURCE_NAT)):
            return self._put_source_nat(known, before, model, steps or [[*wanted]])
        calls = [("SetSubnets", subnet_params(model, step)) for step in steps]
        if before.attributes.get("ip_address_type") != kind:
            calls.append(("SetIpAddressType", {"IpAddressType": kind}))
            if kind == "ipv4":
                # With IPv6, AWS accepts only subnets with an IPv6 range: those without leave before IPv6 is added, and
                # join after it is removed.
                calls.insert(0, calls.pop())
        for operation, params in calls:
            if params.get("IpAddressType") == "dualstack":
                known = self._without_datagrams(known)
            with until_free():
                self._api.call("elbv2", operation, LoadBalancerArn=known.arn, **params)
        return known

    def _put_source_nat(
        self, known: Known, before: LoadBalancerModel, model: LoadBalancerModel, steps: Sequence[Sequence[str]]
    ) -> Known:
        """Set families and subnets in one call: AWS accepts IPv6 beside UDP only with source NAT, and source NAT
        only with IPv6."""
        if all(before.attributes.get(key) == model.attributes.get(key) for key in ("subnets", *_FAMILIES)):
            return known
        wanted = _families(model)
        if wanted["IpAddressType"] == "dualstack" and wanted[_PREFIX] == "off":
            known = self._without_datagrams(known)
        # IPv4 accepts every subnet, so it is set first and left last.
        meanwhile = wanted if wanted["IpAddressType"] == "ipv4" else _families(before)
        for step, families in zip(steps, [*[meanwhile] * (len(steps) - 1), wanted], strict=True):
            with until_free():
                params = {**subnet_params(model, step), **families}
                self._api.call("elbv2", "SetSubnets", LoadBalancerArn=known.arn, **params)
        return known

    def _without_datagrams(self, known: Known) -> Known:
        """Delete the UDP listeners, because AWS does not accept IPv6 beside them."""
        for port, present in known.listeners.items():
            if "UDP" in present.listener.protocol:
                self._listeners.delete(present.arn)
                known = known.with_listener(port, None)
        return known

    def _add_tags(self, known: Known, tags: Mapping[str, str]) -> None:
        parts = [*(each.arn for each in known.listeners.values()), *(each.arn for each in known.groups.values())]
        # The mark has a meaning only on the load balancer.
        of_parts = {key: value for key, value in tags.items() if key != LISTENER_ATTRIBUTES_TAG}
        self._concurrently([partial(self._tag, arn, of_parts) for arn in (parts if of_parts else ())])
        # Last: as long as it lacks tags, its parts may lack them too.
        self._tag(known.arn, tags)

    def _tag(self, arn: str, tags: Mapping[str, str]) -> None:
        # AWS accepts only one ARN in this list.
        self._api.call("elbv2", "AddTags", idempotent=True, ResourceArns=[arn], Tags=tag_list(tags))
        if (before := self._memory.tags.get(arn)) is not None:
            self._memory.tags.put(arn, {**before, **tags})


def _families(model: LoadBalancerModel) -> dict[str, str]:
    """The families as parameters of SetSubnets."""
    kind, nat = (model.attributes.get(key) for key in _FAMILIES)
    return {"IpAddressType": str(kind), _PREFIX: str(nat or "off")}
