"""Which changes replace an object; the first cases are recorded from pulumi-kubernetes 4.32."""

from __future__ import annotations

from typing import Any

import pytest

from local.plugins.kubernetes.api_types import parse_type
from local.plugins.kubernetes.diff import diff_inputs, replaced_if_unready, wants_replacement
from local.plugins.provider import DiffKind, DiffResult, PropertyDiff
from local.plugins.values import UNKNOWN, PropertyMap, Secret

NAMED = {"metadata": {"name": "a", "namespace": "default"}}
AUTONAMED = {
    "metadata": {"annotations": {"pulumi.com/autonamed": "true"}, "name": "settings-10e6cc94", "namespace": "default"}
}


def diff(
    type: str, olds: PropertyMap, news: PropertyMap, ignored: list[str] | None = None, mutable_data: bool = False
) -> DiffResult:
    return diff_inputs(parse_type(f"kubernetes:{type}"), olds, news, ignored or [], mutable_data=mutable_data)


def test_equal_inputs_are_no_change() -> None:
    assert diff("core/v1:ConfigMap", NAMED, NAMED) == DiffResult(changed=False, delete_before_replace=True)


def test_changed_data_replaces_an_automatically_named_config_map_by_a_new_one_first() -> None:
    found = diff("core/v1:ConfigMap", AUTONAMED | {"data": {"level": "info"}}, AUTONAMED | {"data": {"level": "debug"}})

    assert found == DiffResult(
        changed=True,
        replaces=("data.level",),
        diffs=("data",),
        detailed={"data.level": PropertyDiff(DiffKind.UPDATE_REPLACE)},
        delete_before_replace=False,
    )


def test_a_changed_load_balancer_class_is_an_update_unless_the_program_says_replace() -> None:
    olds, news = (NAMED | {"spec": {"loadBalancerClass": f"example.com/{name}"}} for name in "ab")

    found = diff("core/v1:Service", olds, news)

    assert (found.replaces, list(found.detailed)) == ((), ["spec.loadBalancerClass"])


def test_a_named_config_map_is_deleted_before_its_replacement() -> None:
    found = diff("core/v1:ConfigMap", NAMED | {"data": {"a": "1"}}, NAMED | {"data": {"a": "2"}})

    assert (found.replaces, found.delete_before_replace) == (("data.a",), True)


def test_a_secrets_data_is_compared_by_content_and_shown_as_a_whole() -> None:
    one, two = (NAMED | {"data": Secret({"token": value})} for value in ("eA==", "eQ=="))

    assert diff("core/v1:Secret", one, one).changed is False
    assert diff("core/v1:Secret", one, two).replaces == ("data",)


def test_data_changes_in_place_with_the_mutable_options() -> None:
    found = diff("core/v1:Secret", NAMED | {"data": {"a": "1"}}, NAMED | {"data": {"a": "2"}}, mutable_data=True)

    assert (found.changed, found.replaces) == (True, ())


@pytest.mark.parametrize(
    ("type", "olds", "news"),
    [
        ("core/v1:ConfigMap", {"immutable": True}, {}),
        ("core/v1:Secret", {"type": "Opaque"}, {"type": "example.com/x"}),
        ("core/v1:Service", {"spec": {"clusterIP": "None"}}, {"spec": {}}),
        ("apps/v1:Deployment", {"spec": {"selector": {"matchLabels": {"a": "1"}}}}, {"spec": {"selector": {}}}),
        ("apps/v1:DaemonSet", {"spec": {"selector": {"x": 1}}}, {"spec": {"selector": {"x": 2}}}),
        ("apps/v1:StatefulSet", {"spec": {"serviceName": "a"}}, {"spec": {"serviceName": "b"}}),
        ("batch/v1:Job", {"spec": {"template": {"a": 1}}}, {"spec": {"template": {"a": 2}}}),
        ("rbac.authorization.k8s.io/v1:RoleBinding", {"roleRef": {"name": "a"}}, {"roleRef": {"name": "b"}}),
        ("rbac.authorization.k8s.io/v1:ClusterRoleBinding", {"roleRef": {"name": "a"}}, {"roleRef": UNKNOWN}),
    ],
)
def test_fields_that_cannot_change_replace_the_object_under_its_name(
    type: str, olds: PropertyMap, news: PropertyMap
) -> None:
    found = diff(type, NAMED | olds, NAMED | news)

    assert found.replaces == tuple(found.detailed)
    assert all(change.kind.endswith("-replace") for change in found.detailed.values())
    assert found.delete_before_replace


