"""Security groups of load balancers: made, changed and deleted with the fewest calls, never left, never foreign."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration, Unavailable
from cloud_controller.clouds.aws import security_group_calls
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.security_groups import SecurityGroups
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import LoadBalancerModel, Owner
from cloud_controller.retries import RetryPolicy
from tests.cloud_controller.calls import Calls
from tests.cloud_controller.clouds.aws.conftest import CLUSTER, CLUSTER_TAG, AwsAccount, tag_list
from tests.cloud_controller.clouds.aws.faulty_aws import security_groups_in_use

OWNER = Owner(CLUSTER, "0f7e5f3c-0000-4000-8000-000000000001", "default", "web")
ID = "k8s-default-web-0123456789"
RULES = ("icmp 3-4 0.0.0.0/0", "tcp 80-80 0.0.0.0/0")


class InterruptedApi(Api):
    """`before` an operation for the first time something else may happen."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.before: dict[str, Callable[[], None]] = {}

    def call(self, service: str, operation: str, /, *, idempotent: bool | None = None, **params: Any) -> dict[str, Any]:
        self.before.pop(f"{service} {operation}", lambda: None)()
        return super().call(service, operation, idempotent=idempotent, **params)


class Scene:
    """One process: its own client, facts and memory."""

    def __init__(self, account: AwsAccount, calls: Calls | None = None, **config: Any) -> None:
        self.api = InterruptedApi(account.config(**config))
        self.api.observer = calls
        self.vpc_state = VpcState(self.api, CLUSTER_TAG, account.vpc_id, Cache())
        self.groups = SecurityGroups(self.api, account.config(**config), self.vpc_state)
        self.vpc_state.facts()
        if calls is not None:
            calls.clear()


def model(
    rules: tuple[str, ...] | None = RULES, named: tuple[str, ...] = (), more_tags: Mapping[str, str] | None = None
) -> LoadBalancerModel:
    attributes: dict[str, Value | None] = {"ingress_rules": rules, "security_groups": named}
    return LoadBalancerModel(
        OWNER.load_balancer_name, attributes, tags={**OWNER.tags, CLUSTER_TAG: "owned", **(more_tags or {})}
    )


def many_rules(count: int) -> tuple[str, ...]:
    return tuple(f"tcp {port}-{port} 0.0.0.0/0" for port in range(1, 2 * count, 2))


def groups_of(account: AwsAccount) -> dict[str, Any]:
    """The groups of the VPC that the account did not begin with, by name."""
    found = account.ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [account.vpc_id]}])
    return {
        each["GroupName"]: each for each in found["SecurityGroups"] if each["GroupName"] not in ("default", "nodes")
    }


def rules_of_nodes(account: AwsAccount) -> list[Any]:
    found = account.ec2.describe_security_groups(GroupIds=[account.node_group_id])
    return list(found["SecurityGroups"][0]["IpPermissions"])


def tags_of(group: Any) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in group["Tags"]}


def use(account: AwsAccount, *group_ids: str) -> str:
    """A classic load balancer that is in these groups."""
    account.elb.create_load_balancer(
        LoadBalancerName=ID,
        Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 30080}],
        Subnets=account.public_subnets[:1],
        SecurityGroups=[*group_ids],
    )
    return ID


# ---------------------------------------------------------------------------------------------------- groups in front


def test_of_changed_rules_only_the_difference_is_sent_and_what_is_added_comes_first(
    account: AwsAccount, calls: Calls
) -> None:
    scene = Scene(account, calls)
    ids = scene.groups.front(ID, model())
    calls.clear()

    changed = scene.groups.front(ID, model((*RULES[:1], "tcp 443-443 0.0.0.0/0")))

    assert changed == ids
    assert calls.made == ["ec2 AuthorizeSecurityGroupIngress", "ec2 RevokeSecurityGroupIngress"]
    assert {each["FromPort"] for each in groups_of(account)[ID]["IpPermissions"]} == {3, 443}


def test_a_group_that_no_list_showed_is_found_by_its_name(account: AwsAccount, calls: Calls) -> None:
    late = Scene(account, calls)
    first = Scene(account).groups.front(ID, model())

    assert late.groups.front(ID, model()) == first
    assert calls.made == ["ec2 CreateSecurityGroup", "ec2 DescribeSecurityGroups"]


