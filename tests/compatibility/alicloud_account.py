"""An account with what the recorded Services name, for the peer's calls and for this controller."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from cloud_controller.clouds.alicloud.clb.memory import LIFETIME
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.alicloud import machines
from local.alicloud.account import REGION
from local.alicloud.clb_acls import ACL
from local.alicloud.clb_balancers import CLB, GROUP, LISTENER
from local.alicloud.clb_certificates import add_certificate
from local.alicloud.nlb_jobs import BALANCER
from local.alicloud.nlb_jobs import GROUP as SERVER_GROUP
from local.alicloud.nlb_jobs import LISTENER as NLB_LISTENER
from local.standin.faults import Fault
from tests.cloud_controller.clouds.alicloud.account import CONFIG, Account
from tests.cloud_controller.clouds.alicloud.account import VPC as OTHER_VPC

VPC = "vpc-1"
NODES = {"node-1": "a", "node-2": "a", "node-3": "b", "node-4": "b"}
"""Each recorded node, and its label `pool`."""

SECURITY_GROUPS = ("sg-1", "sg-2")
"""Those of the user."""

_VSWITCHES = {"vsw-k": "192.168.0.0/24", "vsw-h": "192.168.2.0/24", "vsw-i": "192.168.3.0/24"}
_CERTIFICATES = (
    *("cert-1", "cert-2", "cert-1-cn-hangzhou", "cert-2-cn-hangzhou", "ca-1"),
    *("cert-a", "cert-a2", "cert-b", "cert-c"),
)
_CLUSTER = {CLUSTER_TAG: CONFIG.cluster_id}
_SHARED = {"Key": "cloud-controller/shared-with", "Value": f"{CONFIG.cluster_id}/default"}
"""Without it, this controller takes no load balancer that a Service names."""
_OF_THE_USER = ("lb", "nlb", "rsp", "sgp", "lsn")


def machine(node: str) -> str:
    """The ID of a recorded node's machine."""
    return f"i-bp1ecs000{node.rpartition('-')[2]}"


