"""Services, nodes and a VPC of AWS, for tests of what a Service comes to there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cloud_controller.clouds.aws.annotations import CATALOGUE, PREFIX
from cloud_controller.clouds.aws.build import AwsBuilder
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.facts import BuildFacts, Facts, Subnet
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import Built, LoadBalancerModel, Pool
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import service

CONFIG = Config("prod-1")
BUILDER = AwsBuilder(CONFIG)
TYPE = f"{PREFIX}type"
CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/1"


def subnet(name: str, *, public: bool = True, cidr: str | None = None, **more: Any) -> Subnet:
    """`b1` is the first subnet of zone us-east-1b."""
    number = "abcdef".index(name[0]) * 10 + int(name[1:])
    return Subnet(f"subnet-{name}", f"us-east-1{name[0]}", cidr or f"10.0.{number}.0/24", public=public, **more)


VPC = Facts("vpc-1", (subnet("b1"), subnet("a1"), subnet("c1")))
DUAL_VPC = Facts("vpc-1", tuple(subnet(name, ipv6_cidr="2001:db8::/64") for name in ("a1", "b1")))


def named(**arguments: Any) -> dict[str, str]:
    """The annotations of these arguments."""
    return CATALOGUE.annotations(arguments)


def classic(annotations: dict[str, str] | None = None, *ports: dict[str, Any], **more: Any) -> Object:
    """A Service that asks for a classic load balancer, as any does that names no type."""
    return service(annotations, *ports, **more)


def nlb(annotations: dict[str, str] | None = None, *ports: dict[str, Any], **more: Any) -> Object:
    """A Service that asks for a network load balancer."""
    return service({TYPE: "nlb", **(annotations or {})}, *ports, **more)


def in_subnets(*subnets: str) -> dict[str, str]:
    """The annotations of an internal load balancer in these subnets."""
    return named(internal=True, subnets=subnets)


def put_nodes(cluster: Cluster, machines: Iterable[Any]) -> None:
    """Nodes of these machines."""
    for machine in machines:
        name, zone = machine["InstanceId"], machine["Placement"]["AvailabilityZone"]
        cluster.put_node(name, f"aws:///{zone}/{name}", machine["PrivateIpAddress"])


def node(number: int = 1, *, provider_id: str | None = None, **labels: str) -> Object:
    return {
        "metadata": {"name": f"n{number}", "labels": labels},
        "spec": {"providerID": provider_id or f"aws:///us-east-1a/i-{number:017x}"},
    }


def slices(*addresses: str, number: int = 8080, family: str = "IPv4", protocol: str = "TCP") -> Object:
    return {
        "addressType": family,
        "ports": [{"name": "", "protocol": protocol, "port": number}],
        "endpoints": [{"addresses": [address], "nodeName": "n1"} for address in addresses],
    }


def backends(*nodes: Object, slices: tuple[Object, ...] = ()) -> Backends:
    found = (BUILDER.backend(each) for each in nodes or (node(),))
    return Backends(tuple(each for each in found if each is not None), slices)


def built(service: Object, *, with_: Backends | None = None, config: Config = CONFIG, facts: Facts = VPC) -> Built:
    known = Fact(BuildFacts(facts))
    return AwsBuilder(config).build(service, backends() if with_ is None else with_, known)


def model(service: Object, **more: Any) -> LoadBalancerModel:
    return built(service, **more).model


def only_pool(service: Object, **more: Any) -> Pool:
    (pool,) = model(service, **more).pools
    return pool


def ignored(service: Object, **more: Any) -> dict[str, str]:
    """The reasons, by the last word of the field."""
    return {each.field.removeprefix(f"annotation {PREFIX}"): each.reason for each in built(service, **more).ignored}