@pytest.mark.parametrize("metadata", [{"name": "b", "namespace": "default"}, {"name": "a", "namespace": "other"}])
def test_a_new_name_or_namespace_replaces_without_deleting_first(metadata: PropertyMap) -> None:
    found = diff("apps/v1:Deployment", NAMED, {"metadata": metadata})

    assert (len(found.replaces), found.delete_before_replace) == (1, False)


@pytest.mark.parametrize(
    ("type", "olds", "news", "path", "kind"),
    [
        ("apps/v1:Deployment", {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}, "spec.replicas", DiffKind.UPDATE),
        (
            "core/v1:Service",
            {"spec": {"ports": [{"port": 80}]}},
            {"spec": {"ports": [{"port": 81}]}},
            "spec.ports[0].port",
            DiffKind.UPDATE,
        ),
        ("core/v1:Service", {"spec": {"ports": []}}, {"spec": {"ports": [1]}}, "spec.ports[0]", DiffKind.ADD),
        ("batch/v1:Job", {"spec": {"parallelism": 1}}, {"spec": {}}, "spec.parallelism", DiffKind.DELETE),
    ],
)
def test_other_changes_are_made_in_place_and_shown_by_field(
    type: str, olds: PropertyMap, news: PropertyMap, path: str, kind: DiffKind
) -> None:
    found = diff(type, NAMED | olds, NAMED | news)

    assert found.detailed == {path: PropertyDiff(kind)}
    assert found.replaces == ()


def test_annotation_keys_are_quoted_in_paths() -> None:
    olds, news = (
        {"metadata": {"name": "a", "annotations": {"example.com/level": level}}} for level in ("info", "debug")
    )

    assert list(diff("core/v1:Service", olds, news).detailed) == ['metadata.annotations["example.com/level"]']


@pytest.mark.parametrize("ignored", ["spec.replicas", "spec", "spec.*"])
def test_ignored_changes_are_not_differences(ignored: str) -> None:
    olds: Any = NAMED | {"spec": {"replicas": 1}}
    news: Any = NAMED | {"spec": {"replicas": 2}}

    assert diff("apps/v1:Deployment", olds, news, [ignored]).changed is False


def test_ignoring_a_field_does_not_hide_a_change_of_its_parent() -> None:
    assert diff("apps/v1:Deployment", NAMED, NAMED | {"spec": {"replicas": 2}}, ["spec.replicas"]).changed


@pytest.mark.parametrize(("condition", "replaces"), [("Failed", ("status",)), ("Complete", ())])
def test_a_job_is_replaced_unless_it_completed(condition: str, replaces: tuple[str, ...]) -> None:
    live = {"status": {"conditions": [{"type": condition, "status": "True"}]}}

    found = replaced_if_unready(
        parse_type("kubernetes:batch/v1:Job"), DiffResult(changed=False), live, {"metadata": {"name": "once"}}
    )

    assert (found.changed, found.replaces) == (bool(replaces), replaces)


@pytest.mark.parametrize(
    ("kind", "annotations", "asks"),
    [
        ("batch/v1:Job", {"pulumi.com/replaceUnready": "true"}, True),
        ("batch/v1:Job", {}, False),
        ("apps/v1:Deployment", {"pulumi.com/replaceUnready": "true"}, False),
    ],
)
def test_a_job_may_ask_to_be_replaced(kind: str, annotations: PropertyMap, asks: bool) -> None:
    news = {"metadata": {"name": "once", "annotations": annotations}}
    assert wants_replacement(parse_type(f"kubernetes:{kind}"), news) is asks
