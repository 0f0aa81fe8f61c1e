"""Classic load balancers on a simulated AWS: what a Service's visit calls, and what stands there afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.build_classic import POOL
from cloud_controller.clouds.aws.names import load_balancer_name
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import Built, LoadBalancerModel, LoadBalancerState, Owner
from cloud_controller.load_balancers.operations import AddMembers, DeleteLoadBalancer, RemoveMembers
from tests.cloud_controller.clouds.aws.conftest import CLUSTER, CLUSTER_TAG, AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import Between, Call, Refusal, Refusing, security_groups_in_use
from tests.cloud_controller.clouds.aws.in_the_account import (
    classic_load_balancers,
    group_of_people,
    groups_made,
    rules_of,
)
from tests.cloud_controller.clouds.aws.services import backends, classic, named, put_nodes
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, performed, port, served

OWNER = Owner(CLUSTER, "uid-web", "default", "web")


def modelled(running: Running) -> LoadBalancerModel:
    """What the Service's load balancer has to be."""
    lbs, nodes = running.cloud.load_balancers, running.cluster.objects["nodes"].values()
    built: Built = lbs.builder.build(classic(), backends(*nodes), lbs.facts([classic()], {}, ()))
    return built.model


def described(account: AwsAccount) -> Any:
    (found,) = classic_load_balancers(account)
    return found


def attributes(account: AwsAccount) -> Any:
    name = described(account)["LoadBalancerName"]
    return account.elb.describe_load_balancer_attributes(LoadBalancerName=name)["LoadBalancerAttributes"]


def tags(account: AwsAccount) -> dict[str, str]:
    name = described(account)["LoadBalancerName"]
    (found,) = account.elb.describe_tags(LoadBalancerNames=[name])["TagDescriptions"]
    return {tag["Key"]: tag["Value"] for tag in found["Tags"]}


def refusing(instance: str) -> Refusing:
    """AWS, which refuses a whole call with this instance, as it does with one that is gone."""

    def refuses(_operation: str, params: dict[str, Any]) -> Refusal | None:
        named = {each["InstanceId"] for each in params.get("Instances", ())}
        return ("InvalidInstance", "could not find EC2 instance") if instance in named else None

    return Refusing(refuses)


class Unseen(Between):
    """AWS, which does not show a load balancer by its name the first times that it is asked."""

    def __init__(self, left: int) -> None:
        self.left = left

    def call(self, real: Call, service: str, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = real(service, operation, **params)
        if operation == "DescribeLoadBalancers" and self.left and "LoadBalancerNames" in params:
            self.left -= 1
            answer["LoadBalancerDescriptions"] = []
        return answer


# ------------------------------------------------------------------------------------------------------------ creation


def test_a_load_balancer_is_made_with_its_groups_its_check_and_its_instances(
    account: AwsAccount, cluster: Cluster
) -> None:
    running = Running(account, cluster)

    assert running.apply(classic()) == {
        "ec2 CreateSecurityGroup": 2,
        "ec2 AuthorizeSecurityGroupIngress": 2,
        "elb CreateLoadBalancer": 1,
        "elb ConfigureHealthCheck": 1,
        "elb RegisterInstancesWithLoadBalancer": 1,
    }
    lb = described(account)
    assert lb["Scheme"] == "internet-facing"
    assert {*lb["Subnets"]} == {*account.public_subnets}
    assert {each["InstanceId"] for each in lb["Instances"]} == {*cluster.objects["nodes"]}
    assert lb["HealthCheck"]["Target"] == "TCP:30080"
    assert len(lb["SecurityGroups"]) == 2
    assert OWNER.tags.items() <= tags(account).items()
    assert tags(account)[CLUSTER_TAG] == "owned"


def test_what_aws_does_not_show_at_once_is_looked_for_again_and_not_made_again(
    account: AwsAccount, cluster: Cluster
) -> None:
    lists = Unseen(2)
    running = Running(account, cluster, wrap=lists)

    running.apply(classic())

    assert lists.left == 0
    assert running.calls.writes["elb CreateLoadBalancer"] == 1


def test_a_listener_that_comes_later_has_proxy_protocol_too(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, classic(named(proxy_protocol="*")))

    running.apply(classic(named(proxy_protocol="*"), port(80), port(81)))

    proxied = {each["InstancePort"]: each["PolicyNames"] for each in described(account)["BackendServerDescriptions"]}
    assert proxied == {number: ["k8s-proxyprotocol-enabled"] for number in (30080, 30081)}, "upstream's name"


def test_a_foreign_load_balancer_of_the_same_name_is_refused_and_left_alone(
    account: AwsAccount, cluster: Cluster
) -> None:
    running = Running(account, cluster)
    model = modelled(running)
    account.elb.create_load_balancer(
        LoadBalancerName=load_balancer_name(model, OWNER.client_token),
        Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 22, "InstanceProtocol": "TCP", "InstancePort": 22}],
        Subnets=account.public_subnets[:1],
    )
    before = described(account)

    with pytest.raises(InvalidConfiguration, match="exists, but does not have the tags of Service default/web"):
        running.apply(classic())

    assert described(account) == before


