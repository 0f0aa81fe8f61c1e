"""A security group to which rules of other groups refer: AWS refuses to delete it, and nobody waits in silence."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import Conflict
from cloud_controller.clouds.aws.ip_permissions import from_group, ip_permissions
from cloud_controller.clouds.aws.security_group_calls import SecurityGroupCalls
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.clouds.common.cache import Cache
from tests.clock import Clock
from tests.cloud_controller.calls import Calls
from tests.cloud_controller.clouds.aws.conftest import CLUSTER_TAG, AwsAccount, tag_list
from tests.cloud_controller.clouds.aws.faulty_aws import Refusal, Refusing
from tests.cloud_controller.clouds.aws.in_the_account import assert_nothing_left, load_balancers
from tests.cloud_controller.clouds.aws.services import nlb
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, port


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    cluster.put(nlb({}, port(80), port(443)))
    return cluster


def as_aws_refuses(account: AwsAccount) -> Refusing:
    """AWS, which deletes no group to which a rule of another one refers (moto does)."""

    def refusal(operation: str, params: dict[str, Any]) -> Refusal | None:
        if operation != "DeleteSecurityGroup":
            return None
        wanted = params["GroupId"]
        others = (each for each in groups(account) if each["GroupId"] != wanted)
        referred = any(wanted in str((each["IpPermissions"], each["IpPermissionsEgress"])) for each in others)
        return ("DependencyViolation", f"resource {wanted} has a dependent object") if referred else None

    return Refusing(refusal)


def groups(account: AwsAccount) -> list[Any]:
    return [*account.ec2.describe_security_groups()["SecurityGroups"]]


def add_group(account: AwsAccount, name: str, tags: dict[str, str] | None = None) -> str:
    made = account.ec2.create_security_group(GroupName=name, Description=name, VpcId=account.vpc_id)["GroupId"]
    if tags:
        account.ec2.create_tags(Resources=[made], Tags=tag_list(tags))
    return made


def let_in(account: AwsAccount, group: str, source: str) -> None:
    permissions: Any = ip_permissions([from_group(source)])
    account.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=permissions)


def front_of(account: AwsAccount) -> str:
    (lb,) = load_balancers(account)
    names = {each["GroupId"]: each["GroupName"] for each in groups(account)}
    return next(str(each) for each in lb["SecurityGroups"] if "shared" not in names[each])


def test_a_rule_in_a_group_of_the_cluster_is_taken_away(account: AwsAccount, cluster: Cluster) -> None:
    running = Running(account, cluster, wrap=as_aws_refuses(account)).settle()
    of_cluster = add_group(account, "databases", {CLUSTER_TAG: "owned"})
    let_in(account, of_cluster, front_of(account))

    cluster.delete_service()
    running.settle()

    assert not cluster.objects["services"]
    (rest,) = (each for each in groups(account) if each["GroupId"] == of_cluster)
    assert rest["IpPermissions"] == []
    account.ec2.delete_security_group(GroupId=of_cluster)
    assert_nothing_left(account)


@pytest.mark.parametrize("direction", ["ingress", "egress"])
def test_a_rule_in_a_foreign_group_is_named_with_awss_reason(
    direction: str, account: AwsAccount, cluster: Cluster
) -> None:
    running = Running(account, cluster, wrap=as_aws_refuses(account)).settle()
    foreign, front = add_group(account, "databases"), front_of(account)
    permissions: Any = ip_permissions([from_group(front)])
    change: Any = getattr(account.ec2, f"authorize_security_group_{direction}")
    change(GroupId=foreign, IpPermissions=permissions)

    cluster.delete_service()
    with pytest.raises(Conflict, match="DependencyViolation"):
        running.settle()

    reason, message = cluster.events[-1]
    assert reason == "SyncLoadBalancerFailed"
    assert f"security group {front} " in message
    assert f"remove the {direction} rules of {foreign} (databases) that refer to it" in message
    assert cluster.service(WEB)["metadata"]["finalizers"]


def test_it_goes_when_the_foreign_rule_has_gone(account: AwsAccount, cluster: Cluster) -> None:
    running = Running(account, cluster, wrap=as_aws_refuses(account)).settle()
    foreign = add_group(account, "databases")
    let_in(account, foreign, front_of(account))
    cluster.delete_service()
    with pytest.raises(Conflict):
        running.settle()

    account.ec2.delete_security_group(GroupId=foreign)
    running.settle()

    assert_nothing_left(account)
    assert not cluster.objects["services"]


@pytest.fixture
def scene(account: AwsAccount, calls: Calls) -> tuple[SecurityGroupCalls, Clock, Any]:
    """A group that is always in use, and the time."""
    api, clock = account.api(), Clock(1000.0)
    refusing = Refusing(lambda operation, _: ("DependencyViolation", "in use") if "Delete" in operation else None)

    class Cloud:
        _api = api

    refusing(Cloud())  # type: ignore[arg-type]
    api.observer = calls
    vpc_state = VpcState(api, CLUSTER_TAG, account.vpc_id, Cache())
    group = SecurityGroupCalls(api, vpc_state).create("k8s-default-web-0123456789", "web", {CLUSTER_TAG: "owned"})
    return SecurityGroupCalls(api, vpc_state, clock), clock, group


def test_a_group_that_nothing_refers_to_is_in_use_for_minutes_without_a_word(
    scene: tuple[SecurityGroupCalls, Clock, Any],
) -> None:
    calls, clock, group = scene
    for _ in range(9):
        assert calls.delete(group) is False
        clock.now += 60


def test_one_that_is_in_use_for_longer_is_an_error_with_awss_reason(
    scene: tuple[SecurityGroupCalls, Clock, Any],
) -> None:
    calls, clock, group = scene
    calls.delete(group)

    clock.now += 660
    with pytest.raises(Conflict, match=r"DependencyViolation: in use, for 11 minutes"):
        calls.delete(group)


def test_what_refers_to_it_is_looked_for_once_a_minute(
    scene: tuple[SecurityGroupCalls, Clock, Any], calls: Calls
) -> None:
    deleting, clock, group = scene
    calls.clear()
    for _ in range(20):
        deleting.delete(group)
        clock.now += 10

    assert calls.of("ec2 DescribeSecurityGroups") == 2 * 4