def test_a_foreign_group_of_the_same_name_is_refused_and_left_alone(account: AwsAccount) -> None:
    account.ec2.create_security_group(GroupName=ID, Description="somebody's", VpcId=account.vpc_id)

    with pytest.raises(InvalidConfiguration, match=f"security group {ID}.*not this cluster's tags"):
        Scene(account).groups.front(ID, model())

    assert groups_of(account)[ID]["IpPermissions"] == []


def test_rules_that_somebody_else_changed_meanwhile_come_out_right(account: AwsAccount) -> None:
    scene = Scene(account)
    (group,) = scene.groups.front(ID, model())
    permission: Any = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    account.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[permission])

    scene.groups.front(ID, model((*RULES, "tcp 443-443 0.0.0.0/0")))

    assert {each["FromPort"] for each in groups_of(account)[ID]["IpPermissions"]} == {3, 80, 443}


def test_a_group_that_was_deleted_by_hand_is_made_again_at_the_next_try(
    account: AwsAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security_group_calls, "_SOON", RetryPolicy(attempts=2, first_delay=0.0))
    scene = Scene(account)
    (group,) = scene.groups.front(ID, model())
    account.ec2.delete_security_group(GroupId=group)

    with pytest.raises(Unavailable, match="was deleted"):
        scene.groups.front(ID, model(("tcp 443-443 0.0.0.0/0",)))
    scene.groups.front(ID, model(("tcp 443-443 0.0.0.0/0",)))

    assert {each["FromPort"] for each in groups_of(account)[ID]["IpPermissions"]} == {443}


# --------------------------------------------------------------------------------------------------- the shared group


def test_joining_first_makes_the_shared_group_and_one_rule_on_the_nodes(account: AwsAccount, calls: Calls) -> None:
    scene = Scene(account, calls)

    (shared,) = scene.groups.join(ID)

    assert calls.made == ["ec2 CreateSecurityGroup", "ec2 AuthorizeSecurityGroupIngress"]
    (rule,) = rules_of_nodes(account)
    assert (rule["IpProtocol"], rule["UserIdGroupPairs"][0]["GroupId"]) == ("-1", shared)


def test_joining_later_costs_no_call_however_many_services_there_are(account: AwsAccount, calls: Calls) -> None:
    scene = Scene(account, calls)
    scene.groups.join(ID)
    calls.clear()

    for number in range(70):
        scene.groups.join(f"k8s-default-web{number}-0123456789")

    assert calls.made == []
    assert len(rules_of_nodes(account)) == 1


