"""A controller that dies after any call of an adoption, or misses its answer: the next one finishes what it began."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import Unavailable
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import STEP, Died, Faults
from tests.cloud_controller.clouds.aws.in_the_account import load_balancers, target_groups
from tests.cloud_controller.clouds.aws.services import put_nodes
from tests.cloud_controller.clouds.aws.upstream_world import Upstream, upstream_name
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running

MOST = 16
"""Changing calls of an adoption and deletion, and a few more: then nothing happens."""


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def state(account: AwsAccount) -> dict[str, Any]:
    """What there is, without what AWS chose."""
    groups = account.ec2.describe_security_groups()["SecurityGroups"]
    names = {group["GroupId"]: group["GroupName"] for group in groups}
    found = target_groups(account)
    tagged = [*(each["LoadBalancerArn"] for each in load_balancers(account)), *(g["TargetGroupArn"] for g in found)]
    elbv2: Any = account.elbv2
    tags = elbv2.describe_tags(ResourceArns=tagged)["TagDescriptions"] if tagged else []
    return {
        "classic": {
            each["LoadBalancerName"]: sorted(names[group] for group in each["SecurityGroups"])
            for each in account.elb.describe_load_balancers()["LoadBalancerDescriptions"]
        },
        "tags": sorted(str(sorted((tag["Key"], tag["Value"]) for tag in each["Tags"])) for each in tags),
        "groups": {
            group["GroupName"]: (
                sorted(tag["Key"] for tag in group.get("Tags", ())),
                sorted(
                    f"{each['IpProtocol']} {each.get('FromPort')}"
                    f" {[names[pair['GroupId']] for pair in each['UserIdGroupPairs']]}"
                    for each in group["IpPermissions"]
                ),
            )
            for group in groups
        },
    }


def finish(account: AwsAccount, cluster: Cluster, fault: Faults) -> None:
    """A controller that the fault happens to, and if need be another one."""
    try:
        running = Running(account, cluster, wrap=fault, started=False)
        running.resync()
        running.settle()
    except (Died, Unavailable):
        pass
    Running(account, cluster).settle(rounds=6)


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("point", range(1, MOST, max(1, STEP // 2)))
@pytest.mark.parametrize("name", ["nlb-source-ranges", "classic-plain"])
def test_an_adoption_that_broke_off_is_finished(
    name: str, point: int, dies: bool, account: AwsAccount, cluster: Cluster
) -> None:
    machines = account.launch(4)
    put_nodes(cluster, machines)
    service = Upstream(account, machines).serve(name)
    before = state(account)
    cluster.put(service)
    lb = upstream_name(service["metadata"]["uid"])

    finish(account, cluster, Faults(point, dies=dies))

    found = state(account)
    assert [*found["classic"], *(each["LoadBalancerName"] for each in load_balancers(account))] == [lb]
    assert before != found
    running = Running(account, cluster).settle()
    assert running.calls.writes == {}

    cluster.delete_service(f"default/{name}")
    finish(account, cluster, Faults(point, dies=dies))
    assert not cluster.objects["services"]
    left = state(account)
    assert (left["classic"], left["tags"]) == ({}, [])
    assert {*left["groups"]} == {"default", "nodes", "group-1", "group-2"}
    assert left["groups"]["nodes"][1] == []
