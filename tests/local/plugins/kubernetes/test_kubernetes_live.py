"""Outputs of live objects, and drift: what others changed, unlike what the API server merely normalises."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cloud_controller.kube import DEPLOYMENTS, NODES, InvalidError
from local.plugins.kubernetes.api_types import ApiType
from local.plugins.kubernetes.apply import describe, field_manager_of, with_live_values
from local.plugins.kubernetes.errors import explain
from local.plugins.kubernetes.live import (
    drifted_inputs,
    inputs_from_live,
    object_id,
    outputs_of,
    preview_outputs,
    split_id,
    to_api,
    with_namespace,
)
from local.plugins.values import PropertyMap, Secret

DEPLOYMENT = ApiType("apps", "v1", "Deployment")
SECRET = ApiType("", "v1", "Secret")

INPUTS: PropertyMap = {
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 1,
        "containers": [
            {
                "name": "web",
                "args": ["--a", "--b"],
                "env": [{"name": "EMPTY", "value": ""}],
                "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1000m"}},
            }
        ],
    },
}
LIVE: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"app": "web"}, "uid": "u"},
    "spec": {
        "replicas": 1,
        "containers": [
            {
                "name": "web",
                "args": ["--a", "--b"],
                "env": [{"name": "EMPTY"}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "1"}},
                "imagePullPolicy": "Always",
            }
        ],
    },
    "status": {"replicas": 1},
}


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The live object with one value changed by others."""
    live = copy.deepcopy(LIVE)
    target: Any = live
    for step in path[:-1]:
        target = target[step]
    if to is None:
        del target[path[-1]]
    else:
        target[path[-1]] = to
    return live


def drift(live: dict[str, Any]) -> PropertyMap:
    return drifted_inputs(INPUTS, LIVE, live)


def test_a_value_normalised_by_the_server_is_not_drift() -> None:
    assert drift(LIVE) == INPUTS


def test_status_and_undeclared_fields_are_not_drift() -> None:
    live = changed("spec", "containers", 0, "imagePullPolicy", to="Never") | {"status": {"replicas": 0}}

    assert drift(live) == INPUTS


@pytest.mark.parametrize("to", [5, None])
def test_a_changed_or_removed_value_is_drift(to: int | None) -> None:
    assert drift(changed("spec", "replicas", to=to))["spec"].get("replicas") == to


