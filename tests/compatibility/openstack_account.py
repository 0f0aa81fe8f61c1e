"""A project with what the recorded Services name."""

from __future__ import annotations

import time
from typing import Any

import orjson

from cloud_controller.clouds.openstack.cloud import OpenStack
from cloud_controller.clouds.openstack.config import parse
from local.openstack.api import Object
from local.openstack.configs import PASSWORD, REGION
from local.openstack.peer import Peer
from local.openstack.project import Project
from tests.compatibility.openstack_left import NODES, SHARED, World
from tests.compatibility.openstack_recorded import KINDS

_DEADLINE = 60.0
_TIMEOUT = 120.0
_BASE = """
[Global]
cluster-id=peer
auth-url={url}/v3
username={name}
password={password}
tenant-name={name}
domain-id=default
region={region}
[Networking]
public-network-name=public
[LoadBalancer]
{options}
[LoadBalancerClass "dmz"]
floating-network-id={public2}
floating-subnet-id={pub2-a}
[LoadBalancerClass "silver"]
floating-subnet-tags=silver
[LoadBalancerClass "inner"]
network-id={lbnet}
subnet-id={lbnet-v4}
member-subnet-id={nodes-v4}
"""
_OPTIONS = {
    "sg": ("manage-security-groups=true",),
    "monitor": (
        *("create-monitor=true", "monitor-delay=10s", "monitor-timeout=7s", "monitor-max-retries=2"),
        "monitor-max-retries-down=4",
    ),
    "hostname": ("enable-ingress-hostname=true",),
    "serial": ("provider-requires-serial-api-calls=true",),
    "nocascade": ("cascade-delete=false",),
    "internal": ("internal-lb=true",),
    "changed": ("lb-method=LEAST_CONNECTIONS", "create-monitor=true"),
}


