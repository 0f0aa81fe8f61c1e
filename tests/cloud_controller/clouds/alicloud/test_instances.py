"""Machines on Alibaba Cloud: found by provider ID, name or address, in few calls, and gone only if ECS says so."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import (
    InstanceRef,
    InstanceState,
    InvalidConfiguration,
    NodeAddress,
)
from cloud_controller.controllers import nodes
from cloud_controller.kube import Object
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.alicloud import machines
from local.standin.faults import Fault
from local.standin.refusals import Refusal
from tests.cloud_controller.clouds.alicloud.account import Account, describe


def node(name: str, provider_id: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"providerID": provider_id}}


def test_a_machine_has_type_topology_labels_and_tags(alicloud: Account) -> None:
    tags = {CLUSTER_TAG: "c-1", "ack.alibabacloud.com/nodepool-id": "np-1"}
    machine = alicloud.machine("one", tags, type="ecs.gn6i-c4g1.xlarge", spot_strategy="SpotAsPriceGo")

    found = describe(alicloud.cloud(), "one", f"cn-hangzhou.{machine}")

    assert found is not None
    assert (found.id, found.provider_id, found.name) == (machine, f"cn-hangzhou.{machine}", "one")
    assert (found.type, found.zone, found.region) == ("ecs.gn6i-c4g1.xlarge", "cn-hangzhou-h", "cn-hangzhou")
    assert found.additional_labels == {
        "alibabacloud.com/nodepool-id": "np-1",
        "alibabacloud.com/instance-type-family": "ecs.gn6i-c4g1",
        "node.alibabacloud.com/instance-charge-type": "PostPaid",
        "node.alibabacloud.com/spot-strategy": "SpotAsPriceGo",
    }
    assert found.tags == tags


def test_addresses_are_private_then_ipv6_then_public_and_elastic_and_no_host_name(alicloud: Account) -> None:
    machine = alicloud.machine("one", address="192.168.0.20", ipv6=["2408::20"], public_address="203.0.113.8")
    with alicloud.standin.changing() as world:
        machines.add_eip(world, address="203.0.113.7", instance=machine, kind="EcsInstance")

    found = describe(alicloud.cloud(), "one")

    assert found is not None
    assert found.addresses == (
        NodeAddress("InternalIP", "192.168.0.20"),
        NodeAddress("InternalIP", "2408::20"),
        NodeAddress("ExternalIP", "203.0.113.8"),
        NodeAddress("ExternalIP", "203.0.113.7"),
    )


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("Pending", InstanceState.PENDING),
        ("Starting", InstanceState.PENDING),
        ("Running", InstanceState.RUNNING),
        ("Stopping", InstanceState.STOPPED),
        ("Stopped", InstanceState.STOPPED),
    ],
)
def test_a_machine_that_exists_has_a_state(alicloud: Account, status: str, state: InstanceState) -> None:
    machine = alicloud.machine("one", status=status)

    found = describe(alicloud.cloud(), "one", f"cn-hangzhou.{machine}")

    assert found is not None
    assert found.state is state


@pytest.mark.parametrize("form", ["cn-hangzhou.{}", "alicloud:///cn-hangzhou/{}", "alicloud:///cn-hangzhou-h/{}"])
def test_every_form_of_the_provider_id_is_read(alicloud: Account, form: str) -> None:
    machine = alicloud.machine("one")

    found = describe(alicloud.cloud(), "one", form.format(machine))

    assert found is not None
    assert found.id == machine


def test_the_provider_id_is_a_uri_if_the_cloud_config_says_so(alicloud: Account) -> None:
    machine = alicloud.machine("one")

    found = describe(alicloud.cloud(provider_id_format="uri"), "one")

    assert found is not None
    assert found.provider_id == f"alicloud:///cn-hangzhou-h/{machine}"


@pytest.mark.parametrize(
    "provider_id",
    ["aws:///eu-central-1a/i-0a", "cn-beijing.i-1", "alicloud:///cn-beijing-a/i-1", "i-1", "alicloud:///"],
)
def test_the_provider_id_of_another_cloud_or_region_is_an_error(alicloud: Account, provider_id: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"node one: spec\.providerID"):
        describe(alicloud.cloud(), "one", provider_id)


def test_a_hundred_and_fifty_machines_cost_two_calls(alicloud: Account) -> None:
    refs = [InstanceRef(f"n{number}", f"cn-hangzhou.{alicloud.machine(f'n{number}')}") for number in range(150)]

    found = alicloud.cloud().instances.describe(refs)

    assert None not in found.values()
    assert alicloud.calls() == {"ecs.DescribeInstances": 2}


def test_the_tag_of_ack_marks_machines_as_our_own_does(alicloud: Account) -> None:
    ours = {alicloud.machine("one"), alicloud.machine("two", {"ack.aliyun.com": "c-1"})}
    alicloud.machine("three", {"ack.aliyun.com": "c-2"})

    assert {each.id for each in alicloud.cloud().instances.list()} == ours


def test_a_node_is_found_by_the_address_in_its_name(alicloud: Account) -> None:
    machine = alicloud.machine("any", address="192.168.0.30")
    alicloud.machine("foreign", {}, address="192.168.0.31")
    cloud = alicloud.cloud()

    found = describe(cloud, "cn-hangzhou.192.168.0.30")

    assert found is not None
    assert found.id == machine
    assert describe(cloud, "cn-hangzhou.192.168.0.31") is None


def test_a_machine_is_found_by_the_host_name_that_ecs_gives_it(alicloud: Account) -> None:
    """iZ…Z, which its kubelet lower-cases."""
    machine = alicloud.machine("")

    found = describe(alicloud.cloud(), f"iz{machine.removeprefix('i-')}z")

    assert found is not None
    assert (found.id, found.name) == (machine, f"iZ{machine.removeprefix('i-')}Z")


def test_a_host_name_goes_before_the_instance_name_of_another_machine(alicloud: Account) -> None:
    alicloud.machine("Web", host_name="other")
    machine = alicloud.machine("other", host_name="wEb")

    found = describe(alicloud.cloud(), "web")

    assert found is not None
    assert found.id == machine


def test_many_names_are_looked_up_in_one_list(alicloud: Account) -> None:
    for number in range(90):
        alicloud.machine(f"n{number}")
    cloud = alicloud.cloud()
    refs = [InstanceRef(f"n{number}") for number in range(90)]

    for some in (refs[:45], refs[45:]):
        assert None not in cloud.instances.describe(some).values()

    assert alicloud.calls() == {"ecs.DescribeInstances": 2}  # Of each tag one page.


def test_a_machine_that_the_key_may_not_see_stops_only_its_own_node(alicloud: Account) -> None:
    machine, foreign = alicloud.machine("one"), alicloud.machine("two")
    alicloud.release(foreign)
    denied = Refusal(403, "Forbidden.RAM", "not authorized")
    alicloud.standin.faults.add(Fault("ecs.DescribeInstanceAttribute", denied, count=None))
    ids = {"one": f"cn-hangzhou.{machine}", "two": f"cn-hangzhou.{foreign}"}

    found, wrong = nodes.describe(alicloud.cloud().instances, [node(*each) for each in ids.items()])

    assert [*found] == ["one"]
    assert foreign in str(wrong["two"])


def test_a_machine_in_an_unknown_state_stops_only_its_own_node(
    alicloud: Account, caplog: pytest.LogCaptureFixture
) -> None:
    machine, odd = alicloud.machine("one"), alicloud.machine("two", status="Hibernated")
    cloud = alicloud.cloud()

    listed = cloud.instances.list()
    ids = {"one": f"cn-hangzhou.{machine}", "two": f"cn-hangzhou.{odd}"}
    found, wrong = nodes.describe(cloud.instances, [node(*each) for each in ids.items()])

    assert [each.id for each in listed] == [machine]
    assert f"{odd} unknown_state='Hibernated'" in caplog.text
    assert [*found] == ["one"]
    assert f"machine {odd}: state 'Hibernated' is unknown" in str(wrong["two"])


@pytest.mark.parametrize(
    ("provider_id", "labels", "alone"),
    [
        ("ack-hybrid://idc-1", {}, True),
        ("cn-hangzhou.i-1", {}, False),
        ("", {"service.alibabacloud.com/exclude-node": "true"}, True),
        ("", {"service.beta.kubernetes.io/exclude-node": ""}, True),
        ("", {"other": "true"}, False),
    ],
)
def test_nodes_outside_the_cloud_and_excluded_ones_are_left_alone(
    alicloud: Account, provider_id: str, labels: dict[str, str], alone: bool
) -> None:
    node = {"metadata": {"name": "one", "labels": labels}, "spec": {"providerID": provider_id}}

    assert alicloud.cloud().instances.leaves_alone(node) is alone
