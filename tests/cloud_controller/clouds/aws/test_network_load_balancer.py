"""Services on network load balancers: what they get in AWS, by which calls, and what is left afterwards."""

from __future__ import annotations

import time
from threading import Thread

import pytest

from cloud_controller.cloud import Conflict
from cloud_controller.clouds.aws.memory import LIFETIME
from cloud_controller.load_balancers.model import SERVICE_UID_TAG
from tests.cloud_controller.clouds.aws.conftest import CLUSTER, AwsAccount, tag_list
from tests.cloud_controller.clouds.aws.in_the_account import (
    assert_nothing_left,
    group_of_people,
    groups_made,
    listeners,
    load_balancers,
    node_rules,
    tags_of,
    target_groups,
    targets,
)
from tests.cloud_controller.clouds.aws.services import TYPE, named, nlb, put_nodes
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, changed, port, served


def by_port(account: AwsAccount) -> dict[int, set[tuple[str, int]]]:
    """The targets behind each listener of the only load balancer."""
    groups = {group["TargetGroupArn"]: group for group in target_groups(account)}
    (lb,) = load_balancers(account)
    return {
        number: targets(account, groups[each["DefaultActions"][0]["TargetGroupArn"]])
        for number, each in listeners(account, lb).items()
    }


# ------------------------------------------------------------------------------------------------------ what is made


def test_a_service_gets_a_load_balancer_whose_ports_lead_to_its_nodes(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(80), port(443)))

    (lb,) = load_balancers(account)
    nodes = [*cluster.objects["nodes"]]
    assert (lb["Type"], lb["Scheme"], lb["State"]["Code"]) == ("network", "internet-facing", "active")
    assert {zone["SubnetId"] for zone in lb["AvailabilityZones"]} == {*account.public_subnets}
    assert by_port(account) == {80: {(n, 30080) for n in nodes}, 443: {(n, 30443) for n in nodes}}
    assert cluster.ingress == [{"hostname": lb["DNSName"]}]
    assert cluster.reasons == ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]
    running.settle()
    assert running.calls.made == [], "at rest, nothing is called"


def test_tls_ends_at_a_listener_with_its_certificates(account: AwsAccount, cluster: Cluster) -> None:
    first, second = (f"arn:aws:iam::123456789012:server-certificate/{name}" for name in ("a", "b"))
    running = served(account, cluster, nlb(named(ssl_cert=(first, second), ssl_ports="443"), port(80), port(443)))

    (lb,) = load_balancers(account)
    found = listeners(account, lb)
    assert (found[80]["Protocol"], found[443]["Protocol"]) == ("TCP", "TLS")
    assert found[443]["Certificates"][0] == {"CertificateArn": first}
    further = account.elbv2.describe_listener_certificates(ListenerArn=found[443]["ListenerArn"])["Certificates"]
    assert second in {each["CertificateArn"] for each in further}
    assert found[443]["SslPolicy"] == "ELBSecurityPolicy-2016-08"
    assert running.calls.made == []


# ---------------------------------------------------------------------------------------------------------- changes


def test_a_changed_health_check_is_one_write_a_target_group(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(80), port(443)))

    changed(cluster, named(healthcheck_healthy_threshold=5))
    running.settle()

    assert dict(running.calls.counts) == {"elbv2 ModifyTargetGroup": 2}
    assert {group["HealthyThresholdCount"] for group in target_groups(account)} == {5}


def test_source_ranges_change_the_rules_and_nothing_else(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(80)))

    changed(cluster, loadBalancerSourceRanges=["10.0.0.0/8"])
    running.settle()

    assert {*running.calls.writes} == {"ec2 AuthorizeSecurityGroupIngress", "ec2 RevokeSecurityGroupIngress"}


def test_groups_of_people_take_the_place_of_our_own(account: AwsAccount, cluster: Cluster) -> None:
    theirs = group_of_people(account)
    running = served(account, cluster, nlb({}, port(80), port(443)))

    changed(cluster, named(security_groups=theirs))
    running.settle()

    (lb,) = load_balancers(account)
    assert theirs in lb["SecurityGroups"] and len(lb["SecurityGroups"]) == 2, "theirs, and the one that reaches nodes"
    assert [name for name in groups_made(account) if not name.startswith("k8s-shared-")] == ["theirs"]
    cluster.delete_service()
    running.settle()
    assert groups_made(account) == ["theirs"]


def test_a_port_that_changes_its_protocol_keeps_its_listener(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(53)))

    changed(cluster, ports=[port(53, "UDP", nodePort=30054)])
    running.settle()

    (lb,) = load_balancers(account)
    assert [each["Protocol"] for each in listeners(account, lb).values()] == ["UDP"]
    assert running.calls.of("elbv2 ModifyListener") == 1
    assert running.calls.of("elbv2 DeleteListener") == 0
    assert len(target_groups(account)) == 1
    running.calls.clear()
    running.settle()
    assert running.calls.made == []


