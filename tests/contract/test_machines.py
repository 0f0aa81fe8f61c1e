"""Machines are described in batches, and one is gone only if the cloud says so."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

import pytest

from cloud_controller.cloud import (
    Conflict,
    InstanceRef,
    InstanceState,
    InvalidConfiguration,
    Throttled,
    Unavailable,
)
from cloud_controller.kube import Object
from tests.contract.harness import Harness

PART = "instances"

MANY = 12


def by_id(node: Object) -> InstanceRef:
    """The machine of a node that has its provider ID."""
    return InstanceRef(node["metadata"]["name"], node["spec"]["providerID"])


def by_name(node: Object) -> InstanceRef:
    """The machine of a node that has none yet."""
    return InstanceRef(node["metadata"]["name"])


def test_a_machine_is_found_by_provider_id_and_by_name(harness: Harness) -> None:
    node = harness.node("one")
    cloud = harness.new_cloud()

    found = cloud.instances.describe([by_id(node), by_name(node)])

    machine = found[by_id(node)]
    assert machine is not None
    assert machine == found[by_name(node)]
    assert machine.provider_id == node["spec"]["providerID"]
    assert machine.provider_id.endswith(machine.id)
    assert machine.state is InstanceState.RUNNING
    assert node["status"]["addresses"][0]["address"] in {each.address for each in machine.addresses}
    assert machine.zone and machine.region and machine.type


def test_a_machine_is_found_by_the_name_that_its_kubelet_registers(harness: Harness) -> None:
    """In lower case, whatever the machine is called."""
    node = harness.node("iZbp1-Web.1Z")

    (found,) = harness.new_cloud().instances.describe([by_name(node)]).values()

    assert found is not None
    assert found.provider_id == node["spec"]["providerID"]
    assert node["metadata"]["name"] in found.node_names


def test_a_name_of_two_machines_is_an_error_that_names_both(harness: Harness) -> None:
    twins = harness.twins()

    with pytest.raises(Conflict) as conflict:
        harness.new_cloud().instances.describe([by_name(twins[0])])

    machines = {each.provider_id: each.id for each in harness.new_cloud().instances.list()}
    assert all(machines[node["spec"]["providerID"]] in str(conflict.value) for node in twins)


def test_a_terminated_machine_is_gone(harness: Harness) -> None:
    gone, there = harness.node("gone"), harness.node("there")
    harness.terminate(gone)
    cloud = harness.new_cloud()

    found = cloud.instances.describe([by_id(gone), by_id(there)])

    assert found[by_id(gone)] is None
    assert found[by_id(there)] is not None
    listed = [each.state for each in cloud.instances.list() if each.provider_id == gone["spec"]["providerID"]]
    assert listed in ([], [InstanceState.TERMINATED])


def test_a_name_that_no_machine_of_the_cluster_has_is_gone(harness: Harness) -> None:
    unknown = InstanceRef("no-such-machine")
    foreign = [by_name(node) for node in harness.foreign_nodes()]

    found = harness.new_cloud().instances.describe([unknown, *foreign])

    assert found == dict.fromkeys([unknown, *foreign])


def test_a_machine_that_lists_do_not_show_yet_is_not_gone(harness: Harness) -> None:
    harness.lists_lag()
    node = harness.node("one")
    cloud = harness.new_cloud()

    assert list(cloud.instances.list()) == []
    if harness.describes_unlisted:
        assert cloud.instances.describe([by_id(node)])[by_id(node)] is not None
    else:
        with pytest.raises(Unavailable):
            cloud.instances.describe([by_id(node)])


def test_no_machine_is_gone_while_the_cloud_throttles(harness: Harness) -> None:
    node = harness.node("one")
    cloud = harness.new_cloud()
    harness.wire.refuse(harness.throttled, retry_after=90)

    for ref in (by_id(node), by_name(node)):
        with pytest.raises(Throttled) as throttled:
            cloud.instances.describe([ref])
        assert throttled.value.retry_after > 0


def test_no_machine_is_gone_while_the_cloud_does_not_answer(harness: Harness) -> None:
    node = harness.node("one")
    cloud = harness.new_cloud()
    harness.wire.break_off()

    for ref in (by_id(node), by_name(node)):
        with pytest.raises(Unavailable):
            cloud.instances.describe([ref])


def test_no_machine_is_gone_when_any_of_the_calls_is_refused(harness: Harness) -> None:
    """Also the ones that confirm what a list has not shown."""
    terminated, there = harness.node("gone"), by_id(harness.node("there"))
    harness.terminate(terminated)
    harness.lists_lag()
    gone, hidden = by_id(terminated), by_id(harness.node("hidden"))

    for refs in ([gone, there], [there, hidden]):
        for read in count(1):
            cloud = harness.new_cloud()
            harness.wire.refuse(harness.throttled, retry_after=90, read=read)
            with suppress(Throttled, Unavailable):
                found = cloud.instances.describe(refs)
                assert all(found[ref] is not None for ref in refs if ref != gone)
            if not harness.wire.happened:
                break
        assert read > 1


def test_many_machines_cost_few_calls(harness: Harness) -> None:
    nodes = [harness.node(f"node-{number}") for number in range(MANY)]
    cloud = harness.new_cloud()
    harness.wire.reads = 0

    found = cloud.instances.describe([*map(by_id, nodes[::2]), *map(by_name, nodes[1::2])])

    assert None not in found.values()
    assert harness.wire.reads <= 4


def test_no_node_costs_no_call(harness: Harness) -> None:
    assert harness.new_cloud().instances.describe([]) == {}
    assert harness.wire.reads == 0


def test_machines_are_listed_over_all_pages_and_without_foreign_ones(harness: Harness) -> None:
    nodes = [harness.node(f"node-{number}") for number in range(5)]
    harness.foreign_nodes()
    harness.small_pages()

    cloud = harness.new_cloud()

    assert {each.provider_id for each in cloud.instances.list()} == {node["spec"]["providerID"] for node in nodes}
    assert None not in cloud.instances.describe([by_id(node) for node in nodes]).values()
    assert None not in cloud.instances.describe([by_name(node) for node in nodes]).values()


def test_the_provider_id_of_another_cloud_is_an_error_that_names_the_node(harness: Harness) -> None:
    """So does one that no machine can have: in a request for many, it would fail all."""
    node = harness.node("one")
    for provider_id in ("elsewhere://zone/i-1", node["spec"]["providerID"] + 5000 * "0"):
        refs = [by_id(node), InstanceRef("stranger", provider_id)]

        with pytest.raises(InvalidConfiguration, match=r"node stranger: spec\.providerID"):
            harness.new_cloud().instances.describe(refs)