class PeersAccount(Account):
    """Its time passes only in `settle`, for a request is valid for a quarter of an hour."""

    def __init__(self, scenario: str) -> None:
        super().__init__()
        world = self.standin.world
        self._began, self._passed, self._outdated = world.clock(), 0.0, 0.0
        world.clock, world.job_seconds = lambda: self._began + self._passed, 0.0
        with self.standin.changing():
            self._add_network()
            self._add_what_annotations_name()
        self._prepare(scenario)

    def _add_network(self) -> None:
        world = self.standin.world
        world.store.remove(machines.VPC, OTHER_VPC)
        machines.add_vpc(world, VPC, ipv6_cidr="2408:4005::/56")
        for name, cidr in _VSWITCHES.items():
            machines.add_vswitch(world, VPC, f"{REGION}-{name[-1]}", cidr, name, ipv6_cidr="2408:4005::/64")
        machines.add_vswitch(world, VPC, f"{REGION}-k", "192.168.1.0/24", "vsw-pods")
        for node in NODES:
            number, instance = node[-1], machine(node)
            machines.add_instance(world, "vsw-k", instance, name=node, address=f"192.168.0.1{number}", tags=_CLUSTER)
            addresses: dict[str, Any] = {"address": f"192.168.1.{number}", "ipv6": [f"2408:4005::{number}"]}
            machines.add_eni(world, "vsw-pods", f"eni-pod{number}", instance=instance, **addresses)

    def _add_what_annotations_name(self) -> None:
        world = self.standin.world
        for name in _CERTIFICATES:
            add_certificate(world, name)
        for name in ("acl-1", "acl-2"):
            acl = {"id": name, "name": name, "entries": {}, "ip_version": "ipv4", "tags": {}, "made": world.now()}
            world.store.put(ACL, name, acl)
        for number in (1, 2, 3):
            machines.add_eip(world, f"eip-{number}")
            machines.add_bandwidth_package(world, f"cbwp-{number}")
        for name in SECURITY_GROUPS:
            machines.add_security_group(world, VPC, name)

    def _prepare(self, scenario: str) -> None:
        """Make what the user of a recorded Service had made, and what goes wrong with it."""
        world = self.standin.world
        if scenario == "clb/no-vswitch-address":
            with self.standin.changing():
                world.fill(machines.VSWITCH, "vsw-k", addresses=0)
        elif scenario == "nlb/failed-job":
            self.standin.faults.add(Fault("nlb.AddServersToServerGroup", fails_job="Failed"))
        elif "reuse" in scenario and scenario != "clb/reuse-missing":
            new_id = world.new_id

            def of_user(prefix: str) -> str:
                return f"{prefix}-user" if prefix in _OF_THE_USER else new_id(prefix)

            make = self._make_clb if scenario.startswith("clb/") else self._make_nlb
            with patch.object(world, "new_id", of_user):
                make(scenario)
            self.settle()

    def _make_clb(self, scenario: str) -> None:
        others = {"Key": "kubernetes.do.not.delete", "Value": "aother"}
        tags = [others if scenario == "clb/reuse-created-by-ccm" else _SHARED]
        paid = {"AddressType": "internet", "InstanceChargeType": "PayByCLCU"}
        self._call("slb.CreateLoadBalancer", {"LoadBalancerName": "by-the-user", **paid, "Tag": tags})
        servers = '[{"ServerId": "i-bp1ecs0004", "Port": 9000, "Weight": 50, "Type": "ecs"}]'
        named = {"LoadBalancerId": "lb-user", "VServerGroupName": "users-own"}
        self._call("slb.CreateVServerGroup", {**named, "BackendServers": servers})
        for port in {"clb/reuse-override-kept": (8443, 80), "clb/reuse-vgroup-weight": ()}.get(scenario, (8443,)):
            listener = {"LoadBalancerId": "lb-user", "ListenerPort": port}
            self._call("slb.CreateLoadBalancerTCPListener", {**listener, "Bandwidth": -1, "VServerGroupId": "rsp-user"})
            self._call("slb.StartLoadBalancerListener", {**listener, "ListenerProtocol": "tcp"})

    def _make_nlb(self, scenario: str) -> None:
        zones = [{"VSwitchId": f"vsw-{zone}", "ZoneId": f"{REGION}-{zone}"} for zone in "kh"]
        named = {"LoadBalancerName": "by-the-user", "AddressType": "Internet", "VpcId": VPC, "Tag": [_SHARED]}
        self._call("nlb.CreateLoadBalancer", {**named, "ZoneMappings": zones})
        self._call("nlb.CreateServerGroup", {"ServerGroupName": "users-own", "Protocol": "TCP", "VpcId": VPC})
        self.settle()
        if scenario == "nlb/reuse-server-group":
            server = {"ServerId": "i-bp1ecs0004", "ServerType": "Ecs", "Port": 9000, "Weight": 50}
            self._call("nlb.AddServersToServerGroup", {"ServerGroupId": "sgp-user", "Servers": [server]})
        else:
            listener = {"ListenerPort": 8443, "ListenerProtocol": "TCP", "ServerGroupId": "sgp-user"}
            self._call("nlb.CreateListener", {"LoadBalancerId": "nlb-user", **listener})

    def _call(self, action: str, parameters: dict[str, Any]) -> dict[str, Any]:
        product, _, name = action.partition(".")
        return self.cloud()._client.call(product, name, parameters)

    def change_by_hand(self, what: str) -> None:
        """Change (`altered`) or delete (`gone`) a Service's load balancer, as a recorded scenario did."""
        gone = machine("node-3")
        with self.standin.changing() as world:
            for each in world.store.all(LISTENER):
                world.store.put(LISTENER, each["id"], {**each, "status": "stopped", "Scheduler": "wlc"})
            for each in world.store.all(GROUP):
                world.fill(GROUP, each["id"], backends=[b for b in each["backends"] if b["ServerId"] != gone])
            for each in world.store.all(NLB_LISTENER):
                world.fill(NLB_LISTENER, each["id"], status="Stopped")
            for each in world.store.all(SERVER_GROUP):
                world.fill(SERVER_GROUP, each["id"], servers=[s for s in each["servers"] if s["ServerId"] != gone])
            for kind in (CLB, LISTENER, GROUP) if what == "gone" else ():
                for each in world.store.all(kind):
                    world.store.remove(kind, each["id"])

    def new_cloud(self, **config: Any) -> Any:
        """The cloud as a new process sees it."""
        made = self.cloud(vpc_id=VPC, vswitch_id="vsw-k", **config)
        made._load_balancers._ranges.cache.clock = lambda: self._passed + self._outdated
        return made

    def settle(self) -> None:
        """Let the time pass that the cloud's jobs take."""
        self._passed += 3.0

    def outdate(self) -> None:
        """Let the time pass after which a process reads again what it remembers of the cloud."""
        self._outdated += 2 * LIFETIME

    @property
    def counts(self) -> dict[str, int]:
        """How many load balancers, groups and security groups there are."""
        kinds = {"load balancers": (CLB, BALANCER), "server groups": (GROUP, SERVER_GROUP)}
        found = {name: sum(len(self.objects(kind)) for kind in of) for name, of in kinds.items()}
        return {**found, "security groups": len(self.objects(machines.SECURITY_GROUP))}
