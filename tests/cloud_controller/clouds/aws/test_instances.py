"""EC2's instances as machines: listed by tag, confirmed in batches, gone only where EC2 says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloud_controller.cloud import (
    InstanceRef,
    InstanceState,
    InvalidConfiguration,
    NodeAddress,
)
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.instances import AwsInstances
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from tests.clock import Clock
from tests.cloud_controller.clouds.aws.scripted_aws import ec2_answer, ec2_error, scripted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_ec2.type_defs import InstanceTypeDef

    from tests.cloud_controller.calls import Calls
    from tests.cloud_controller.clouds.aws.conftest import AwsAccount

NEVER_THERE = "i-0123456789abcdef0"


def instances(api: Api, vpc_id: str = "vpc-1") -> AwsInstances:
    return AwsInstances(api, lambda: vpc_id, Cache())


def refs(machines: Sequence[InstanceTypeDef]) -> list[InstanceRef]:
    """As nodes whose kubelets tell the provider ID."""
    return [
        InstanceRef(machine["PrivateDnsName"], f"aws:///{machine['Placement']['AvailabilityZone']}/{id_of(machine)}")
        for machine in machines
    ]


def id_of(machine: InstanceTypeDef) -> str:
    return machine["InstanceId"]


# ------------------------------------------------------------------------------------------------------------- list


def test_a_machine_is_told_with_all_that_a_node_needs(account: AwsAccount) -> None:
    (launched,) = account.launch(type="c6i.xlarge", subnet=account.private_subnets[1])

    (machine,) = instances(account.api()).list()

    assert machine.provider_id == f"aws:///eu-central-1b/{machine.id}"
    assert (machine.type, machine.zone, machine.region) == ("c6i.xlarge", "eu-central-1b", "eu-central-1")
    assert machine.name == launched["PrivateDnsName"]
    assert machine.state is InstanceState.RUNNING
    assert machine.addresses == (
        NodeAddress("InternalIP", launched["PrivateIpAddress"]),
        NodeAddress("InternalDNS", launched["PrivateDnsName"]),
        NodeAddress("Hostname", launched["PrivateDnsName"]),
    )
    assert machine.additional_labels == {"topology.k8s.aws/zone-id": "euc1-az2"}
    assert machine.tags == {"kubernetes.io/cluster/prod-1": "owned"}


@pytest.mark.parametrize(("end", "state"), [("stop", InstanceState.STOPPED), ("terminate", InstanceState.TERMINATED)])
def test_stopped_machines_are_stopped_and_terminated_ones_listed_as_such(
    account: AwsAccount, end: str, state: InstanceState
) -> None:
    (machine,) = account.launch()
    if end == "stop":
        account.ec2.stop_instances(InstanceIds=[id_of(machine)])
    else:
        account.ec2.terminate_instances(InstanceIds=[id_of(machine)])

    (listed,) = instances(account.api()).list()

    assert listed.state is state


# --------------------------------------------------------------------------------------------------------- describe


def test_a_machine_that_ec2_forgot_is_gone_and_costs_one_call_more(account: AwsAccount, calls: Calls) -> None:
    launched = account.launch(99)
    lost = InstanceRef("lost", f"aws:///eu-central-1a/{NEVER_THERE}")
    api = account.api()
    api.observer = calls

    found = instances(api).describe([*refs(launched), lost])

    assert found[lost] is None
    assert sum(machine is not None for machine in found.values()) == 99
    assert calls.of("ec2 DescribeInstances") == 2


def test_many_that_ec2_forgot_are_named_by_one_call() -> None:
    gone = [f"i-{number:017x}" for number in range(50)]
    told = ec2_error("InvalidInstanceID.NotFound", message=f"The instance IDs '{', '.join(gone)}' do not exist")
    with scripted([ec2_answer("<reservationSet/>"), told]) as aws:
        found = instances(aws.api()).describe([InstanceRef(each, each) for each in gone])

        assert set(found.values()) == {None}
        assert len(aws.requests) == 2


def test_many_names_are_one_list_for_the_moments_after_it(account: AwsAccount, calls: Calls) -> None:
    clock = Clock(1000.0)
    names = [InstanceRef(machine["PrivateDnsName"]) for machine in account.launch(60)]
    api = account.api()
    machines = AwsInstances(api, lambda: "vpc-1", Cache(clock))
    machines.describe(names)
    api.observer = calls

    clock.now += 10
    assert all(machines.describe(names).values())
    assert calls.made == []

    clock.now += 11
    assert all(machines.describe(names).values())
    assert calls.made == ["ec2 DescribeInstances"]


def test_of_many_names_those_that_the_list_did_not_have_are_asked_for(account: AwsAccount, calls: Calls) -> None:
    launched = account.launch(60)
    account.ec2.stop_instances(InstanceIds=[id_of(launched[0])])
    api = account.api()
    machines = instances(api)
    machines.list()
    launched += account.launch()
    api.observer = calls

    found = machines.describe([InstanceRef(machine["PrivateDnsName"]) for machine in launched])

    assert [machine.id for machine in found.values() if machine] == [id_of(each) for each in launched]
    # For the newest, and for the one that had stopped: its name may be another's by now.
    assert calls.made == ["ec2 DescribeInstances"]


def test_a_single_name_is_never_taken_from_a_list(account: AwsAccount) -> None:
    (machine,) = account.launch()
    machines = instances(account.api())
    machines.list()
    account.ec2.terminate_instances(InstanceIds=[id_of(machine)])

    (found,) = machines.describe([InstanceRef(machine["PrivateDnsName"])]).values()

    assert found is None


def test_a_node_named_after_its_machines_id_is_asked_for_by_it(account: AwsAccount) -> None:
    (machine,) = account.launch(tags={})

    (found,) = instances(account.api()).describe([InstanceRef(f"{id_of(machine)}.my.domain")]).values()

    assert found is not None


def test_a_node_of_another_region_is_an_error_and_never_gone(account: AwsAccount) -> None:
    elsewhere = InstanceRef("n", "aws:///us-west-2a/i-0123456789abcdef0")

    with pytest.raises(InvalidConfiguration, match=r"us-west-2a.* is not in region eu-central-1 of the cloud config"):
        instances(account.api()).describe([elsewhere])


# ---------------------------------------------------------------------------------------------- source/dest check


def test_which_machines_drop_others_packets_was_told_by_the_list(account: AwsAccount, calls: Calls) -> None:
    one, other = account.launch(2)
    account.ec2.modify_instance_attribute(InstanceId=id_of(one), SourceDestCheck={"Value": False})
    api = account.api()
    machines = instances(api)
    machines.list()
    api.observer = calls

    assert machines.with_source_dest_check([id_of(one), id_of(other)]) == [id_of(other)]
    assert calls.made == []


# ---------------------------------------------------------------------------------------------------------- fargate


def test_a_task_of_fargate_is_there_while_its_interface_is_attached(account: AwsAccount) -> None:
    (machine,) = account.launch()
    address = machine["PrivateIpAddress"]
    name = f"fargate-ip-{address.replace('.', '-')}.eu-central-1.compute.internal"
    there = InstanceRef(name, f"aws:///eu-central-1a/{name}")
    gone = InstanceRef("gone", "aws:///eu-central-1a/fargate-ip-10-0-250-9.eu-central-1.compute.internal")

    found = instances(account.api(), account.vpc_id).describe([there, gone])

    task = found[there]
    assert task is not None
    assert task.provider_id == there.provider_id
    assert task.addresses[0] == NodeAddress("InternalIP", address)
    assert (task.type, task.zone, task.state) == ("", "eu-central-1a", InstanceState.RUNNING)
    assert found[gone] is None


def test_a_task_of_another_vpc_with_the_same_address_is_not_ours(account: AwsAccount) -> None:
    (machine,) = account.launch()
    name = f"fargate-ip-{machine['PrivateIpAddress'].replace('.', '-')}.eu-central-1.compute.internal"

    (found,) = instances(account.api(), "vpc-0").describe([InstanceRef(name, f"aws:///eu-central-1a/{name}")]).values()

    assert found is None


def test_a_task_is_a_machine_of_its_cluster_though_no_list_shows_it(account: AwsAccount) -> None:
    (machine,) = account.launch()
    name = f"fargate-ip-{machine['PrivateIpAddress'].replace('.', '-')}.eu-central-1.compute.internal"
    task = {"metadata": {"name": name, "uid": "uid-1"}, "spec": {"providerID": f"aws:///eu-central-1a/{name}"}}

    assert InstanceSnapshot(instances(account.api(), account.vpc_id)).anchored([task])
    assert not InstanceSnapshot(instances(account.api(), "vpc-0")).anchored([task])
