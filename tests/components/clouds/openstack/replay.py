"""Makes what the program declared in the real services, as Pulumi's provider would."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from local.openstack.api import Api, Object
from tests.components.stack_runs import opened

_NETWORKING, _BALANCING = "openstack:networking", "openstack:loadbalancer"
_REFERS = {
    "networkId": "network",
    "subnetId": "subnet",
    "vipSubnetId": "subnet",
    "routerId": "router",
    "securityGroupId": "secGroup",
    "securityGroupIds": "secGroup",
    "remoteGroupId": "secGroup",
    "loadbalancerId": "loadBalancer",
    "listenerId": "listener",
    "poolId": "pool",
}
"""By the input: what it names."""
_KINDS: Mapping[str, tuple[str, str, str]] = {
    "network": ("network", "networks", "network"),
    "subnet": ("network", "subnets", "subnet"),
    "router": ("network", "routers", "router"),
    "secGroup": ("network", "security-groups", "security_group"),
    "secGroupRule": ("network", "security-group-rules", "security_group_rule"),
    "port": ("network", "ports", "port"),
    "loadBalancer": ("load-balancer", "lbaas/loadbalancers", "loadbalancer"),
    "listener": ("load-balancer", "lbaas/listeners", "listener"),
    "pool": ("load-balancer", "lbaas/pools", "pool"),
    "monitor": ("load-balancer", "lbaas/healthmonitors", "healthmonitor"),
    "member": ("load-balancer", "lbaas/pools/{pool_id}/members", "member"),
}
"""By the resource: its service, path and the name in bodies."""
_CALLED = {"lb_method": "lb_algorithm", "security_group_ids": "security_groups"}
"""By the provider's word: the API's."""
_NOT_SENT = {"delete_default_rules", "tags"}


class Replay:
    """Resources in one project. `settle`: returns once the load balancer has no change under way."""

    def __init__(self, api: Api, external_network: str, settle: Callable[[Api, str], None]) -> None:
        self._api = api
        self._external = external_network
        self._settle = settle
        self._ids: dict[tuple[str, str], str] = {}
        self._addresses: dict[str, str] = {}

    def make(self, recording: Any) -> None:
        """Make every network, security group and load balancer of the program. Raises ApiError."""
        for registration in recording.registrations:
            package, _, kind = registration.request.type.rpartition("/")
            kind = kind.partition(":")[0]
            inputs = opened(registration.inputs)
            if kind == "routerInterface":
                path = f"routers/{self.id('router', inputs['routerId'])}/add_router_interface"
                self._api.put("network", path, {"subnet_id": self.id("subnet", inputs["subnetId"])})
            elif kind in _KINDS and package in (_NETWORKING, _BALANCING):
                self._ids[kind, f"{registration.request.name}-id"] = self._made(kind, inputs)

    def id(self, kind: str, recorded: str) -> str:
        """The real ID."""
        return self._ids[kind, recorded]

    def _made(self, kind: str, inputs: Mapping[str, Any]) -> str:
        service, path, called = _KINDS[kind]
        body = {key: value for key, value in self._body(inputs).items() if key not in _NOT_SENT}
        if kind == "router":
            body["external_gateway_info"] = {"network_id": body.pop("external_network_id") and self._external}
        if "{pool_id}" in path:
            path = path.format(pool_id=body.pop("pool_id"))
            # Each machine's own, which the recording cannot know.
            body["address"] = self._addresses[body["name"]]
        made: Object = self._api.post(service, path, {called: body})[called]
        if kind == "port":
            self._addresses[made["name"]] = made["fixed_ips"][0]["ip_address"]
        for rule in made["security_group_rules"] if inputs.get("deleteDefaultRules") else ():
            self._api.delete("network", f"security-group-rules/{rule['id']}")
        if service == "network" and "tags" in inputs:
            self._api.put("network", f"{path}/{made['id']}/tags", {"tags": inputs["tags"]})
        if service == "load-balancer":
            [balancer] = [id_ for (each, _), id_ in self._ids.items() if each == "loadBalancer"] or [made["id"]]
            self._settle(self._api, balancer)
        return str(made["id"])

    def _body(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for key, value in inputs.items():
            snake = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key)
            found[_CALLED.get(snake, snake)] = self._value(key, value)
        return found

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return self._body(value)
        if isinstance(value, list):
            return [self._value(key, each) for each in value]
        return self.id(_REFERS[key], value) if key in _REFERS else value
