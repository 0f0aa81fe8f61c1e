"""The bindings of the admission policies: which namespaces each mode counts in. What the policies say is tested on a
real API server."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller import clouds, service_admission
from cloud_controller.service_admission import LABEL, Admission


def made(cloud: str, mode: Admission = Admission.DENY, *classes: str | None) -> dict[str, Any]:
    found = clouds.descriptor(cloud)
    objects = service_admission.make(found.catalogue, classes or {None, *found.load_balancer_classes}, mode, {})
    return {each["metadata"]["name"]: each["spec"] for each in objects}


def where(binding: Any) -> Any:
    [expression] = binding["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert expression["key"] == LABEL
    return expression["operator"], expression["values"]


@pytest.mark.parametrize(
    ("mode", "deny", "warn"),
    [
        (Admission.DENY, ("NotIn", ["off", "warn"]), ("In", ["warn"])),
        (Admission.WARN, ("In", ["deny"]), ("NotIn", ["deny", "off"])),
        (Admission.OFF, ("In", ["deny"]), ("In", ["warn"])),
    ],
)
def test_the_mode_counts_in_every_namespace_that_does_not_say_otherwise(mode: Admission, deny: Any, warn: Any) -> None:
    objects = made("mycloud", mode)

    assert where(objects["cloud-controller-services-deny"]) == deny
    assert where(objects["cloud-controller-services-warn"]) == warn


def test_each_kind_of_load_balancer_has_a_policy_for_its_classes() -> None:
    objects = made("alicloud")

    assert {name for name, spec in objects.items() if "validations" in spec} == {
        "cloud-controller-services-clb",
        "cloud-controller-services-nlb",
    }


def test_a_kind_without_a_served_class_has_no_policy() -> None:
    assert "cloud-controller-services-nlb" not in made("alicloud", Admission.DENY, "cloud-controller/clb")


def test_the_policy_is_the_same_each_time_it_is_made() -> None:
    classes = [f"example.com/{letter}" for letter in "hgfedcba"]

    [policy, *_] = made("mycloud", Admission.DENY, *classes).values()

    [served] = [each["expression"] for each in policy["matchConditions"] if each["name"] == "its-class-is-served"]
    assert str(sorted(classes)).replace("'", '"') in served


def test_a_policy_stays_small_enough_for_kubectls_annotation() -> None:
    sizes = [len(str(spec)) for cloud in clouds.names() for spec in made(cloud).values()]

    assert max(sizes) < 150_000  # of 262,144 in all annotations


def test_an_expression_stays_within_the_length_that_cel_parses() -> None:
    expressions = [
        variable["expression"]
        for cloud in clouds.names()
        for spec in made(cloud).values()
        for variable in spec.get("variables", ())
    ]

    assert max(map(len, expressions)) < 90_000  # of 100,000


@pytest.mark.parametrize("cloud", ["mycloud", "aws", "alicloud", "openstack"])
def test_no_pattern_folds_case_by_unicode(cloud: str) -> None:
    assert "(?i" not in str(made(cloud))
