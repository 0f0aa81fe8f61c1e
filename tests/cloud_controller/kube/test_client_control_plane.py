"""The client and the informer with a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from cloud_controller.kube import (
    CONFIG_MAPS,
    NODES,
    AlreadyExistsError,
    ConflictError,
    EventType,
    ForbiddenError,
    Informer,
    InvalidError,
    Kube,
    NotFoundError,
    Object,
    PatchType,
    name,
    uid,
)
from local.control_plane.control_plane import ControlPlane

pytestmark = pytest.mark.control_plane
PATIENCE = 60.0
NS = "default"


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NS}, "data": data}


@pytest.fixture(autouse=True)
def _clean(kube: Kube) -> Iterator[None]:
    yield
    for each in kube.list(CONFIG_MAPS, NS).items:
        if name(each) != "kube-root-ca.crt":
            kube.delete(CONFIG_MAPS, name(each), NS)


def test_an_object_is_made_once_and_a_dry_run_makes_none(kube: Kube) -> None:
    kube.create(CONFIG_MAPS, config_map("a"), dry_run=True)
    with pytest.raises(NotFoundError):
        kube.get(CONFIG_MAPS, "a", NS)

    kube.create(CONFIG_MAPS, config_map("a", x="1"))
    with pytest.raises(AlreadyExistsError):
        kube.create(CONFIG_MAPS, config_map("a"))

    assert kube.get(CONFIG_MAPS, "a", NS)["data"] == {"x": "1"}


def test_a_write_with_a_stale_resource_version_is_a_conflict(kube: Kube) -> None:
    old = kube.create(CONFIG_MAPS, config_map("a", x="1"))
    kube.patch(CONFIG_MAPS, "a", {"data": {"x": "2"}}, NS, type=PatchType.MERGE)

    with pytest.raises(ConflictError):
        kube.replace(CONFIG_MAPS, old)


def test_a_field_of_another_manager_is_a_conflict_unless_it_is_forced(kube: Kube) -> None:
    for manager, value in (("one", "1"), ("two", "2")):
        wanted = config_map("a", x=value)
        if manager == "two":
            with pytest.raises(ConflictError, match='conflict with "one"'):
                kube.patch(CONFIG_MAPS, "a", wanted, NS, type=PatchType.APPLY, field_manager=manager)
        kube.patch(CONFIG_MAPS, "a", wanted, NS, type=PatchType.APPLY, field_manager=manager, force=manager == "two")

    assert kube.get(CONFIG_MAPS, "a", NS)["data"] == {"x": "2"}


@pytest.mark.parametrize(
    "type, patch",
    [
        (PatchType.MERGE, {"data": {"x": "2", "y": None}}),
        (PatchType.STRATEGIC, {"data": {"x": "2", "y": None}}),
        (PatchType.JSON, [{"op": "replace", "path": "/data/x", "value": "2"}, {"op": "remove", "path": "/data/y"}]),
    ],
)
def test_every_kind_of_patch_is_understood(kube: Kube, type: PatchType, patch: object) -> None:
    kube.create(CONFIG_MAPS, config_map("a", x="1", y="1"))

    assert kube.patch(CONFIG_MAPS, "a", patch, NS, type=type)["data"] == {"x": "2"}


def test_a_delete_with_uid_does_not_delete_a_recreated_object(kube: Kube) -> None:
    old = kube.create(CONFIG_MAPS, config_map("a"))
    kube.delete(CONFIG_MAPS, "a", NS, uid=uid(old))
    kube.create(CONFIG_MAPS, config_map("a"))

    with pytest.raises(ConflictError):
        kube.delete(CONFIG_MAPS, "a", NS, uid=uid(old))

    assert kube.get(CONFIG_MAPS, "a", NS)


def test_a_malformed_object_is_refused_with_the_field(kube: Kube) -> None:
    with pytest.raises(InvalidError, match=r"metadata\.name") as caught:
        kube.create(CONFIG_MAPS, config_map("Not_A_Name"))

    assert caught.value.names("metadata.name")
    assert not caught.value.names("metadata.uid")


def test_a_client_certificate_without_rights_is_told_what_it_may_not(control_plane: ControlPlane) -> None:
    nobody = Kube.from_kubeconfig(control_plane.kubeconfig("nobody", [], timedelta(hours=1)))

    with pytest.raises(ForbiddenError, match='User "nobody" cannot list resource "nodes"'):
        nobody.list(NODES)


def test_discovery_finds_what_the_constants_say(kube: Kube) -> None:
    assert kube.resource("v1", "Node") == NODES
    assert kube.resource("apps/v1", "Deployment").path(NS, "a") == f"/apis/apps/v1/namespaces/{NS}/deployments/a"


def test_an_informer_follows_what_happens(kube: Kube) -> None:
    kube.create(CONFIG_MAPS, config_map("before"))
    told: list[tuple[str, str]] = []

    def handler(type: EventType, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is not None and name(obj) in ("before", "later"):
            told.append((type.value, name(obj)))

    informer = Informer(kube, CONFIG_MAPS, NS)
    informer.add_handler(handler)
    informer.start()
    try:
        informer.wait_synced(PATIENCE)
        kube.create(CONFIG_MAPS, config_map("later"))
        kube.patch(CONFIG_MAPS, "before", {"data": {"x": "1"}}, NS, type=PatchType.MERGE)
        kube.delete(CONFIG_MAPS, "before", NS)
        assert informer.wait_until(lambda: len(told) >= 4, PATIENCE)
    finally:
        informer.stop()

    assert told == [("ADDED", "before"), ("ADDED", "later"), ("MODIFIED", "before"), ("DELETED", "before")]
    assert informer.get(f"{NS}/later") is not None


def test_a_list_of_several_pages_is_complete(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud_controller.kube.client.PAGE", 3)
    for number in range(8):
        kube.create(CONFIG_MAPS, config_map(f"page-{number}", mark="page"))

    names = [name(each) for each in kube.list(CONFIG_MAPS, NS).items]

    assert [each for each in names if each.startswith("page-")] == [f"page-{number}" for number in range(8)]
