"""A cluster that comes from upstream's controller keeps its load balancers, with their addresses and their parts."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.ip_permissions import rule_texts
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.load_balancers.model import SERVICE_UID_TAG
from tests.cloud_controller.clouds.aws.conftest import CLUSTER_TAG, AwsAccount, tag_list
from tests.cloud_controller.clouds.aws.in_the_account import load_balancers, target_groups
from tests.cloud_controller.clouds.aws.services import put_nodes
from tests.cloud_controller.clouds.aws.upstream_world import Upstream, recorded_services, upstream_name
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running

NODES = 4


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def upstream(account: AwsAccount, cluster: Cluster) -> Upstream:
    machines = account.launch(NODES)
    put_nodes(cluster, machines)
    for machine in machines[:2]:
        cluster.objects["nodes"][machine["InstanceId"]]["metadata"]["labels"]["tier"] = "edge"
    return Upstream(account, machines)


def names(account: AwsAccount) -> list[str]:
    """The load balancers of both kinds."""
    classic = account.elb.describe_load_balancers()["LoadBalancerDescriptions"]
    network = [each["LoadBalancerName"] for each in load_balancers(account)]
    return sorted([*network, *(each["LoadBalancerName"] for each in classic)])


def opened(account: AwsAccount) -> list[Any]:
    (group,) = account.ec2.describe_security_groups(GroupIds=[account.node_group_id])["SecurityGroups"]
    return list(group["IpPermissions"])


def groups_left(account: AwsAccount) -> list[str]:
    found = account.ec2.describe_security_groups()["SecurityGroups"]
    people = ("default", "nodes", "group-1", "group-2")
    return [group["GroupName"] for group in found if group["GroupName"] not in people]


UNLIKE = {
    "nlb-eip-allocations": "moto tells of no addresses",
    "nlb-private-addresses": "moto tells of no addresses",
    "nlb-extra-security-groups": "refused, see below",
    "nlb-own-security-groups": "refused, see below",
    "classic-own-security-groups": "the rule for people's own group stays, see below",
    "type-alb": "the Service is refused",
}


@pytest.mark.parametrize("name", [name for name in recorded_services() if name not in UNLIKE])
def test_a_load_balancer_of_upstream_is_adopted_and_deleted_with_its_service(
    name: str, account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    service = upstream.serve(name)
    cluster.put(service)
    key, lb = f"default/{name}", upstream_name(service["metadata"]["uid"])
    address = service["status"]

    running = Running(account, cluster).settle()

    assert names(account) == [lb]
    assert cluster.service(key)["status"] == address
    reasons = [reason for reason in cluster.reasons if reason != "NotOffered"]
    assert reasons == ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]

    running = Running(account, cluster).settle()
    assert running.calls.writes == {}, "another process finds everything as it should be"

    cluster.delete_service(key)
    running.settle()
    assert not cluster.objects["services"]
    assert (names(account), target_groups(account), groups_left(account)) == ([], [], [])
    assert opened(account) == []


# ------------------------------------------------------------------------------------------------- what is adopted


def tags_of(account: AwsAccount, lb: str) -> dict[str, str]:
    """The tags of a load balancer of either kind."""
    network = {each["LoadBalancerName"]: each["LoadBalancerArn"] for each in load_balancers(account)}
    elbv2: Any = account.elbv2
    if lb in network:
        described = elbv2.describe_tags(ResourceArns=[network[lb]])["TagDescriptions"]
    else:
        described = account.elb.describe_tags(LoadBalancerNames=[lb])["TagDescriptions"]
    return {each["Key"]: each["Value"] for each in described[0]["Tags"]}


def add_tags(account: AwsAccount, lb: str, tags: dict[str, str]) -> None:
    arn = next(each["LoadBalancerArn"] for each in load_balancers(account) if each["LoadBalancerName"] == lb)
    account.elbv2.add_tags(ResourceArns=[arn], Tags=tag_list(tags))  # type: ignore[arg-type]


def remove_tags(account: AwsAccount, lb: str, *keys: str) -> None:
    arn = next(each["LoadBalancerArn"] for each in load_balancers(account) if each["LoadBalancerName"] == lb)
    account.elbv2.remove_tags(ResourceArns=[arn], TagKeys=[*keys])


def serve(upstream: Upstream, cluster: Cluster, name: str) -> tuple[str, str]:
    """Upstream serves the Service of this name; its key, and the name of its load balancer."""
    service = upstream.serve(name)
    cluster.put(service)
    return f"default/{name}", upstream_name(service["metadata"]["uid"])


def test_target_groups_and_targets_of_a_network_load_balancer_stay(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    _, lb = serve(upstream, cluster, "nlb-several-ports")
    before = {group["TargetGroupArn"] for group in target_groups(account)}

    running = Running(account, cluster).settle()

    assert {group["TargetGroupArn"] for group in target_groups(account)} == before
    assert {each["LoadBalancerName"] for each in load_balancers(account)} == {lb}
    assert not {"elbv2 RegisterTargets", "elbv2 ModifyListener"} & running.calls.writes.keys()
    assert tags_of(account, lb)[SERVICE_UID_TAG] == cluster.service("default/nlb-several-ports")["metadata"]["uid"]


def test_a_network_load_balancer_without_security_groups_gets_none(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    serve(upstream, cluster, "nlb-plain")

    running = Running(account, cluster).settle()

    assert "elbv2 SetSecurityGroups" not in running.calls.writes, "AWS lets none be added"
    assert groups_left(account) == []


def rules(account: AwsAccount) -> set[str]:
    return {*rule_texts(opened(account))}


def test_its_clients_reach_the_nodes_through_rules_of_its_own_which_follow_the_service(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    key, _ = serve(upstream, cluster, "nlb-source-ranges")
    running = Running(account, cluster).settle()
    spec = cluster.service(key)["spec"]

    spec["loadBalancerSourceRanges"] = ["203.0.113.0/24"]
    spec["ports"] = [{**spec["ports"][0], "nodePort": 31999}]
    running.settle()

    health = {f"tcp 31999-31999 10.0.{number}.0/24" for number in range(3)}
    assert rules(account) == {"icmp 3-4 203.0.113.0/24", "tcp 31999-31999 203.0.113.0/24", *health}


def test_rules_of_its_own_that_somebody_takes_away_are_back_after_the_next_look(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    serve(upstream, cluster, "nlb-plain")
    Running(account, cluster).settle()
    before = rules(account)

    permissions: Any = opened(account)
    account.ec2.revoke_security_group_ingress(GroupId=account.node_group_id, IpPermissions=permissions)
    Running(account, cluster).settle()

    assert rules(account) == before


def test_a_rule_for_health_checks_that_several_need_goes_with_the_last_of_them(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    keys = [serve(upstream, cluster, name)[0] for name in ("nlb-plain", "nlb-several-ports")]
    running = Running(account, cluster, health_probe_mode="Shared").settle()
    shared = {f"tcp 10256-10256 10.0.{number}.0/24" for number in range(3)}
    assert shared <= rules(account)

    cluster.delete_service(keys[0])
    running.settle()
    assert {*shared, "icmp 3-4 0.0.0.0/0"} <= rules(account)

    cluster.delete_service(keys[1])
    running.settle()
    assert rules(account) == set()


def test_where_others_open_the_nodes_their_rules_are_left_alone(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    key, _ = serve(upstream, cluster, "nlb-plain")
    before = rules(account)

    running = Running(account, cluster, disable_security_group_ingress=True).settle()
    assert rules(account) == before

    cluster.service(key)["spec"]["loadBalancerSourceRanges"] = ["203.0.113.0/24"]
    with pytest.raises(
        InvalidConfiguration, match="source ranges: the load balancer was created without security groups"
    ):
        running.settle()


def test_a_managed_security_group_of_a_network_load_balancer_serves_on(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    key, lb = serve(upstream, cluster, "nlb-plain")
    group = upstream.group("k8s-default-nlbplain-0123456789", ["tcp 80-80 0.0.0.0/0", "icmp 3-4 0.0.0.0/0"])
    arn = load_balancers(account)[0]["LoadBalancerArn"]
    account.elbv2.set_security_groups(LoadBalancerArn=arn, SecurityGroups=[group])

    running = Running(account, cluster).settle()

    assert group in load_balancers(account)[0]["SecurityGroups"]
    assert len(load_balancers(account)[0]["SecurityGroups"]) == 2, "and the shared one, which the nodes let in"
    assert group not in str(opened(account))

    cluster.delete_service(key)
    running.settle()
    assert (names(account), groups_left(account)) == ([], [])
    assert lb not in str(opened(account))


def test_a_security_group_that_upstream_left_behind_goes_with_its_service(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    key, lb = serve(upstream, cluster, "classic-plain")
    account.elb.delete_load_balancer(LoadBalancerName=lb)
    running = Running(account, cluster)

    cluster.delete_service(key)
    running.settle()

    assert groups_left(account) == []
    assert not cluster.objects["services"]


def test_the_nodes_let_in_a_group_of_people_as_before(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    key, lb = serve(upstream, cluster, "classic-own-security-groups")
    before = rules(account)

    running = Running(account, cluster).settle()
    assert rules(account) > before
    assert names(account) == [lb]

    cluster.delete_service(key)
    running.settle()
    assert rules(account) == before, "nobody knows whether others need it"


def test_a_service_that_is_being_deleted_loses_its_finalizer_when_nothing_is_left(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    for name in ("nlb-several-ports", "classic-plain"):
        key, _ = serve(upstream, cluster, name)
        cluster.delete_service(key)

    Running(account, cluster).settle()

    assert (names(account), target_groups(account), groups_left(account), opened(account)) == ([], [], [], [])
    assert not cluster.objects["services"]


# --------------------------------------------------------------------------------------------------- what is refused


def assert_refused(running: Running, key: str, why: str) -> None:
    with pytest.raises(InvalidConfiguration, match=why):
        running.handle(key)
    assert running.calls.writes == {}
    assert why in running.cluster.events[-1][1]


@pytest.mark.parametrize("being_deleted", [False, True])
def test_one_without_the_clusters_tag_is_refused(
    being_deleted: bool, account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    key, lb = serve(upstream, cluster, "nlb-plain")
    remove_tags(account, lb, CLUSTER_TAG)
    add_tags(account, lb, {"kubernetes.io/cluster/another": "owned"})
    if being_deleted:
        cluster.delete_service(key)

    assert_refused(Running(account, cluster), key, "has kubernetes.io/cluster/another")

    assert cluster.service(key)["metadata"]["finalizers"]
    assert names(account) == [lb]


def test_one_that_gets_the_clusters_tag_is_adopted_after_the_next_look(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    key, lb = serve(upstream, cluster, "nlb-plain")
    remove_tags(account, lb, CLUSTER_TAG)
    running = Running(account, cluster)
    assert_refused(running, key, f"it does not have the tag {CLUSTER_TAG}")

    add_tags(account, lb, {CLUSTER_TAG: "owned"})
    running.resync()
    running.settle()

    assert SERVICE_UID_TAG in tags_of(account, lb)


def test_a_classic_and_a_network_one_of_the_same_name_are_both_left_alone(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    key, lb = serve(upstream, cluster, "nlb-plain")
    listener: Any = [{"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 30290}]
    tags: Any = tag_list({CLUSTER_TAG: "owned"})
    subnets = [*account.public_subnets]
    account.elb.create_load_balancer(LoadBalancerName=lb, Listeners=listener, Subnets=subnets, Tags=tags)

    assert_refused(Running(account, cluster), key, "both a classic and a network load balancer have this name")
    assert names(account) == [lb, lb]


def test_annotated_security_groups_are_refused_where_the_load_balancer_can_have_none(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    key, lb = serve(upstream, cluster, "nlb-own-security-groups")
    running = Running(account, cluster)

    with pytest.raises(InvalidConfiguration, match="the load balancer was created without security groups"):
        running.handle(key)

    assert names(account) == [lb]
    assert SERVICE_UID_TAG in tags_of(account, lb), "it is the Service's all the same"


@pytest.mark.parametrize("name", ["nlb-plain", "classic-plain"])
def test_one_whose_service_does_not_exist_is_left_alone_and_reported(
    name: str, account: AwsAccount, cluster: Cluster, upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    service = upstream.serve(name)
    lb = upstream_name(service["metadata"]["uid"])

    running = Running(account, cluster).settle()
    running.resync()

    assert names(account) == [lb]
    assert running.calls.writes == {}
    assert caplog.text.count(f"left alone load_balancer={lb}") == 1
    (line,) = map(str, Running(account, cluster).plan())
    assert "no Service of this cluster has the UID in its name" in line


def test_beside_upstreams_controller_nothing_of_its_is_touched(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    for name in ("nlb-plain", "classic-plain"):
        key, _ = serve(upstream, cluster, name)
    cluster.delete_service(key)

    running = Running(account, cluster, options=ServiceOptions(resync=300.0, without_class=False)).settle()

    assert running.calls.writes == {}
    assert len(names(account)) == 2
    assert Running(account, cluster).plan(without_class=False).actions == ()


# ------------------------------------------------------------------------------------------------------- what it costs


def test_what_was_adopted_costs_no_more_than_what_was_made_here(
    account: AwsAccount, cluster: Cluster, upstream: Upstream
) -> None:
    serve(upstream, cluster, "nlb-several-ports")
    running = Running(account, cluster).settle()
    running.calls.clear()

    running.resync()

    assert running.calls.counts == {"elbv2 DescribeLoadBalancers": 1, "elbv2 DescribeTargetGroups": 1} | {
        "elb DescribeLoadBalancers": 1
    }