# -------------------------------------------------------------------------------------------------------------- reads


def test_attributes_are_asked_for_once(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, classic())

    running.observed()
    running.observed()

    assert running.calls.of("elb DescribeLoadBalancerAttributes") == 0


def test_attributes_are_not_asked_for_after_a_restart_that_remembers(account: AwsAccount, cluster: Cluster) -> None:
    first = served(account, cluster, classic(named(connection_idle_timeout=120)))
    kept = first.cloud.load_balancers.dump(10_000)

    second = Running(account, cluster, wrap=lambda cloud: cloud.load_balancers.restore(kept))

    assert second.plan().changes == ()
    assert second.plan().changes == ()
    assert second.calls.of("elb DescribeLoadBalancerAttributes") == 0


def test_where_somebody_else_changed_it_attributes_are_asked_for_again(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, classic())
    name = described(account)["LoadBalancerName"]
    account.elb.delete_load_balancer_listeners(LoadBalancerName=name, LoadBalancerPorts=[80])

    running.observed()
    running.observed()

    assert running.calls.of("elb DescribeLoadBalancerAttributes") == 1


def test_attributes_that_somebody_else_changed_are_found_after_a_restart_and_set_back(
    account: AwsAccount, cluster: Cluster
) -> None:
    served(account, cluster, classic())
    account.elb.modify_load_balancer_attributes(
        LoadBalancerName=described(account)["LoadBalancerName"],
        LoadBalancerAttributes={"ConnectionSettings": {"IdleTimeout": 7}},
    )

    assert Running(account, cluster).apply(classic()) == {"elb ModifyLoadBalancerAttributes": 1}
    assert attributes(account)["ConnectionSettings"] == {"IdleTimeout": 60}


def test_many_load_balancers_are_read_in_few_calls(account: AwsAccount, cluster: Cluster) -> None:
    for number in range(21):
        account.elb.create_load_balancer(
            LoadBalancerName=f"k8s-shop-web-{number}",
            Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 30080}],
            Subnets=account.public_subnets[:1],
            Tags=[{"Key": key, "Value": value} for key, value in OWNER.tags.items()],
        )
    running = Running(account, cluster)
    running.cloud.load_balancers.read(None)
    running.calls.clear()

    assert len(running.cloud.load_balancers.read(None)) == 21

    counts = running.calls.counts
    assert {each: count for each, count in counts.items() if each.startswith("elb ")} == {
        "elb DescribeLoadBalancers": 1,
        "elb DescribeTags": 2,
    }


def test_load_balancers_of_others_are_not_even_asked_for_their_tags(account: AwsAccount, cluster: Cluster) -> None:
    account.elb.create_load_balancer(
        LoadBalancerName="somebodys",
        Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 22, "InstanceProtocol": "TCP", "InstancePort": 22}],
        Subnets=account.public_subnets[:1],
    )
    running = Running(account, cluster)

    assert running.cloud.load_balancers.read(None) == []
    assert running.calls.of("elb DescribeTags") == 0


def test_health_is_that_of_each_instance(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, classic())
    stopped, serving = cluster.objects["nodes"]
    account.ec2.stop_instances(InstanceIds=[stopped])

    health = running.cloud.load_balancers.health(described(account)["LoadBalancerName"])

    assert health == {(POOL, stopped, 0): False, (POOL, serving, 0): True}