def test_a_changed_value_in_a_list_with_keys_is_drift() -> None:
    found = drift(changed("spec", "containers", 0, "resources", "limits", "cpu", to="2"))

    assert found["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}}
    assert found["spec"]["containers"][0]["env"] == [{"name": "EMPTY", "value": ""}]


def test_a_removed_list_element_is_drift_but_a_foreign_element_is_not() -> None:
    removed = drift(changed("spec", "containers", to=[]))
    sidecar = drift(changed("spec", "containers", to=[{"name": "sidecar"}, *LIVE["spec"]["containers"]]))

    assert removed["spec"]["containers"] == []
    assert sidecar == INPUTS


def test_a_changed_list_without_keys_is_drift_as_a_whole() -> None:
    found = drift(changed("spec", "containers", 0, "args", to=["--a", "--b", "--c"]))

    assert found["spec"]["containers"][0]["args"] == ["--a", "--b", "--c"]


def test_drift_of_a_secret_value_is_secret() -> None:
    found = drifted_inputs({"data": Secret({"a": "1"})}, {"data": Secret({"a": "1"})}, {"data": {"a": "2"}})

    assert found == {"data": Secret({"a": "2"})}


def test_an_unchanged_secret_value_keeps_its_form() -> None:
    given = {"data": Secret({"a": "1"})}

    assert drifted_inputs(given, given, {"data": {"a": "1", "b": "2"}}) == given


def test_outputs_are_the_object_with_the_extra_fields_of_pulumis_provider() -> None:
    live = LIVE | {"metadata": LIVE["metadata"] | {"managedFields": [{"manager": "manager"}]}}

    found = outputs_of(DEPLOYMENT, live, INPUTS, "manager")

    assert found == live | {"__fieldManager": "manager", "__initialApiVersion": "apps/v1", "__inputs": INPUTS}


def test_secret_inputs_are_secret_outputs() -> None:
    inputs = {"spec": {"a": Secret("x"), "list": [{"v": Secret("y")}], "open": "z"}}
    live: dict[str, Any] = {"spec": {"a": "x", "list": [{"v": "y"}], "open": "z"}}

    found = outputs_of(DEPLOYMENT, live | {"metadata": {}}, inputs, "m")["spec"]

    assert found == {"a": Secret("x"), "list": Secret([{"v": "y"}]), "open": "z"}


def test_the_data_of_a_secret_are_always_secret() -> None:
    found = outputs_of(SECRET, {"data": {"a": "eA=="}}, {"data": {"a": "eA=="}}, "m")

    assert found["data"] == Secret({"a": "eA=="})


def test_the_outputs_of_a_dry_run_have_neither_status_nor_resource_version() -> None:
    shown = preview_outputs({"metadata": {"name": "a", "resourceVersion": "7"}, "status": {}, "spec": {}})

    assert shown == {"metadata": {"name": "a"}, "spec": {}}


def test_inputs_from_a_foreign_object_omit_server_written_fields() -> None:
    assert inputs_from_live(LIVE) == {"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": LIVE["spec"]}


@pytest.mark.parametrize(("id", "parts"), [("default/web", ("default", "web")), ("node-1", (None, "node-1"))])
def test_ids_hold_namespace_and_name(id: str, parts: tuple[str | None, str]) -> None:
    namespace, name = parts

    assert split_id(id) == parts
    assert object_id({"metadata": {"namespace": namespace, "name": name}}) == id


def test_a_namespace_is_added_only_where_there_is_none() -> None:
    assert with_namespace({"metadata": {"name": "a"}}, "b") == {"metadata": {"name": "a", "namespace": "b"}}
    assert with_namespace({"metadata": {"namespace": "a"}}, "b") == {"metadata": {"namespace": "a"}}


def test_the_server_gets_plain_values_without_pulumis_own_fields() -> None:
    assert to_api({"__internal": {}, "data": Secret({"a": "1"})}) == {"data": {"a": "1"}}


def test_an_object_with_only_a_name_applies_a_field_so_that_it_can_be_recognised() -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "b"}}

    assert to_api(account)["metadata"] == {"name": "a", "namespace": "b", "annotations": {}}
    labelled = account | {"metadata": {"name": "a", "labels": {"a": "b"}}}
    assert to_api(labelled) == labelled


def test_a_field_manager_follows_from_the_urn() -> None:
    one, other = field_manager_of("urn:pulumi:dev::p::t::a"), field_manager_of("urn:pulumi:dev::p::t::b")

    assert one == field_manager_of("urn:pulumi:dev::p::t::a")
    assert one != other
    assert one.startswith("pulumi-kubernetes-")
    assert len(one) == len("pulumi-kubernetes-") + 8


def test_ignored_fields_are_applied_as_they_are_live() -> None:
    obj = {"spec": {"replicas": 1, "paused": True, "containers": [{"image": "a"}]}}
    live = {"spec": {"replicas": 4, "containers": [{"image": "b"}]}}

    found = with_live_values(obj, live, ["spec.replicas", "spec.paused", "spec.containers[0].image", "spec.no.such"])

    assert found == {"spec": {"replicas": 4, "containers": [{"image": "b"}]}}


def test_an_api_error_is_reported_with_its_fields_but_without_the_request() -> None:
    plain = InvalidError(400, "BadRequest", "PATCH /apis/x: no such\nfield (HTTP 400)")
    invalid = InvalidError(
        422, "Invalid", "PATCH /x: long text (HTTP 422)", {"causes": [{"field": "spec.a", "message": "must be 1"}]}
    )

    assert explain("Thing a", plain) == "Thing a: no such\nfield"
    assert explain("Thing a", invalid) == "Thing a: spec.a: must be 1"


def test_messages_name_objects_with_kind_and_namespace() -> None:
    assert describe(DEPLOYMENTS, {"metadata": {"namespace": "a", "name": "b"}}) == "Deployment a/b"
    assert describe(NODES, {"metadata": {"name": "b"}}) == "Node b"
