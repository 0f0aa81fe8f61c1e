"""A controller that dies after any changing call, or misses any answer: what it began is finished, and nothing leaks.

Every call with CRASH_POINTS=all (`make crash-test`), else every eighth, beginning with another one each scenario.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloud_controller.cloud import Unavailable
from cloud_controller.load_balancers.model import SERVICE_UID_TAG
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import STEP, Behind, Died, Faults
from tests.cloud_controller.clouds.aws.in_the_account import (
    assert_nothing_left,
    groups_made,
    listeners,
    load_balancers,
    tags_of,
    target_groups,
    targets,
)
from tests.cloud_controller.clouds.aws.services import named, nlb
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, changed, port

MOST = 60
"""More changing calls than any of these need: a loop that gets there has never ended by itself."""

Change = Callable[[Cluster], None]


def asked(cluster: Cluster) -> None:
    cluster.put(nlb(named(connection_idle_timeout=60), port(80), port(443)))


def much_changed(cluster: Cluster) -> None:
    """Nearly all of it changes at once."""
    annotations = named(
        healthcheck_healthy_threshold=5,
        target_group_attributes="deregistration_delay.timeout_seconds=30",
        cross_zone_load_balancing_enabled=True,
        connection_idle_timeout=600,
        additional_resource_tags="team=web",
    )
    ports = [port(80, nodePort=30081), port(443, "UDP"), port(8080)]
    changed(cluster, annotations, ports=ports, loadBalancerSourceRanges=["10.0.0.0/8"])


def replaced(cluster: Cluster) -> None:
    changed(cluster, named(scheme="internal"))


def deleted(cluster: Cluster) -> None:
    cluster.delete_service()


def state(account: AwsAccount) -> dict[str, Any]:
    """What there is of load balancing, without what AWS chose."""
    groups = {each["TargetGroupArn"]: each for each in target_groups(account)}
    found = account.ec2.describe_security_groups()["SecurityGroups"]
    return {
        "load balancers": [
            {
                "scheme": lb["Scheme"],
                "groups": len(lb["SecurityGroups"]),
                "listeners": {
                    number: (
                        each["Protocol"],
                        _idle_timeout(account, each) if each["Protocol"] == "TCP" else None,
                        targets(account, groups[each["DefaultActions"][0]["TargetGroupArn"]]),
                    )
                    for number, each in listeners(account, lb).items()
                },
                "attributes": account.elbv2.describe_load_balancer_attributes(LoadBalancerArn=lb["LoadBalancerArn"])[
                    "Attributes"
                ],
                "tags": tags_of(account, lb["LoadBalancerArn"]),
            }
            for lb in load_balancers(account)
        ],
        "target groups": sorted(
            (
                each["Protocol"],
                each["HealthyThresholdCount"],
                tags_of(account, each["TargetGroupArn"]).get("team"),
                str(_delay(account, each)),
            )
            for each in groups.values()
        ),
        "security groups": len(groups_made(account)),
        "rules": sorted(
            str(sorted(cidr["CidrIp"] for cidr in rule["IpRanges"]))
            for group in found
            if SERVICE_UID_TAG in {tag["Key"] for tag in group.get("Tags", ())}
            for rule in group["IpPermissions"]
        ),
    }


def _delay(account: AwsAccount, group: Any) -> str:
    arn = group["TargetGroupArn"]
    attributes = account.elbv2.describe_target_group_attributes(TargetGroupArn=arn)["Attributes"]
    return next(each["Value"] for each in attributes if each["Key"] == "deregistration_delay.timeout_seconds")


def _idle_timeout(account: AwsAccount, listener: Any) -> str | None:
    found = account.elbv2.describe_listener_attributes(ListenerArn=listener["ListenerArn"])["Attributes"]
    return next((each["Value"] for each in found if each["Key"] == "tcp.idle_timeout.seconds"), None)


def undisturbed(account: AwsAccount, cluster: Cluster, *changes: Change) -> None:
    running = Running(account, cluster)
    for change in changes:
        change(cluster)
        running.settle(rounds=6)


def test_what_a_list_does_not_show_yet_is_not_made_again(account: AwsAccount, cluster: Cluster) -> None:
    undisturbed(account, cluster, asked)
    wanted = state(account)
    lists = Behind()
    running = Running(account, cluster, wrap=lists)

    with pytest.raises(Unavailable, match="already exists"):
        running.settle()
    assert len(load_balancers(account)) == 1

    lists.behind = False
    running.settle()
    assert state(account) == wanted


def test_nor_what_this_process_has_just_made(account: AwsAccount, cluster: Cluster) -> None:
    cluster.put(nlb({}, port(80), port(443)))
    cluster.put(nlb({}, port(80), port(443), name="second"))
    lists = Behind()
    running = Running(account, cluster, wrap=lists)

    running.settle()
    running.resync()
    running.settle()
    lists.behind = False
    running.resync()
    running.settle()

    made = ("CreateLoadBalancer", "CreateTargetGroup", "CreateListener", "RegisterTargets")
    assert [running.calls.of(f"elbv2 {operation}") for operation in made] == [2, 4, 4, 4]
    assert running.calls.of("elbv2 DescribeListeners") == 0, "nothing had to be read of them"
    assert cluster.ingress


@pytest.mark.parametrize("dies", [True, False], ids=["it dies", "an answer is lost"])
@pytest.mark.parametrize(
    ("before", "change", "first"),
    [((), asked, 1), ((asked,), much_changed, 2), ((asked,), replaced, 3), ((asked,), deleted, 1)],
    ids=["creation", "change", "replacement", "deletion"],
)
def test_whatever_call_it_is_it_comes_to_the_same(
    account: AwsAccount, cluster: Cluster, before: tuple[Change, ...], change: Change, first: int, dies: bool
) -> None:
    undisturbed(account, cluster, *before, change)
    wanted = state(account)

    for number in range(1 if STEP == 1 else first, MOST, STEP):
        if WEB in cluster.objects["services"]:
            undisturbed(account, cluster, deleted)
        assert_nothing_left(account)
        undisturbed(account, cluster, *before)

        change(cluster)
        faults = Faults(number, dies=dies)
        try:
            running = Running(account, cluster, wrap=faults)
            running.settle(rounds=6)
        except Died:
            running = Running(account, cluster)
        except Unavailable:
            pass  # As after its backoff, it comes back to the Service.
        if not faults.happened:
            return
        running.settle(rounds=6)

        assert state(account) == wanted, f"after call {number}"
    pytest.fail(f"{MOST} calls are not enough")
