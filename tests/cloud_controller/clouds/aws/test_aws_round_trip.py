"""What a Service comes to, made on AWS and read back by a controller that knows nothing of it, differs in nothing."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import boto3
import pytest

from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.concurrent_calls import ConcurrentCalls
from cloud_controller.clouds.aws.load_balancer import AwsLoadBalancers
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.kube import Object
from cloud_controller.load_balancers.diff import diff
from cloud_controller.load_balancers.operations import (
    AddMembers,
    CreateLoadBalancer,
    DeleteListener,
    DeletePool,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)
from cloud_controller.plan import Plan
from tests.cloud_controller.clouds.aws import as_aws, classic_as_aws
from tests.cloud_controller.clouds.aws.asked_services import backends, classic, named, nlb, node, port, slices
from tests.cloud_controller.clouds.aws.conftest import REGION, AwsAccount

CERTIFICATE = "a-certificate"
"""Stands for the one that each account has."""
TLS = {"ssl_cert": (CERTIFICATE,), "ssl_ports": ("443",)}
LOGS = {"access_log_enabled": True, "access_log_s3_bucket_name": "logs", "access_log_s3_bucket_prefix": "web"}
LOCAL: dict[str, Any] = {"externalTrafficPolicy": "Local", "healthCheckNodePort": 31000}

NETWORK: dict[str, Object] = {
    "plain": nlb({}, port(80), port(443)),
    "internal": nlb(named(internal=True)),
    "datagrams": nlb({}, port(53, "UDP"), port(80)),
    "both transports": nlb({}, port(53, "UDP"), port(53)),
    "tls": nlb(named(**TLS), port(80), port(443)),
    "tls behind": nlb(named(**TLS, backend_protocol="ssl"), port(443)),
    "policy": nlb(named(**TLS, ssl_negotiation_policy="ELBSecurityPolicy-TLS13-1-2-2021-06"), port(443)),
    "local": nlb(**LOCAL),
    "checks": nlb(
        named(
            healthcheck_protocol="HTTP",
            healthcheck_path="/up",
            healthcheck_port="8080",
            healthcheck_interval=15,
            healthcheck_timeout=4,
            healthcheck_healthy_threshold=2,
            healthcheck_unhealthy_threshold=5,
        )
    ),
    "attributes": nlb(
        named(target_group_attributes=("preserve_client_ip.enabled=false", "proxy_protocol_v2.enabled=true"))
    ),
    "affinity": nlb(sessionAffinity="ClientIP"),
    "proxy protocol": nlb(named(proxy_protocol="*")),
    "zones and tags": nlb(
        named(cross_zone_load_balancing_enabled=True, additional_resource_tags=("Team=edge", "Empty"))
    ),
    "ranges": nlb(loadBalancerSourceRanges=["10.0.0.0/8", "192.0.2.0/24"]),
    "pods": nlb(named(nlb_target_type="ip")),
}

CLASSIC: dict[str, Object] = {
    "plain": classic({}, port(80), port(443)),
    "internal": classic(named(internal=True)),
    "tls": classic(named(**TLS, backend_protocol="http"), port(80), port(443)),
    "policy": classic(named(**TLS, ssl_negotiation_policy="ELBSecurityPolicy-TLS-1-2-2017-01"), port(443)),
    "proxy protocol": classic(named(proxy_protocol="*")),
    "local": classic(**LOCAL),
    "checks": classic(named(healthcheck_protocol="http", healthcheck_path="/up", healthcheck_unhealthy_threshold=3)),
    "attributes": classic(
        named(**LOGS, connection_draining_enabled=True, connection_draining_timeout=30, connection_idle_timeout=90)
    ),
    "zones and tags": classic(named(cross_zone_load_balancing_enabled=True, additional_resource_tags=("Team=edge",))),
    "ranges": classic(loadBalancerSourceRanges=["10.0.0.0/8"]),
}


KINDS = pytest.mark.parametrize("services", [NETWORK, CLASSIC], ids=["network", "classic"])


class World:
    """An account with nodes, and controllers of its cluster that are started again and again."""

    def __init__(self, account: AwsAccount) -> None:
        self.api = account.api()
        self.vpc_id = account.vpc_id
        ids = [instance["InstanceId"] for instance in account.launch(2)]
        nodes = [node(index, provider_id=f"aws:///{REGION}a/{each}") for index, each in enumerate(ids, 1)]
        self.backends = backends(*nodes, slices=(slices("10.0.64.9", "10.0.64.10"),))
        acm: Any = boto3.client("acm", endpoint_url=account.endpoint, region_name=REGION)
        self.certificate = acm.request_certificate(DomainName="example.com")["CertificateArn"]

    def restart(self) -> AwsLoadBalancers:
        """A controller that knows nothing."""
        config = self.api.config
        around = VpcState(self.api, config.cluster_tag, self.vpc_id)
        return AwsLoadBalancers(self.api, config, around, ConcurrentCalls())

    def services(self, wanted: Mapping[str, Object]) -> dict[str, Object]:
        """Each as a Service of its own, with the account's certificate."""
        found = {}
        for index, (name, service) in enumerate(sorted(wanted.items())):
            own = copy.deepcopy(service)
            own["metadata"] |= {"name": f"web-{index}", "uid": f"uid-{index}"}
            annotations = own["metadata"]["annotations"]
            own["metadata"]["annotations"] = {
                key: text.replace(CERTIFICATE, self.certificate) for key, text in annotations.items()
            }
            found[name] = own
        return found

    def plans(self, wanted: Mapping[str, Object], cloud: AwsLoadBalancers) -> dict[str, Plan]:
        """What is to be done for each, by what the controller reads."""
        observed = cloud.read(None)
        found = {}
        for name, service in self.services(wanted).items():
            uid = service["metadata"]["uid"]
            own = [lb for lb in observed if lb.owner and lb.owner.uid == uid]
            model = cloud.build(service, self.backends).model
            found[name] = diff(model, own, CATALOGUE, target=f"service/shop/{name}", client_token=uid)
        return found

    def apply(self, wanted: Mapping[str, Object]) -> None:
        """Bring each about, from a restart."""
        cloud = self.restart()
        for plan in self.plans(wanted, cloud).values():
            for action in plan.changes:
                operation: Any = action.operation
                _METHODS[type(operation)](cloud, operation)

    def left(self, wanted: Mapping[str, Object]) -> dict[str, list[str]]:
        """What a controller that was just started would do."""
        plans = self.plans(wanted, self.restart())
        return {
            name: [f"{a.target}: {a.summary} {a.changes}" for a in plan] for name, plan in plans.items() if len(plan)
        }