def test_many_threads_that_join_at_once_make_one_group(account: AwsAccount, calls: Calls) -> None:
    scene = Scene(account, calls)
    threads = [threading.Thread(target=scene.groups.join, args=(f"lb-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert calls.writes == {"ec2 CreateSecurityGroup": 1, "ec2 AuthorizeSecurityGroupIngress": 1}


def test_without_a_tagged_group_of_nodes_the_error_says_what_to_do(account: AwsAccount) -> None:
    account.ec2.delete_tags(Resources=[account.node_group_id], Tags=[{"Key": CLUSTER_TAG}])

    with pytest.raises(
        InvalidConfiguration, match=f"security groups of the nodes: no security group has the tag {CLUSTER_TAG}"
    ):
        Scene(account).groups.join(ID)

    assert groups_of(account) == {}


def test_where_others_open_the_nodes_there_is_no_shared_group(account: AwsAccount, calls: Calls) -> None:
    scene = Scene(account, calls, disable_security_group_ingress=True)

    assert scene.groups.join(ID) == ()
    assert calls.made == []


def test_one_that_left_keeps_the_shared_group_for_nobody_though_a_list_still_shows_it(
    account: AwsAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(account)
    (shared,) = scene.groups.join(ID)
    scene.groups.join("k8s-default-other-0123456789")
    shown = [{"LoadBalancerName": ID, "SecurityGroups": [shared]}]
    monkeypatch.setattr(scene.api, "pages", lambda service, *_, **_more: iter(shown if service == "elb" else []))

    assert scene.groups.delete(ID)
    assert scene.groups.delete("k8s-default-other-0123456789")

    assert groups_of(account) == {}
    assert rules_of_nodes(account) == []


def test_after_a_restart_aws_is_asked_whether_another_load_balancer_needs_the_shared_group(
    account: AwsAccount, calls: Calls
) -> None:
    (shared,) = Scene(account).groups.join(ID)
    use(account, shared)
    scene = Scene(account, calls)

    assert scene.groups.delete("k8s-default-other-0123456789")

    assert calls.counts == {"elbv2 DescribeLoadBalancers": 1, "elb DescribeLoadBalancers": 1}
    assert len(rules_of_nodes(account)) == 1


def test_who_joins_while_the_shared_group_could_not_go_yet_is_let_in_again(account: AwsAccount) -> None:
    scene = Scene(account)
    (shared,) = scene.groups.join(ID)
    security_groups_in_use().stand_before(scene.api)
    assert not scene.groups.delete(ID)
    assert rules_of_nodes(account) == []

    assert scene.groups.join("k8s-default-other-0123456789") == (shared,)

    assert scene.groups.delete(ID)
    assert len(rules_of_nodes(account)) == 1


def test_who_joins_while_the_last_one_leaves_is_let_in_afterwards(account: AwsAccount) -> None:
    scene = Scene(account)
    scene.groups.join(ID)
    joined: list[tuple[str, ...]] = []
    joining = threading.Thread(target=lambda: joined.append(scene.groups.join("k8s-default-other-0123456789")))

    def others_are_asked_for() -> None:
        joining.start()
        # It would be through by then, if it did not wait.
        joining.join(timeout=0.5)

    scene.api.before["elb DescribeLoadBalancers"] = others_are_asked_for

    assert scene.groups.delete(ID)
    joining.join()

    (rule,) = rules_of_nodes(account)
    assert joined == [(rule["UserIdGroupPairs"][0]["GroupId"],)]
    assert [each["GroupId"] for each in groups_of(account).values()] == [*joined[0]]


# ------------------------------------------------------------------------------------------------- what a model is told


def test_rules_are_read_from_all_its_groups(account: AwsAccount) -> None:
    scene = Scene(account)
    attached = (*scene.groups.front(ID, model(many_rules(70))), *scene.groups.join(ID))

    assert scene.groups.attributes(ID, attached)["ingress_rules"] == tuple(sorted(many_rules(70)))


def test_a_group_that_was_not_dropped_yet_differs_from_any_model(account: AwsAccount) -> None:
    scene = Scene(account)
    first, *_ = scene.groups.front(ID, model(many_rules(70)))

    kept = scene.groups.front(ID, model())
    assert kept == (first,)
    assert scene.groups.attributes(ID, kept)["ingress_rules"] == ()

    scene.groups.drop(ID, kept)
    assert scene.groups.attributes(ID, kept)["ingress_rules"] == RULES


def test_a_load_balancer_that_is_not_in_the_shared_group_differs_from_any_model(account: AwsAccount) -> None:
    scene = Scene(account)
    scene.groups.join(ID)

    assert scene.groups.attributes(ID, scene.groups.front(ID, model()))["security_groups"] is None


def test_a_rule_that_was_taken_from_the_nodes_shows(account: AwsAccount) -> None:
    scene = Scene(account)
    attached = (*scene.groups.front(ID, model()), *scene.groups.join(ID))
    account.ec2.revoke_security_group_ingress(
        GroupId=account.node_group_id,
        IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": attached[-1]}]}],
    )
    later = Scene(account)

    assert later.groups.attributes(ID, attached)["security_groups"] is None
    later.groups.join(ID)
    assert later.groups.attributes(ID, attached)["security_groups"] == ()


def test_a_new_group_of_nodes_shows_and_is_let_in(account: AwsAccount) -> None:
    attached = (lambda scene: (*scene.groups.front(ID, model()), *scene.groups.join(ID)))(Scene(account))
    account.ec2.create_security_group(
        GroupName="other-nodes",
        Description="of another pool",
        VpcId=account.vpc_id,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": tag_list({CLUSTER_TAG: "owned"})}],
    )
    scene = Scene(account)

    assert scene.groups.attributes(ID, attached)["security_groups"] is None
    scene.groups.join(ID)

    assert len(groups_of(account)["other-nodes"]["IpPermissions"]) == 1


def test_groups_of_another_cluster_are_nobodys_here(account: AwsAccount) -> None:
    foreign = {CLUSTER_TAG: "shared", **Owner("other", OWNER.uid, "default", "web").tags}
    account.ec2.create_security_group(
        GroupName=ID,
        Description="of a cluster in the same VPC",
        VpcId=account.vpc_id,
        TagSpecifications=[
            {"ResourceType": "security-group", "Tags": tag_list({**foreign, "cloud-controller/load-balancer": ID})}
        ],
    )
    scene = Scene(account)

    assert scene.groups.left_behind([]) == {}
    assert scene.groups.delete(ID)
    assert ID in groups_of(account)
