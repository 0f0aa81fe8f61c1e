"""What builds on AWS need to know of the account: read in batches before planning."""

from __future__ import annotations

import re

import pytest

from cloud_controller.cloud import AccessDenied, CloudError, InvalidConfiguration
from cloud_controller.clouds.aws.build_facts import BuildFactsReader
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.load_balancers.nameable import Nameable
from cloud_controller.plan import ActionKind
from tests.cloud_controller.calls import Calls
from tests.cloud_controller.clouds.aws.conftest import AwsAccount, tag_list
from tests.cloud_controller.clouds.aws.in_the_account import group_of_people
from tests.cloud_controller.clouds.aws.services import named, nlb
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import (
    endpoint,
    endpoint_slice,
    planned_without_calls,
    port,
    served,
)

BY_TAG = Nameable.parse(["security-group=tag:shared"])


def test_a_plan_is_made_of_values_and_calls_nothing(account: AwsAccount, cluster: Cluster) -> None:
    cluster.put(nlb(named(nlb_target_type="ip"), port(80)))
    cluster.put_slice(endpoint_slice(endpoint("10.0.0.250", next(iter(cluster.objects["nodes"])))))
    cluster.put(nlb(named(security_groups=("sg-0a",)), port(443), name="named"))

    plan = planned_without_calls(account, cluster, ServiceOptions(nameable=BY_TAG))

    kinds = {action.target.split("/")[2]: action.kind for action in plan}
    assert kinds == {"web": ActionKind.CREATE, "named": ActionKind.IGNORE}


def test_named_groups_of_all_services_are_read_in_one_call(account: AwsAccount) -> None:
    groups = [group_of_people(account, f"g{number}") for number in range(3)]
    account.ec2.create_tags(Resources=groups[:1], Tags=tag_list({"shared": "yes"}))
    services = [nlb(named(security_groups=(group,)), name=group) for group in groups]
    cloud, calls = account.new_cloud(), Calls()
    cloud.load_balancers.facts(services, {}, ())
    cloud.observe_calls(calls)

    assert cloud.load_balancers.facts(services, {}, ()).value.group_tags == {}
    found = cloud.load_balancers.facts(services, {}, BY_TAG.kinds_by_tag).value.group_tags

    assert [found[group].get("shared") for group in groups] == ["yes", None, None]
    assert calls.counts == {"ec2 DescribeSecurityGroups": 1}


def test_named_elastic_addresses_of_all_services_are_read_in_one_call(account: AwsAccount) -> None:
    ids = [account.ec2.allocate_address(Domain="vpc")["AllocationId"] for _ in range(2)]
    account.ec2.create_tags(Resources=ids[:1], Tags=tag_list({"kubernetes.io/cluster/c-2": "owned"}))
    services = [nlb(named(eip_allocations=(each,)), name=each) for each in (*ids, "eipalloc-0")]
    cloud, calls = account.new_cloud(), Calls()
    cloud.load_balancers.facts([nlb()], {}, ())
    cloud.observe_calls(calls)

    found = [cloud.load_balancers.facts(services, {}, ()).value.address_tags for _ in range(2)][1]

    assert [dict(found[each]) for each in (*ids, "eipalloc-0")] == [{"kubernetes.io/cluster/c-2": "owned"}, {}, {}]
    assert calls.counts == {"ec2 DescribeAddresses": 1}


@pytest.mark.parametrize(
    "error", [InvalidConfiguration("cloud config: [Global] VPC", "not set"), AccessDenied("DescribeVpcs: no right")]
)
def test_members_follow_the_nodes_even_if_the_facts_cannot_be_read(
    account: AwsAccount, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, error: CloudError
) -> None:
    def unreadable(*_: object) -> None:
        raise error

    running = served(account, cluster, nlb())
    monkeypatch.setattr(BuildFactsReader, "read", unreadable)
    del cluster.objects["nodes"][next(iter(cluster.objects["nodes"]))]
    running.take_nodes()

    with pytest.raises(type(error), match=re.escape(str(error))):
        running.handle()

    assert running.calls.writes == {"elbv2 DeregisterTargets": 1}