def test_a_node_port_that_changes_changes_the_targets(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(80)))

    changed(cluster, ports=[port(80, nodePort=30999)])
    running.settle()

    assert by_port(account) == {80: {(node, 30999) for node in cluster.objects["nodes"]}}
    assert dict(running.calls.writes) == {"elbv2 RegisterTargets": 1, "elbv2 DeregisterTargets": 1}


def test_all_that_is_made_has_the_services_tags_and_those_that_come_later(
    account: AwsAccount, cluster: Cluster
) -> None:
    running = served(account, cluster, nlb(named(additional_resource_tags="stage=test"), port(80)))

    changed(cluster, named(additional_resource_tags="stage=test,team=web"))
    running.settle()

    (lb,), (group,) = load_balancers(account), target_groups(account)
    (listener,) = listeners(account, lb).values()
    for arn in (lb["LoadBalancerArn"], group["TargetGroupArn"], listener["ListenerArn"]):
        assert tags_of(account, arn).items() >= {"stage": "test", "team": "web"}.items()
    assert dict(running.calls.writes) == {"elbv2 AddTags": 3, "ec2 CreateTags": 1}


def test_tags_that_somebody_else_has_just_added_stay(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(80), port(443)))
    (lb,) = load_balancers(account)
    account.elbv2.add_tags(ResourceArns=[lb["LoadBalancerArn"]], Tags=[{"Key": "cost-centre", "Value": "42"}])

    changed(cluster, named(cross_zone_load_balancing_enabled=True))
    running.settle()

    assert tags_of(account, lb["LoadBalancerArn"])["cost-centre"] == "42"
    assert dict(running.calls.writes) == {"elbv2 ModifyLoadBalancerAttributes": 1}


def test_another_kind_is_another_load_balancer_and_nothing_of_the_old_one_stays(
    account: AwsAccount, cluster: Cluster
) -> None:
    running = served(account, cluster, nlb({}, port(80), port(443)))

    del cluster.service()["metadata"]["annotations"][TYPE]
    running.settle(rounds=6)
    (classic,) = account.elb.describe_load_balancers()["LoadBalancerDescriptions"]
    assert load_balancers(account) == [] and target_groups(account) == []
    assert cluster.ingress == [{"hostname": classic["DNSName"]}]

    changed(cluster, {TYPE: "nlb"})
    running.settle(rounds=6)
    (lb,) = load_balancers(account)
    assert account.elb.describe_load_balancers()["LoadBalancerDescriptions"] == []
    assert cluster.ingress == [{"hostname": lb["DNSName"]}]
    assert len(groups_made(account)) == 2


# ------------------------------------------------------------------------------------------------------------ drift


def test_what_somebody_changed_and_a_list_shows_is_put_right_at_the_next_look(
    account: AwsAccount, cluster: Cluster
) -> None:
    running = served(account, cluster, nlb({}, port(80)))
    (lb,), (group,) = load_balancers(account), target_groups(account)
    account.elbv2.modify_target_group(TargetGroupArn=group["TargetGroupArn"], HealthyThresholdCount=9)
    account.elbv2.set_security_groups(LoadBalancerArn=lb["LoadBalancerArn"], SecurityGroups=lb["SecurityGroups"][:1])

    running.resync()
    running.settle()

    assert dict(running.calls.writes) == {"elbv2 ModifyTargetGroup": 1, "elbv2 SetSecurityGroups": 1}
    assert load_balancers(account)[0]["SecurityGroups"] == lb["SecurityGroups"]


def test_what_lists_do_not_show_is_put_right_once_it_is_read_again(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(80), port(443)))
    (lb,) = load_balancers(account)
    account.elbv2.delete_listener(ListenerArn=listeners(account, lb)[80]["ListenerArn"])
    account.elbv2.remove_tags(ResourceArns=[lb["LoadBalancerArn"]], TagKeys=["kubernetes.io/service-name"])

    running.cloud._cache.clock = lambda: time.monotonic() + LIFETIME
    running.resync()
    running.settle()

    assert {*listeners(account, lb)} == {80, 443}
    assert tags_of(account, lb["LoadBalancerArn"])["kubernetes.io/service-name"] == WEB
    assert dict(running.calls.writes) == {"elbv2 CreateListener": 1, "elbv2 AddTags": 4}, "it, and what it has"


def test_what_others_made_is_looked_at_once(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(80), port(443)))
    account.elbv2.create_load_balancer(Name="k8s-of-others", Type="network", Subnets=account.public_subnets)
    running.resync()
    assert running.calls.of("elbv2 DescribeTags") == 1

    running.calls.clear()
    running.resync()

    assert running.calls.of("elbv2 DescribeTags") == 0


# ------------------------------------------------------------------------------------------------------------ nodes


