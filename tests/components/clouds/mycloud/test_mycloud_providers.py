"""mycloud's dynamic resources against mycloud's real API; only processes and the API server are stood in for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from pulumi.dynamic.config import Config
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.output import UNKNOWN

from cloud_controller.cloud import AccessDenied, CloudError, Conflict, Unavailable
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.kube import NODES, Kube
from components.clouds.mycloud.providers import (
    ClusterProvider,
    MachineProvider,
    MycloudProvider,
    NetworkProvider,
    SubnetProvider,
)
from components.placeholder import PLACEHOLDER
from local.addresses import AddressBlock
from local.http_server import config, serving
from local.mycloud.api import create_app
from local.mycloud.context import Context
from local.mycloud.lifecycle import Lifecycle
from local.mycloud.machinery import ClusterFacts, MachineryError
from local.mycloud.store import Store
from tests.fake_kubernetes import FakeKubernetes

TOKEN = "a-token-of-this-test"
PROVIDERS: list[type[MycloudProvider]] = [NetworkProvider, SubnetProvider, ClusterProvider, MachineProvider]


class InstantMachinery:
    """Everything that is asked for is so at once. `broken`: control planes do not start."""

    broken = False

    def start_cluster(self, *_: Any) -> ClusterFacts:
        if self.broken:
            raise MachineryError("etcd does not start")
        return ClusterFacts("v1.36.1", "https://127.33.0.1:6443", "the CA")

    def __getattr__(self, _name: str) -> Any:
        return lambda *_, **__: True


class CountingKubeconfigs:
    """Each kubeconfig is a new one, as client certificates are."""

    issued = 0

    def kubeconfig(self, cluster: Any, _ttl: timedelta) -> str:
        self.issued += 1
        return f"kubeconfig {self.issued} of {cluster.id}"


class Site:
    """A running API, and providers that are configured for it."""

    def __init__(self, endpoint: str, machinery: InstantMachinery, kube: FakeKubernetes) -> None:
        self.endpoint = endpoint
        self.machinery = machinery
        self.kube = kube
        self.client = Client(endpoint, TOKEN)

    def provider(self, kind: type[MycloudProvider], token: str = TOKEN) -> Any:
        made = kind()
        config = {"p:mycloud": json.dumps({"endpoint": self.endpoint}), "p:mycloudToken": token}
        request: Any = SimpleNamespace(config=Config(config, "p"))
        made.configure(request)
        return made

    def make(self, kind: type[MycloudProvider], **props: Any) -> Any:
        provider = self.provider(kind)
        checked = provider.check({}, {"name": "x", **props})
        assert not checked.failures, checked.failures[0].reason
        return provider.create(checked.inputs)

    def machine_inputs(self) -> dict[str, Any]:
        """The inputs of a machine; its network, subnet and cluster are made."""
        network = self.make(NetworkProvider).id
        subnet = self.make(SubnetProvider, network_id=network, zone="zone-a").id
        cluster = self.make(ClusterProvider, network_id=network).id
        kind = {"type": "m1.small", "role": "worker", "tags": {"a": "b"}, "node_labels": {}}
        return {"name": "worker-0", "subnet_id": subnet, "cluster_id": cluster, **kind}

    def fault(self, operation: str, kind: str) -> None:
        self.client.post("admin/faults", {"operation": operation, "kind": kind, "count": 1, "retry_after": 0})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    store = Store(tmp_path / "mycloud.db")
    machinery = InstantMachinery()
    typed: Any = machinery
    lifecycle = Lifecycle(store, typed, tick_seconds=0.05)
    context = Context(AddressBlock(32), store, TOKEN, CountingKubeconfigs(), first_port=1024)
    kube = FakeKubernetes()
    monkeypatch.setattr(Kube, "from_kubeconfig", lambda _text: kube)
    with closing(store), serving(config(create_app(context), "127.0.0.1")) as endpoint:
        lifecycle.start()
        yield Site(endpoint, machinery, kube)
        lifecycle.stop()


def refusals(kind: type[MycloudProvider], **props: Any) -> dict[str, str]:
    return {failure.property: failure.reason for failure in kind().check({}, props).failures}


# ------------------------------------------------------------------------------------------------------------- check


def test_wrong_inputs_of_mycloud_resources_are_refused_by_name_with_what_is_allowed() -> None:
    said = refusals(
        MachineProvider,
        name="Worker_0",
        subnet_id="net-1",
        type="m9.huge",
        role="master",
        tags={"a": 1.0},
        node_labels={"node-role.kubernetes.io/worker": ""},
    )

    assert set(said) == {"name", "subnet_id", "cluster_id", "type", "role", "tags", "node_labels"}
    assert said["cluster_id"] == "is missing"
    assert "m1.small, m1.medium, m1.large" in said["type"]
    assert "did you mean m1.small?" in refusals(MachineProvider, type="m1.smal")["type"]
    assert "control-plane, worker" in said["role"]
    assert "a node must not set on itself" in said["node_labels"]
    assert "zone-a, zone-b, zone-c" in refusals(SubnetProvider, name="s", network_id="net-1", zone="zone-x")["zone"]


def test_unknown_inputs_are_not_checked() -> None:
    news = {
        "name": "worker-0",
        "subnet_id": UNKNOWN,
        "cluster_id": UNKNOWN,
        "type": UNKNOWN,
        "role": "worker",
        "tags": {"kubernetes.io/cluster": UNKNOWN},
    }

    assert refusals(MachineProvider, **news) == {}


def test_a_preview_reports_a_wrong_token_unless_secrets_are_placeholders(site: Site) -> None:
    [failure] = site.provider(NetworkProvider, "wrong").check({}, {"name": "x"}).failures

    assert "token" in failure.reason
    assert "wrong" not in failure.reason.replace("is missing or wrong", "")
    assert site.provider(NetworkProvider, PLACEHOLDER).check({}, {"name": "x"}).failures == []
    with pytest.raises(AccessDenied):
        site.provider(NetworkProvider, "wrong").create({"name": "x"})


# -------------------------------------------------------------------------------------------------------------- diff


@pytest.mark.parametrize(
    ("change", "replaces", "first_deleted"),
    [
        ({}, [], False),
        ({"tags": {"a": "c"}}, [], False),
        ({"type": "m1.large"}, ["type"], True),
        ({"subnet_id": UNKNOWN}, ["subnet_id"], True),
        ({"node_labels": {"x": "y"}, "name": "other"}, ["name", "node_labels"], True),
    ],
)
def test_a_changed_input_updates_in_place_or_replaces(change: Any, replaces: list[str], first_deleted: bool) -> None:
    olds = {
        "name": "worker-0",
        "subnet_id": "subnet-1",
        "cluster_id": "c-1",
        "type": "m1.small",
        "role": "worker",
        "tags": {"a": "b"},
        "state": "running",
    }

    result = MachineProvider().diff("i-1", olds, {**olds, **change})

    assert result.changes is bool(change)
    assert result.replaces == replaces
    assert bool(result.delete_before_replace) is first_deleted


# ------------------------------------------------------------------------------------------------- create and delete


def test_every_mycloud_resource_is_created_read_updated_and_deleted(site: Site) -> None:
    inputs = site.machine_inputs()
    machine = site.make(MachineProvider, **inputs)
    provider = site.provider(MachineProvider)

    assert (machine.outs["state"], machine.outs["zone"]) == ("running", "zone-a")
    assert machine.outs["private_ips"][0].startswith("10.33.")

    updated = provider.update(machine.id, machine.outs, {**inputs, "tags": {"a": "c"}}).outs
    seen = provider.read(machine.id, updated)
    assert seen.outs == updated
    assert seen.inputs == {**inputs, "tags": {"a": "c"}}
    assert provider.diff(machine.id, seen.outs, {**inputs, "tags": {"a": "c"}}).changes is False

    provider.delete(machine.id, updated)
    provider.delete(machine.id, updated)
    assert provider.read(machine.id, updated).id is None


def test_a_lost_answer_creates_nothing_twice(site: Site) -> None:
    site.fault("POST /v1/networks", "drop_answer")

    made = site.make(NetworkProvider)

    assert [network["id"] for network in site.client.list("networks")] == [made.id]


def test_a_run_after_a_crash_finds_the_object_that_was_not_recorded(site: Site) -> None:
    inputs = site.machine_inputs()

    first, second = site.make(MachineProvider, **inputs), site.make(MachineProvider, **inputs)

    assert first.id == second.id


def test_a_run_after_a_crash_finds_the_replacement_of_a_failed_object(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a run that was killed when it was about to remove a cluster that had failed.
    network = site.make(NetworkProvider).id
    site.machinery.broken = True
    with monkeypatch.context() as killed:
        killed.setattr(Client, "delete", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            site.make(ClusterProvider, network_id=network)
    site.machinery.broken = False

    # When the next run makes the cluster anew, and is killed before it could note it.
    second = site.make(ClusterProvider, network_id=network)
    third = site.make(ClusterProvider, network_id=network)

    assert third.id == second.id
    assert [cluster["id"] for cluster in site.client.list("clusters")] == [second.id]


def test_a_machine_that_died_is_created_again_with_the_same_token(site: Site) -> None:
    inputs = site.machine_inputs()
    first = site.make(MachineProvider, **inputs)
    site.provider(MachineProvider).delete(first.id, first.outs)

    second = site.make(MachineProvider, **inputs)

    assert second.id != first.id
    assert site.make(MachineProvider, **inputs).id == second.id


def test_two_stacks_with_the_same_names_share_nothing(site: Site) -> None:
    one = site.make(NetworkProvider, name="local", tags={"pulumi.com/stack": "one"})
    two = site.make(NetworkProvider, name="local", tags={"pulumi.com/stack": "two"})

    assert one.id != two.id


def test_a_failed_object_is_deleted_and_the_error_has_the_clouds_reason(site: Site) -> None:
    network = site.make(NetworkProvider).id
    site.machinery.broken = True

    with pytest.raises(CloudError, match="etcd does not start"):
        site.make(ClusterProvider, network_id=network)

    states = {cluster["state"] for cluster in site.client.list("clusters")}
    assert states <= {"deleting"}


def test_an_object_that_is_not_ready_in_time_is_deleted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    network, release = site.make(NetworkProvider).id, threading.Event()
    start = site.machinery.start_cluster
    monkeypatch.setattr(ClusterProvider, "deadline", 0.2)
    monkeypatch.setattr(site.machinery, "start_cluster", lambda *_: release.wait(20) and start())

    with pytest.raises(Unavailable, match="'creating'"):
        site.make(ClusterProvider, network_id=network)

    assert {cluster["state"] for cluster in site.client.list("clusters")} <= {"deleting"}
    release.set()


def test_a_cluster_whose_kubeconfig_cannot_be_had_is_deleted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    network = site.make(NetworkProvider).id

    get = Client.get_path

    def silent(self: Client, path: str) -> Any:
        if path.endswith("/kubeconfig"):
            raise Unavailable("the API does not answer")
        return get(self, path)

    monkeypatch.setattr(Client, "get_path", silent)
    with pytest.raises(Unavailable, match="the API does not answer"):
        site.make(ClusterProvider, network_id=network)

    assert {cluster["state"] for cluster in site.client.list("clusters")} <= {"deleting"}


def test_deleting_a_network_in_use_fails(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.clouds.mycloud.providers._CONFLICT_PATIENCE", 0.0)
    network = site.make(NetworkProvider)
    site.make(SubnetProvider, network_id=network.id, zone="zone-a")

    with pytest.raises(Conflict, match="still has subnets"):
        site.provider(NetworkProvider).delete(network.id, network.outs)


# ----------------------------------------------------------------------------------------------- nodes, kubeconfigs


def leftover(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"providerID": "mycloud://local/zone-a/i-0"}}


def test_the_leftover_node_of_a_dead_machine_is_deleted_before_its_name_is_reused(site: Site) -> None:
    inputs = site.machine_inputs()
    site.kube.put(NODES, leftover("worker-0"), leftover("worker-1"))

    site.make(MachineProvider, **inputs)

    assert [*site.kube.objects(NODES)] == ["worker-1"]


def test_the_node_of_a_living_machine_stays_when_its_creation_is_repeated(site: Site) -> None:
    inputs = site.machine_inputs()
    site.make(MachineProvider, **inputs)
    site.kube.put(NODES, leftover("worker-0"))

    site.make(MachineProvider, **inputs)

    assert [*site.kube.objects(NODES)] == ["worker-0"]


def test_the_node_of_a_machine_that_lists_do_not_show_stays(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = site.machine_inputs()
    machine = site.make(MachineProvider, **inputs)
    node = leftover("worker-0") | {"spec": {"providerID": f"mycloud://local/zone-a/{machine.id}"}}
    site.kube.put(NODES, node)
    monkeypatch.setattr(Client, "list", lambda *_, **__: [])

    site.make(MachineProvider, **inputs)

    assert [*site.kube.objects(NODES)] == ["worker-0"]


def test_a_refresh_keeps_the_kubeconfig(site: Site) -> None:
    network = site.make(NetworkProvider).id
    cluster = site.make(ClusterProvider, network_id=network)
    provider = site.provider(ClusterProvider)

    assert provider.read(cluster.id, cluster.outs).outs == cluster.outs

    rebuilt = provider.read(cluster.id, {**cluster.outs, "certificate_authority": "another"}).outs
    assert rebuilt["kubeconfig"] != cluster.outs["kubeconfig"]


# ----------------------------------------------------------------------------------------------------------- pickling


@pytest.mark.parametrize("kind", PROVIDERS)
def test_mycloud_providers_are_pickled_by_reference_without_attributes(kind: type[MycloudProvider]) -> None:
    assert len(serialize_provider(kind())) < 120
    assert vars(kind()) == {}
