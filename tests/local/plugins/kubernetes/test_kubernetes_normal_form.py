"""Which empty inputs Kubernetes' API types drop, and how they write quantities; the recordings have more cases."""

from __future__ import annotations

from typing import Any

import pytest

from local.plugins.kubernetes.api_types import parse_type
from local.plugins.kubernetes.normal_form import in_normal_form, with_dashes, with_underscores
from local.plugins.kubernetes.quantities import canonical_quantity
from local.plugins.values import UNKNOWN, PropertyMap, Secret


def normal(type: str, inputs: PropertyMap) -> PropertyMap:
    return in_normal_form(parse_type(f"kubernetes:{type}"), inputs)


def container(**fields: Any) -> PropertyMap:
    return {"spec": {"containers": [{"name": "main", **fields}]}}


@pytest.mark.parametrize("empty", [{}, Secret({})])
def test_an_empty_plain_field_is_dropped(empty: Any) -> None:
    assert normal("core/v1:ConfigMap", {"data": empty, "metadata": {"labels": {}}}) == {"metadata": {}}


@pytest.mark.parametrize(
    ("type", "inputs"),
    [
        ("core/v1:Pod", container(securityContext={})),
        ("core/v1:Pod", {"spec": {"automountServiceAccountToken": False, "volumes": [{"emptyDir": {}}]}}),
        ("apps/v1:Deployment", {"spec": {"replicas": 0}}),
        ("rbac.authorization.k8s.io/v1:Role", {"rules": []}),
        ("core/v1:ConfigMap", {"data": {"blank": ""}}),
    ],
)
def test_an_empty_value_of_a_pointer_a_required_field_or_a_map_stays(type: str, inputs: PropertyMap) -> None:
    assert normal(type, inputs) == inputs


@pytest.mark.parametrize(
    "type",
    [
        "example.com/v1:Widget",
        "core/v1:Secret",
        "apiextensions.k8s.io/v1:CustomResourceDefinition",
        "resource.k8s.io/v1beta1:ResourceClaim",
    ],
)
def test_kinds_that_do_not_go_through_an_api_type_keep_what_they_are_given(type: str) -> None:
    inputs: PropertyMap = {"metadata": {"labels": {}}, "spec": {"cpu": "0.5", "list": []}}

    assert normal(type, inputs) == inputs


def test_an_unknown_field_stays_for_the_api_server_to_reject() -> None:
    assert normal("core/v1:ConfigMap", {"dta": {}}) == {"dta": {}}


def test_unknown_and_secret_values_stay_so_in_normal_form() -> None:
    inputs = container(command=UNKNOWN, args=Secret(["a"]), env=[{"name": "A", "value": UNKNOWN}, UNKNOWN])

    assert normal("core/v1:Pod", inputs) == inputs


@pytest.mark.parametrize(("given", "written"), [("0.5", "500m"), (2, "2"), (Secret("1024Mi"), Secret("1Gi"))])
def test_quantities_become_canonical_at_any_depth(given: Any, written: Any) -> None:
    found = normal("core/v1:Pod", container(resources={"requests": {"cpu": given}}))

    assert found == container(resources={"requests": {"cpu": written}})


# Answers of k8s.io/apimachinery's ParseQuantity(...).String().
@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1500Mi", "1500Mi"),
        ("0", "0"),
        ("0.0Gi", "0"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("1.5", "1500m"),
        ("1.500", "1.500"),
        ("100e3", "100e3"),
        ("1000e3", "1e6"),
        ("0.25E2", "25"),
        ("-2000m", "-2"),
        ("0.1n", "1n"),
        (".5k", "500"),
    ],
)
def test_a_quantity_is_written_as_kubernetes_writes_it(given: str, canonical: str) -> None:
    assert canonical_quantity(given) == canonical


@pytest.mark.parametrize("text", ["half", "1e100", "-1e9999999", "1" * 120 + "Ki", "1e" + "1" * 5000], ids=len)
def test_an_invalid_quantity_stays_for_the_api_server_to_reject(text: str) -> None:
    assert canonical_quantity(text) == text


def test_pythons_names_of_schema_extensions_are_the_apis_with_underscores() -> None:
    given = {"a": [{"x_kubernetes_list_type": "map", "x_other": 1}]}

    assert with_dashes(given) == {"a": [{"x-kubernetes-list-type": "map", "x_other": 1}]}
    assert with_underscores(with_dashes(given)) == given
