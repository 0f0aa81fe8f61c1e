"""What a Service comes to, made on AWS at once and read back by a controller that knows nothing of it, is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloud_controller.controllers.service.status import SetIngress
from cloud_controller.kube import Object
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.services import classic, named, nlb
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, endpoint, endpoint_slice, port, service

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
    "prefix lists": nlb(named(security_group_prefix_lists=("pl-0123456789abcdef0",))),
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
        named(
            **LOGS,
            access_log_emit_interval="5",
            connection_draining_enabled=True,
            connection_draining_timeout=30,
            connection_idle_timeout=90,
        )
    ),
    "zones and tags": classic(named(cross_zone_load_balancing_enabled=True, additional_resource_tags=("Team=edge",))),
    "ranges": classic(loadBalancerSourceRanges=["10.0.0.0/8"]),
}


KINDS = pytest.mark.parametrize("services", [NETWORK, CLASSIC], ids=["network", "classic"])


@pytest.fixture
def bring_about(account: AwsAccount, cluster: Cluster) -> Callable[[dict[str, Object]], list[str]]:
    """Lets a controller do what these Services ask for; what another one would still do, which knows nothing of it."""
    certificate = account.certificate()

    node = next(iter(cluster.objects["nodes"]))

    def serve(services: dict[str, Object]) -> list[str]:
        for index, (_, asked) in enumerate(sorted(services.items())):
            annotations = asked["metadata"]["annotations"]
            own = {key: text.replace(CERTIFICATE, certificate) for key, text in annotations.items()}
            name = f"web-{index}"
            cluster.put(service(own, name=name, **asked["spec"]))
            pods = endpoint_slice(*(endpoint(each, node) for each in ("10.0.64.9", "10.0.64.10")), name=name, of=name)
            cluster.put_slice(pods)
        # Once: a further round would mend what a new listener lacks.
        Running(account, cluster).settle(rounds=1)
        assert "UnAvailableLoadBalancer" not in cluster.reasons
        left = (each for each in Running(account, cluster).plan() if not isinstance(each.operation, SetIngress))
        return [f"{each.target}: {each.summary} {each.changes}" for each in left]

    return serve


BringAbout = Callable[[dict[str, Object]], list[str]]


@KINDS
def test_what_was_made_is_read_back_as_it_was_wanted_and_can_be_taken_back(
    services: dict[str, Object], bring_about: BringAbout
) -> None:
    assert bring_about(services) == []

    plain = dict.fromkeys(services, services["plain"]) | {"internal": services["internal"]}
    assert bring_about(plain) == []


@KINDS
def test_what_a_service_asks_for_later_is_read_back_as_well(
    services: dict[str, Object], bring_about: BringAbout
) -> None:
    bring_about(dict.fromkeys(services, services["plain"]) | {"internal": services["internal"]})
    assert bring_about(services) == []


def test_subnets_and_groups_of_ones_own_are_read_back(account: AwsAccount, bring_about: BringAbout) -> None:
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
    assert bring_about(services) == []

    plain = {name: CLASSIC["plain"] if "classic" in name else NETWORK["plain"] for name in services}
    assert bring_about(plain) == []