# -------------------------------------------------------------------------------------------------- deletion, owners


def test_of_several_the_last_one_takes_what_they_share(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(80), port(443)))
    cluster.put(nlb({}, port(80), port(443), name="second"))
    running.settle()

    cluster.delete_service()
    running.settle()
    assert node_rules(account) == 1 and len(groups_made(account)) == 2

    cluster.delete_service("default/second")
    running.settle()
    assert_nothing_left(account)


@pytest.mark.parametrize("tag", ["kubernetes.io/cluster", SERVICE_UID_TAG])
def test_one_that_was_given_to_another_since_it_was_read_is_not_deleted(
    account: AwsAccount, cluster: Cluster, tag: str
) -> None:
    running = served(account, cluster, nlb({}, port(80), port(443)))
    (lb,) = load_balancers(account)
    account.elbv2.add_tags(ResourceArns=[lb["LoadBalancerArn"]], Tags=[{"Key": tag, "Value": "another"}])

    cluster.delete_service()
    with pytest.raises(Conflict, match="no longer has the tags of its Service"):
        running.settle(WEB)

    assert len(load_balancers(account)) == 1


def test_one_that_another_service_of_the_name_left_is_not_taken_for_ones_own(
    account: AwsAccount, cluster: Cluster
) -> None:
    served(account, cluster, nlb({}, port(80), port(443), uid="uid-old"))
    (old,) = load_balancers(account)
    cluster.put(nlb({}, port(80), port(443), uid="uid-new"))

    running = Running(account, cluster).settle(rounds=6)
    running.confirm_all()
    running.settle()

    (lb,) = load_balancers(account)
    assert lb["LoadBalancerName"] != old["LoadBalancerName"]
    assert tags_of(account, lb["LoadBalancerArn"])[SERVICE_UID_TAG] == "uid-new"


@pytest.mark.parametrize("annotations", [{}, {TYPE: "classic"}], ids=["network", "classic"])
def test_two_clusters_in_one_vpc_know_nothing_of_each_other_though_one_is_a_copy(
    account: AwsAccount, cluster: Cluster, annotations: dict[str, str]
) -> None:
    second = Cluster()
    put_nodes(second, account.launch(1))
    of_second = tag_list({"kubernetes.io/cluster/second": "owned"})
    nodes = account.ec2.create_security_group(GroupName="nodes-2", Description="nodes", VpcId=account.vpc_id)["GroupId"]
    account.ec2.create_tags(Resources=[nodes, *account.public_subnets], Tags=of_second)
    worlds = []
    for each, cluster_id in ((cluster, CLUSTER), (second, "second")):
        each.put(nlb(annotations, port(80), port(443)))
        worlds.append(Running(account, each, cluster_id=cluster_id, vpc_id=account.vpc_id))
    for running in (*worlds, *worlds):
        running.resync()
        running.settle()
    assert cluster.ingress and second.ingress and cluster.ingress != second.ingress

    first = worlds[0]
    cluster.delete_service()
    first.settle()
    worlds[1].calls.clear()
    worlds[1].resync()
    worlds[1].settle()

    assert WEB not in cluster.objects["services"]
    assert worlds[1].calls.writes == {}
    assert node_rules(account) == 0
    assert len(account.ec2.describe_security_groups(GroupIds=[nodes])["SecurityGroups"][0]["IpPermissions"]) == 1


def test_many_may_look_at_everything_at_once(account: AwsAccount, cluster: Cluster) -> None:
    for number in range(25):  # More than AWS tells the tags of in one call: then several are made at once.
        account.elb.create_load_balancer(
            LoadBalancerName=f"k8s-of-others-{number}",
            Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 80}],
            Subnets=account.public_subnets,
        )
    running = served(account, cluster, nlb({}, port(80), port(443)))
    read = running.cloud.load_balancers.read

    threads = [Thread(target=read, args=({"uid-web"},), daemon=True) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert not [thread for thread in threads if thread.is_alive()], "they wait for one another"


def test_a_certificate_that_is_named_in_another_case_is_the_same_one(account: AwsAccount, cluster: Cluster) -> None:
    first, second = (f"arn:aws:iam::123456789012:server-certificate/{name}" for name in ("a", "b"))
    running = served(account, cluster, nlb(named(ssl_cert=(first, second), ssl_ports="443"), port(80), port(443)))

    changed(cluster, named(ssl_cert=(first.upper(), second.upper())))
    running.settle()

    assert running.calls.writes == {}


def test_targets_are_registered_a_hundred_at_once(account: AwsAccount, cluster: Cluster) -> None:
    put_nodes(cluster, account.launch(99))
    cluster.put(nlb({}, port(80)))
    running = Running(account, cluster)

    running.settle()

    assert running.calls.of("elbv2 RegisterTargets") == 2
    assert len(by_port(account)[80]) == 101
