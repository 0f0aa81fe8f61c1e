"""The normalisation of inputs before they are applied; the recorded cases are the CLI's with pulumi-kubernetes 4.32."""

from __future__ import annotations

import re
from typing import Any

import pytest

from local.plugins.kubernetes.api_types import ApiType, UnsupportedTypeError, parse_type, type_of_urn
from local.plugins.kubernetes.check import check_inputs, is_autonamed
from local.plugins.provider import CheckResult
from local.plugins.values import UNKNOWN, PropertyMap, Secret

CONFIG_MAP = ApiType("", "v1", "ConfigMap")
SECRET = ApiType("", "v1", "Secret")


def check(news: PropertyMap, api: ApiType = CONFIG_MAP, olds: PropertyMap | None = None, name: str = "settings") -> Any:
    module = f"{api.group or 'core'}/{api.version}:{api.kind}"
    urn = f"urn:pulumi:dev::sample::kubernetes:{module}::{name}"
    return check_inputs(urn, api, olds or {}, news, namespaced=api.namespaced, default_namespace="default")


def failures(result: CheckResult) -> list[str]:
    return [failure.property for failure in result.failures]


def test_omitted_fields_of_a_named_object_get_defaults() -> None:
    result = check({"metadata": {"name": "a"}})

    assert result == CheckResult(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    )


def test_an_unnamed_object_gets_a_name_and_the_autonamed_annotation() -> None:
    result = check({"apiVersion": "v1", "kind": "ConfigMap", "data": {"address": UNKNOWN}})

    metadata = result.inputs["metadata"]
    assert re.fullmatch("settings-[0-9a-f]{8}", metadata["name"])
    assert metadata["annotations"] == {"pulumi.com/autonamed": "true"}
    assert metadata["namespace"] == "default"
    assert is_autonamed(result.inputs)


def test_an_automatic_name_stays_when_inputs_change() -> None:
    old = check({"data": {"a": "1"}}).inputs

    assert check({"data": {"a": "2"}}, olds=old).inputs["metadata"] == old["metadata"]


def test_an_explicit_name_is_not_kept_once_it_is_omitted() -> None:
    old = check({"metadata": {"name": "given"}}).inputs

    assert check({}, olds=old).inputs["metadata"]["name"].startswith("settings-")


def test_an_automatic_name_respects_the_length_limit() -> None:
    assert len(check({}, name="a" * 100).inputs["metadata"]["name"]) == 63


def test_cluster_wide_objects_get_no_namespace() -> None:
    role = ApiType("rbac.authorization.k8s.io", "v1", "ClusterRole")

    assert check({"metadata": {"name": "a"}}, role).inputs["metadata"] == {"name": "a"}
    assert failures(check({"metadata": {"name": "a", "namespace": "b"}}, role)) == ["metadata.namespace"]


def test_an_object_of_an_unknown_kind_gets_no_namespace_yet() -> None:
    widget = ApiType("example.com", "v1", "Widget")

    assert check({"metadata": {"name": "a"}}, widget).inputs["metadata"] == {"name": "a"}


def test_string_data_of_a_secret_becomes_data_and_stays_secret() -> None:
    result = check({"metadata": {"name": "cloud-config"}, "stringData": Secret({"token": "s3cret"})}, SECRET)

    assert result.inputs["data"] == Secret({"token": "czNjcmV0"})
    assert "stringData" not in result.inputs


def test_string_data_is_merged_into_data_and_takes_precedence() -> None:
    given = {"metadata": {"name": "a"}, "data": {"a": "eA==", "b": "eQ=="}, "stringData": {"b": Secret("z")}}

    assert check(given, SECRET).inputs["data"] == {"a": "eA==", "b": Secret("eg==")}


@pytest.mark.parametrize(
    ("given", "data"),
    [({"token": UNKNOWN}, {"token": UNKNOWN}), (UNKNOWN, UNKNOWN), (Secret({"a": UNKNOWN}), Secret({"a": UNKNOWN}))],
)
def test_unknown_string_data_is_unknown_data(given: Any, data: Any) -> None:
    assert check({"metadata": {"name": "a"}, "stringData": given}, SECRET).inputs["data"] == data


def test_keys_without_a_value_are_dropped() -> None:
    result = check({"metadata": {"name": "a", "labels": None}, "data": {"a": "", "b": None}})

    assert result.inputs["data"] == {"a": ""}
    assert "labels" not in result.inputs["metadata"]


@pytest.mark.parametrize(
    ("news", "wrong"),
    [
        ({"kind": "Secret"}, "kind"),
        ({"apiVersion": "v2"}, "apiVersion"),
        ({"metadata": "a"}, "metadata"),
        ({"metadata": {"name": 7}}, "metadata.name"),
        ({"metadata": {"generateName": "a-"}}, "metadata.generateName"),
        (
            {"metadata": {"annotations": {"pulumi.com/timeoutSeconds": "5m"}}},
            'metadata.annotations["pulumi.com/timeoutSeconds"]',
        ),
        ({"metadata": {"annotations": {"pulumi.com/waitFor": "x"}}}, 'metadata.annotations["pulumi.com/waitFor"]'),
    ],
)
def test_invalid_inputs_are_refused_by_property(news: PropertyMap, wrong: str) -> None:
    assert failures(check(news)) == [wrong]


def test_string_data_that_is_not_text_is_refused_without_showing_it() -> None:
    result = check({"metadata": {"name": "a"}, "stringData": Secret({"token": 12345})}, SECRET)

    assert failures(result) == ["stringData.token"]
    assert "12345" not in str(result.failures)


def test_check_does_not_modify_its_arguments() -> None:
    given: PropertyMap = {"metadata": {"annotations": {"a": "b"}}}

    check(given)

    assert given == {"metadata": {"annotations": {"a": "b"}}}


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("kubernetes:core/v1:Service", ApiType("", "v1", "Service")),
        ("kubernetes:apps/v1:Deployment", ApiType("apps", "v1", "Deployment")),
        ("kubernetes:example.com/v1:PacketList", ApiType("example.com", "v1", "PacketList")),
    ],
)
def test_type_tokens_name_api_types(token: str, expected: ApiType) -> None:
    assert parse_type(token) == expected


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("kubernetes:helm.sh/v3:Release", "Helm"),
        ("kubernetes:yaml/v2:ConfigFile", "YAML"),
        ("kubernetes:core/v1:ServicePatch", "does not support patches"),
        ("kubernetes:apps/v1:DeploymentList", "a list is not a resource"),
        ("kubernetes:Service", "is not a Kubernetes type"),
        ("aws:s3/bucket:Bucket", "is not a Kubernetes type"),
    ],
)
def test_a_token_that_is_not_an_api_type_is_refused_by_name(token: str, said: str) -> None:
    with pytest.raises(UnsupportedTypeError, match=said):
        parse_type(token)


def test_the_type_is_read_from_a_urn_with_parents() -> None:
    urn = "urn:pulumi:dev::sample::sample:index:Pool$kubernetes:core/v1:Secret::a::b"

    assert type_of_urn(urn) == SECRET
