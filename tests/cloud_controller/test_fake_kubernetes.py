"""The Kubernetes API in memory behaves as a real API server does: each test runs against both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from cloud_controller.fence import WriteRefused
from cloud_controller.kube import (
    CONFIG_MAPS,
    NODES,
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    KubeApi,
    NotFoundError,
    Object,
    PatchType,
    key,
)
from tests.fake_kubernetes import FakeKubernetes

FINALIZER = "example.com/held"


def node(**more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "fake-test", **more}}


def config_map(name: str = "fake-test", **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", **more}}


@pytest.fixture(params=["in memory", pytest.param("real", marks=pytest.mark.control_plane)])
def api(request: pytest.FixtureRequest) -> Iterator[KubeApi]:
    made: KubeApi = request.getfixturevalue("kube") if request.param == "real" else FakeKubernetes()
    yield made
    for resource, space in ((CONFIG_MAPS, "default"), (NODES, None)):
        with contextlib.suppress(NotFoundError):
            made.patch(resource, "fake-test", {"metadata": {"finalizers": None}}, space, type=PatchType.MERGE)
            made.delete(resource, "fake-test", space)


def test_an_object_is_created_once_and_found_by_name_and_in_lists(api: KubeApi) -> None:
    created = api.create(CONFIG_MAPS, config_map())

    assert created["metadata"]["uid"]
    assert api.get(CONFIG_MAPS, "fake-test", "default") == created
    assert "default/fake-test" in map(key, api.list(CONFIG_MAPS).items)
    assert "default/fake-test" in map(key, api.list(CONFIG_MAPS, "default").items)
    assert "default/fake-test" not in map(key, api.list(CONFIG_MAPS, "kube-system").items)
    with pytest.raises(AlreadyExistsError):
        api.create(CONFIG_MAPS, config_map())
    with pytest.raises(NotFoundError):
        api.get(CONFIG_MAPS, "fake-test-2", "default")


def test_a_write_from_a_stale_copy_is_a_conflict(api: KubeApi) -> None:
    stale = api.create(CONFIG_MAPS, config_map())
    api.replace(CONFIG_MAPS, {**stale, "data": {"a": "1"}})

    with pytest.raises(ConflictError):
        api.replace(CONFIG_MAPS, {**stale, "data": {"a": "2"}})
    patch = {"metadata": {"resourceVersion": stale["metadata"]["resourceVersion"]}, "data": {"a": "2"}}
    with pytest.raises(ConflictError):
        api.patch(CONFIG_MAPS, "fake-test", patch, "default", type=PatchType.MERGE)
    assert api.get(CONFIG_MAPS, "fake-test", "default")["data"] == {"a": "1"}


def test_a_patch_for_an_object_with_another_uid_is_invalid_and_names_the_field(api: KubeApi) -> None:
    api.create(CONFIG_MAPS, config_map())
    api.create(NODES, node())
    patch = {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}, "data": {"a": "1"}}
    status = {"metadata": patch["metadata"], "status": {"conditions": [{"type": "Ready", "status": "True"}]}}

    with pytest.raises(InvalidError) as of_object:
        api.patch(CONFIG_MAPS, "fake-test", patch, "default", type=PatchType.MERGE)
    with pytest.raises(InvalidError) as of_status:
        api.patch(NODES, "fake-test", status, type=PatchType.STRATEGIC, subresource="status")

    assert of_object.value.names("metadata.uid")
    assert of_status.value.names("metadata.uid")
    assert "data" not in api.get(CONFIG_MAPS, "fake-test", "default")


def test_a_write_that_changes_nothing_leaves_the_version(api: KubeApi) -> None:
    created = api.create(CONFIG_MAPS, config_map(labels={"a": "1"}))

    patched = api.patch(CONFIG_MAPS, "fake-test", {"metadata": {"labels": {"a": "1"}}}, "default", type=PatchType.MERGE)

    assert patched["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_a_merge_patch_replaces_lists_and_removes_what_is_null(api: KubeApi) -> None:
    api.create(CONFIG_MAPS, {**config_map(finalizers=[FINALIZER, f"{FINALIZER}-2"]), "data": {"a": "1", "b": "2"}})

    patch = {"metadata": {"finalizers": [f"{FINALIZER}-3"]}, "data": {"a": None, "c": "3"}}
    patched = api.patch(CONFIG_MAPS, "fake-test", patch, "default", type=PatchType.MERGE)

    assert patched["data"] == {"b": "2", "c": "3"}
    assert patched["metadata"]["finalizers"] == [f"{FINALIZER}-3"]


def test_a_strategic_patch_merges_finalizers_and_conditions(api: KubeApi) -> None:
    api.create(NODES, node(finalizers=[FINALIZER]))
    status = {"conditions": [{"type": "Ready", "status": "True"}, {"type": "NetworkUnavailable", "status": "True"}]}
    api.patch(NODES, "fake-test", {"status": status}, type=PatchType.MERGE, subresource="status")

    status = {"conditions": [{"type": "NetworkUnavailable", "status": "False"}]}
    api.patch(NODES, "fake-test", {"status": status}, type=PatchType.STRATEGIC, subresource="status")
    both = api.patch(NODES, "fake-test", {"metadata": {"finalizers": [f"{FINALIZER}-2"]}}, type=PatchType.STRATEGIC)
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
    one = api.patch(NODES, "fake-test", patch, type=PatchType.STRATEGIC)

    found = {each["type"]: each["status"] for each in one["status"]["conditions"]}
    assert found == {"Ready": "True", "NetworkUnavailable": "False"}
    assert {*both["metadata"]["finalizers"]} == {FINALIZER, f"{FINALIZER}-2"}
    assert one["metadata"]["finalizers"] == [f"{FINALIZER}-2"]


def test_an_object_and_its_status_are_patched_apart(api: KubeApi) -> None:
    api.create(NODES, node())
    addresses = {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}

    patch = {"spec": {"unschedulable": True}, "status": addresses}
    after_status = api.patch(NODES, "fake-test", patch, type=PatchType.MERGE, subresource="status")
    patch = {"spec": {"unschedulable": True}, "status": {"addresses": None}}
    after_object = api.patch(NODES, "fake-test", patch, type=PatchType.MERGE)

    assert not after_status.get("spec", {}).get("unschedulable")
    assert after_object["spec"]["unschedulable"]
    assert after_object["status"]["addresses"] == addresses["addresses"]


def test_another_object_of_the_same_name_is_neither_patched_nor_deleted(api: KubeApi) -> None:
    api.create(NODES, node())

    with pytest.raises(InvalidError):
        api.patch(NODES, "fake-test", {"metadata": {"uid": "another"}}, type=PatchType.MERGE, subresource="status")
    with pytest.raises(ConflictError):
        api.delete(NODES, "fake-test", uid="another")
    with pytest.raises(ConflictError):
        api.replace(NODES, node(uid="another"))


def test_a_finalizer_holds_a_deleted_object(api: KubeApi) -> None:
    api.create(CONFIG_MAPS, config_map(finalizers=[FINALIZER]))

    api.delete(CONFIG_MAPS, "fake-test", "default")

    assert api.get(CONFIG_MAPS, "fake-test", "default")["metadata"]["deletionTimestamp"]
    api.patch(CONFIG_MAPS, "fake-test", {"metadata": {"finalizers": []}}, "default", type=PatchType.MERGE)
    with pytest.raises(NotFoundError):
        api.get(CONFIG_MAPS, "fake-test", "default")


def test_a_fence_stops_writes_of_the_fenced_client_alone(api: KubeApi) -> None:
    def closed() -> None:
        raise WriteRefused("closed")

    fenced = api.fenced(closed)

    with pytest.raises(WriteRefused):
        fenced.create(CONFIG_MAPS, config_map())
    assert "default/fake-test" not in map(key, fenced.list(CONFIG_MAPS).items)
    api.create(CONFIG_MAPS, config_map())


def test_a_namespaced_object_needs_its_namespace(api: KubeApi) -> None:
    with pytest.raises(ValueError, match="a namespace is required"):
        api.get(CONFIG_MAPS, "fake-test")