class Common:
    """What all projects share: the external networks, a flavor and an availability zone."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.ids: dict[str, str] = {}
        self._network("public", {"pub-a": ("203.0.113", "gold"), "pub-b": ("198.51.100", "silver")})
        self._network("public2", {"pub2-a": ("192.0.2", "")})
        octavia = peer.admin
        profile = {"name": "profile", "provider_name": "amphora", "flavor_data": "{}"}
        made = octavia.post("load-balancer", "lbaas/flavorprofiles", {"flavorprofile": profile})["flavorprofile"]
        flavor = {"name": f"flavor-{made['id']}", "flavor_profile_id": made["id"], "enabled": True}
        self.ids["flavor"] = octavia.post("load-balancer", "lbaas/flavors", {"flavor": flavor})["flavor"]["id"]
        zone = {"name": "profile", "provider_name": "amphora", "availability_zone_data": '{"compute_zone": "nova"}'}
        answer = octavia.post("load-balancer", "lbaas/availabilityzoneprofiles", {"availability_zone_profile": zone})
        made = answer["availability_zone_profile"]
        self.ids["az-lb1"] = f"az-{made['id']}"
        zone = {"name": self.ids["az-lb1"], "availability_zone_profile_id": made["id"]}
        octavia.post("load-balancer", "lbaas/availabilityzones", {"availability_zone": zone})

    def _network(self, name: str, subnets: dict[str, tuple[str, str]]) -> None:
        admin = self.peer.admin
        network = admin.post("network", "networks", {"network": {"name": name, "router:external": True}})["network"]
        self.ids[name] = network["id"]
        for subnet, (start, tag) in subnets.items():
            # Addresses that Services ask for are outside of the pool.
            pool = {"start": f"{start}.100", "end": f"{start}.190"}
            body = {"network_id": network["id"], "cidr": f"{start}.0/24", "ip_version": 4, "name": subnet}
            made = admin.post("network", "subnets", {"subnet": {**body, "allocation_pools": [pool]}})["subnet"]
            self.ids[subnet] = made["id"]
            if tag:
                admin.put("network", f"subnets/{made['id']}/tags", {"tags": [tag, "v4"]})


class PeersProject:
    """See `Account`. One project that serves scenarios one after another; each leaves it empty."""

    def __init__(self, common: Common) -> None:
        self._peer = common.peer
        self._project = Project(common.peer)
        self.api = self._project.api
        self.machine = self._project.server("node0")[0]
        """Of a node of the cluster: without any, lost load balancers are not made again."""
        self.ids = dict(common.ids)
        self.conf = "base"
        self._is_limited = self._has_node_ports = False
        self.breaks = False
        """Whether a new load balancer goes to ERROR."""
        self._network("nodes", {"nodes-v4": "10.1.0.0/16", "nodes-b": "10.3.0.0/24"})
        self._network("lbnet", {"lbnet-v4": "10.2.0.0/24"})
        self._project.router({"id": self.ids["nodes-v4"]}, {"id": self.ids["lbnet-v4"]}, external=self.ids["public"])
        router = self._project.router(external=self.ids["public2"])
        self.api.put("network", f"routers/{router}/add_router_interface", {"port_id": self.make_port()})

    def _network(self, name: str, subnets: dict[str, str]) -> None:
        self.ids[name] = self._post("network", "networks", "network", {"name": name})["id"]
        for subnet, cidr in subnets.items():
            body = {"network_id": self.ids[name], "cidr": cidr, "ip_version": 4, "name": subnet}
            self.ids[subnet] = self._post("network", "subnets", "subnet", body)["id"]

    def new_cloud(self, **_: Any) -> OpenStack:
        """The cloud as a new process with the recorded cloud config sees it. Raises InvalidConfiguration."""
        options = [*_OPTIONS.get(self.conf, ())]
        if self.conf != "auto":
            options.append(f"floating-network-id={self.ids['public']}")
        given = {"url": self._peer.url("identity"), "name": self._project.name, "password": PASSWORD}
        text = _BASE.format(**self.ids, **given, region=REGION, options="\n".join(options))
        made = OpenStack(parse(text), timeout=_TIMEOUT)
        made._client._sleep = lambda _: None
        return made

    def settle(self) -> None:
        """Wait until Octavia has finished."""
        deadline = time.monotonic() + _DEADLINE
        while True:
            views = self.api.get("load-balancer", "lbaas/loadbalancers")["loadbalancers"]
            if not any(each["provisioning_status"].startswith("PENDING") for each in views):
                break
            assert time.monotonic() < deadline, "Octavia does not finish"
            time.sleep(0.1)
        for each in views if self.breaks else ():
            self.to_error(each["id"])

    def to_error(self, id: str) -> None:
        """Let a load balancer go to ERROR."""
        self._peer.admin.put("load-balancer-peer", f"loadbalancers/{id}", {"provisioning_status": "ERROR"})

    def set_quota(self, service: str, what: str, limit: int) -> None:
        """How many of these the project may have; -1: any number."""
        self._is_limited = limit >= 0
        path = f"{'lbaas/' if service == 'load-balancer' else ''}quotas/{self._project.id}"
        self._peer.admin.put(service, path, {"quota": {what: limit}})

    def lift_quotas(self) -> None:
        """No limit any more."""
        self.set_quota("network", "floatingip", -1)
        self.set_quota("load-balancer", "load_balancer", -1)

    def world(self) -> World:
        """What the project holds."""
        found: dict[str, list[Object]] = {}
        for kind in ("loadbalancers", "listeners", "pools"):
            found[kind] = self.api.get("load-balancer", f"lbaas/{kind}")[kind]
        checked = any(each.get("healthmonitor_id") for each in found["pools"])
        monitors = self.api.get("load-balancer", "lbaas/healthmonitors")["healthmonitors"] if checked else []
        found["healthmonitors"] = monitors
        found["members"] = [
            {**member, "pool_id": pool["id"]}
            for pool in found["pools"]
            if pool["members"]
            for member in self.api.get("load-balancer", f"lbaas/pools/{pool['id']}/members")["members"]
        ]
        found["floatingips"] = self.api.get("network", "floatingips")["floatingips"]
        found["ports"] = self.api.get("network", "ports?device_owner=Octavia")["ports"]
        groups: list[Object] = []
        found["node ports"] = []
        if self._has_node_ports:
            groups = self.api.get("network", "security-groups")["security_groups"]
            found["node ports"] = self.api.get("network", "ports?device_owner=compute:nova")["ports"]
        for each in found["node ports"]:
            # Recorded by the node's name.
            each["id"] = each["name"]
        found["security_groups"] = [each for each in groups if each["name"] != "default"]
        text = orjson.dumps({kind: {each["id"]: each for each in found[kind]} for kind in KINDS}).decode()
        for name, identity in self.ids.items():
            text = text.replace(identity, name)
        world: World = orjson.loads(text)
        return world

    # ----------------------------------------------------------------------------------------------------- by hand

    def make_balancer(self) -> str:
        """A load balancer of the user's that Services of this cluster may use."""
        body = {"name": "made-by-hand", "vip_subnet_id": self.ids["nodes-v4"], "tags": ["mine", SHARED]}
        made = self._post("load-balancer", "lbaas/loadbalancers", "loadbalancer", body)
        self.settle()
        return str(made["id"])

    def make_floating_ip(self, **body: Any) -> None:
        """A floating IP of the user's; only an administrator may choose its address."""
        wanted = {"floating_network_id": self.ids["public"], "project_id": self._project.id, **body}
        self._peer.admin.post("network", "floatingips", {"floatingip": wanted})

    def make_port(self) -> str:
        """A port of the user's."""
        body = {"network_id": self.ids["nodes"], "fixed_ips": [{"subnet_id": self.ids["nodes-v4"]}]}
        return str(self._post("network", "ports", "port", body)["id"])

    def add_node_ports(self) -> None:
        """The ports of the nodes, if they are not there yet: only security groups need them."""
        self._has_node_ports = True
        if not self.api.get("network", "ports?device_owner=compute:nova")["ports"]:
            for name, address in NODES.items():
                fixed = [{"subnet_id": self.ids["nodes-v4"], "ip_address": address}]
                port = {"name": name, "network_id": self.ids["nodes"], "fixed_ips": fixed}
                self._post("network", "ports", "port", {**port, "device_owner": "compute:nova"})

    def first(self, kind: str) -> Object:
        """The first load balancer or part of this kind."""
        found: Object = self.api.get("load-balancer", f"lbaas/{kind}")[kind][0]
        return found

    def first_member(self) -> str:
        """The path of the first pool's first member."""
        path = f"lbaas/pools/{self.first('pools')['id']}/members"
        return f"{path}/{self.api.get('load-balancer', path)['members'][0]['id']}"

    def delete_balancers(self) -> None:
        """Delete all load balancers."""
        found = self.api.get("load-balancer", "lbaas/loadbalancers")["loadbalancers"]
        for each in found:
            self.api.delete("load-balancer", f"lbaas/loadbalancers/{each['id']}?cascade=true")
        if found:
            self.settle()

    def empty(self) -> None:
        """Delete what a scenario leaves."""
        if self._is_limited:
            self.lift_quotas()
        self.breaks = self._has_node_ports = False
        self.delete_balancers()
        for each in self.api.get("network", "floatingips")["floatingips"]:
            self.api.delete("network", f"floatingips/{each['id']}")
        for each in self.api.get("network", "ports?device_owner=Octavia")["ports"]:
            self._peer.admin.delete("network", f"ports/{each['id']}")

    def _post(self, service: str, path: str, key: str, body: Object) -> Object:
        made: Object = self.api.post(service, path, {key: body})[key]
        return made