# ------------------------------------------------------------------------------------------------------------ changes


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"connection_idle_timeout": 120}, {"elb ModifyLoadBalancerAttributes": 1}),
        ({"connection_draining_enabled": True}, {"elb ModifyLoadBalancerAttributes": 1}),
        ({"cross_zone_load_balancing_enabled": True}, {"elb ModifyLoadBalancerAttributes": 1}),
        ({"healthcheck_interval": 20}, {"elb ConfigureHealthCheck": 1}),
        ({"additional_resource_tags": "team=web"}, {"elb AddTags": 1, "ec2 CreateTags": 1}),
        (
            {"load_balancer_source_ranges": "10.0.0.0/8"},
            {"ec2 AuthorizeSecurityGroupIngress": 1, "ec2 RevokeSecurityGroupIngress": 1},
        ),
        (
            {"proxy_protocol": "*"},
            {"elb CreateLoadBalancerPolicy": 1, "elb SetLoadBalancerPoliciesForBackendServer": 1},
        ),
    ],
)
def test_a_changed_annotation_costs_only_what_it_changes(
    account: AwsAccount, cluster: Cluster, change: dict[str, Any], expected: dict[str, int]
) -> None:
    running = served(account, cluster, classic())

    assert running.apply(classic(named(**change))) == expected


def test_a_new_port_and_one_that_goes(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, classic({}, port(80), port(81)))

    assert running.apply(classic({}, port(80), port(82))) == {
        "ec2 AuthorizeSecurityGroupIngress": 1,
        "ec2 RevokeSecurityGroupIngress": 1,
        "elb CreateLoadBalancerListeners": 1,
        "elb DeleteLoadBalancerListeners": 1,
    }
    assert {each["Listener"]["LoadBalancerPort"] for each in described(account)["ListenerDescriptions"]} == {80, 82}


def test_another_node_port_makes_the_listener_anew(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, classic({}, port(80), port(81)))

    assert running.apply(classic({}, port(80), port(81, nodePort=31081))) == {
        "elb CreateLoadBalancerListeners": 1,
        "elb DeleteLoadBalancerListeners": 1,
    }
    ports = {each["Listener"]["InstancePort"] for each in described(account)["ListenerDescriptions"]}
    assert ports == {30080, 31081}


def test_proxy_protocol_does_not_stay_with_a_port_that_nobody_uses(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, classic(named(proxy_protocol="*"), port(80), port(81)))

    running.apply(classic(named(proxy_protocol="*"), port(80)))

    assert [each["InstancePort"] for each in described(account)["BackendServerDescriptions"]] == [30080]


def test_another_certificate_is_one_call(account: AwsAccount, cluster: Cluster) -> None:
    old, new = account.certificate(), account.certificate("www.example.com")
    running = served(account, cluster, classic(named(ssl_cert=old, backend_protocol="ssl"), port(443)))

    changed = classic(named(ssl_cert=new, backend_protocol="ssl"), port(443))

    assert running.apply(changed) == {"elb SetLoadBalancerListenerSSLCertificate": 1}


def test_a_certificate_in_another_case_is_the_same_one(account: AwsAccount, cluster: Cluster) -> None:
    arn = account.certificate()
    running = served(account, cluster, classic(named(ssl_cert=arn, backend_protocol="ssl"), port(443)))

    shouted = classic(named(ssl_cert=arn.upper(), backend_protocol="ssl"), port(443))

    assert running.apply(shouted) == {}


def test_another_cipher_suite_is_a_policy_and_its_use(account: AwsAccount, cluster: Cluster) -> None:
    tls: dict[str, Any] = {"ssl_cert": account.certificate(), "backend_protocol": "ssl"}
    running = served(account, cluster, classic(named(**tls), port(443)))

    changed = classic(named(**tls, ssl_negotiation_policy="ELBSecurityPolicy-TLS-1-2-2017-01"), port(443))

    assert running.apply(changed) == {
        "elb CreateLoadBalancerPolicy": 1,
        "elb SetLoadBalancerPoliciesOfListener": 1,
    }
    (listener,) = described(account)["ListenerDescriptions"]
    assert listener["PolicyNames"] == ["k8s-SSLNegotiationPolicy-ELBSecurityPolicy-TLS-1-2-2017-01"], "upstream's name"


def test_awss_own_cipher_suite_comes_back_with_a_new_listener(account: AwsAccount, cluster: Cluster) -> None:
    tls: dict[str, Any] = {"ssl_cert": account.certificate(), "backend_protocol": "ssl"}
    policy = "ELBSecurityPolicy-TLS-1-2-2017-01"
    running = served(account, cluster, classic(named(**tls, ssl_negotiation_policy=policy), port(443)))

    assert running.apply(classic(named(**tls), port(443))) == {
        "elb CreateLoadBalancerListeners": 1,
        "elb DeleteLoadBalancerListeners": 1,
    }