_METHODS: dict[type, Any] = {
    CreateLoadBalancer: AwsLoadBalancers.create,
    UpdateLoadBalancer: AwsLoadBalancers.update,
    PutPool: AwsLoadBalancers.put_pool,
    AddMembers: AwsLoadBalancers.add_members,
    RemoveMembers: AwsLoadBalancers.remove_members,
    PutListener: AwsLoadBalancers.put_listener,
    DeleteListener: AwsLoadBalancers.delete_listener,
    DeletePool: AwsLoadBalancers.delete_pool,
}


@pytest.fixture
def world(account: AwsAccount, monkeypatch: pytest.MonkeyPatch) -> World:
    as_aws.mend(monkeypatch)
    classic_as_aws.mend(monkeypatch)
    return World(account)


@KINDS
def test_what_was_made_is_read_back_as_it_was_wanted_and_can_be_taken_back(
    services: dict[str, Object], world: World
) -> None:
    world.apply(services)
    assert world.left(services) == {}

    plain = dict.fromkeys(services, services["plain"]) | {"internal": services["internal"]}
    world.apply(plain)
    assert world.left(plain) == {}


@KINDS
def test_what_a_service_asks_for_later_is_read_back_as_well(services: dict[str, Object], world: World) -> None:
    world.apply(dict.fromkeys(services, services["plain"]) | {"internal": services["internal"]})
    world.apply(services)

    assert world.left(services) == {}


def test_subnets_and_groups_of_ones_own_are_read_back(account: AwsAccount, world: World) -> None:
    group = account.ec2.create_security_group(GroupName="edge", Description="-", VpcId=account.vpc_id)["GroupId"]
    subnet = account.public_subnets[1]
    services = {
        "subnets": nlb(named(subnets=(subnet,))),
        "groups": nlb(named(security_groups=(group,))),
        "more groups": nlb(named(extra_security_groups=(group,))),
        "classic subnets": classic(named(subnets=(subnet,))),
        "classic groups": classic(named(security_groups=(group,))),
        "classic more groups": classic(named(extra_security_groups=(group,))),
    }
    world.apply(services)
    assert world.left(services) == {}

    plain = {name: CLASSIC["plain"] if "classic" in name else NETWORK["plain"] for name in services}
    world.apply(plain)
    assert world.left(plain) == {}