def test_groups_of_people_take_the_place_of_ours_which_is_deleted(account: AwsAccount, cluster: Cluster) -> None:
    theirs = group_of_people(account)
    running = served(account, cluster, classic())

    assert running.apply(classic(named(security_groups=theirs))) == {
        "elb ApplySecurityGroupsToLoadBalancer": 1,
        "ec2 DeleteSecurityGroup": 1,
    }
    assert theirs in described(account)["SecurityGroups"]
    assert rules_of(account, theirs) == []


# ------------------------------------------------------------------------------------------------------------ members


def test_a_node_that_comes_is_one_call_however_many_ports(account: AwsAccount, cluster: Cluster) -> None:
    service = classic({}, *(port(number) for number in range(80, 90)))
    running = served(account, cluster, service)
    (new,) = account.launch(1)

    put_nodes(cluster, [new])
    running.take_nodes()
    assert running.apply(service) == {"elb RegisterInstancesWithLoadBalancer": 1}

    del cluster.objects["nodes"][new["InstanceId"]]
    running.take_nodes()
    assert running.apply(service) == {"elb DeregisterInstancesFromLoadBalancer": 1}


def test_an_instance_that_aws_does_not_take_keeps_no_other_out_and_is_tried_again(
    account: AwsAccount, cluster: Cluster
) -> None:
    before = dict(cluster.objects["nodes"])
    cluster.objects["nodes"].clear()
    running = served(account, cluster, classic())
    cluster.objects["nodes"] |= before
    put_nodes(cluster, account.launch(2))
    _, refused, *_ = cluster.objects["nodes"]
    refusing(refused)(running.cloud)

    running.take_nodes()
    running.handle(WEB)

    others = {*cluster.objects["nodes"]} - {refused}
    assert {each["InstanceId"] for each in described(account)["Instances"]} == others
    (again,) = running.plan().changes
    assert again.operation == AddMembers(described(account)["LoadBalancerName"], POOL, (Member(refused, 0, refused),))


def test_an_instance_that_aws_does_not_take_stops_no_creation(account: AwsAccount, cluster: Cluster) -> None:
    taken, refused = cluster.objects["nodes"]
    cluster.put(classic())

    Running(account, cluster, wrap=refusing(refused)).handle(WEB)

    assert [each["InstanceId"] for each in described(account)["Instances"]] == [taken]


def test_an_instance_that_is_gone_already_keeps_no_other_in(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, classic())
    name = described(account)["LoadBalancerName"]
    ids = [*cluster.objects["nodes"]]
    account.elb.deregister_instances_from_load_balancer(LoadBalancerName=name, Instances=[{"InstanceId": ids[0]}])
    refusing(ids[0])(running.cloud)

    performed(running.cloud.load_balancers, RemoveMembers(name, POOL, tuple(Member(each, 0, each) for each in ids)))

    assert described(account)["Instances"] == []


# ----------------------------------------------------------------------------------------------------------- deletion


def test_a_group_that_is_still_in_use_leaves_the_rest_to_be_seen_and_deleted_later(
    account: AwsAccount, cluster: Cluster
) -> None:
    in_use = security_groups_in_use()
    running = served(account, cluster, classic(), wrap=in_use)

    cluster.delete_service()
    running.settle()
    (left,) = running.observed()
    assert left.state is LoadBalancerState.PARTIAL
    assert not left.settled

    in_use.end()
    running.settle()
    assert running.observed() == []


def test_one_whose_groups_are_all_of_people_outlasts_the_shared_group(account: AwsAccount, cluster: Cluster) -> None:
    """Nothing else carries the Service's tags: were it gone first, nobody would know that something is left."""
    theirs, in_use = group_of_people(account), security_groups_in_use()
    running = served(account, cluster, classic(named(security_groups=theirs)), wrap=in_use)

    cluster.delete_service()
    running.settle()
    assert described(account)["SecurityGroups"] == [theirs]

    in_use.end()
    running.settle()
    assert classic_load_balancers(account) == []
    assert groups_made(account) == ["theirs"]


def test_one_that_lost_its_tags_is_not_deleted(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, classic())
    (observed,) = running.observed()
    name = described(account)["LoadBalancerName"]
    account.elb.remove_tags(LoadBalancerNames=[name], Tags=[{"Key": "kubernetes.io/cluster"}])

    with pytest.raises(InvalidConfiguration, match="does not have this cluster's tags"):
        performed(running.cloud.load_balancers, DeleteLoadBalancer(observed.id), on=observed)

    assert described(account)["LoadBalancerName"] == name
