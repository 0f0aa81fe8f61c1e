"""The setting `exempt`, and lists: what every rule does with objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyError, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import exemption, of, resource, service, start

RULE = "lb-service-check-health"
OFF = {"service.beta.kubernetes.io/dlb-health-check-protocol": "NONE"}


@pytest.fixture(scope="module")
def pack() -> Iterator[PolicyHost]:
    exempt = [
        exemption("kube-system/old", until="2020-01-31"),
        exemption("renewed", until="2020-01-31"),
        exemption("renewed"),
    ]
    host = start({RULE: {"exempt": exempt}})
    yield host
    host.close()


def test_an_exemption_that_has_expired_is_a_finding_beside_the_violation(pack: PolicyHost) -> None:
    messages = [finding.message for finding in pack.analyze(service("old", annotations=OFF)) if finding.policy == RULE]

    assert messages == [
        "the exemption of kube-system/old (a test) expired on 2020-01-31: mend the object and remove it, or renew it",
        f"the health check is switched off by annotation {next(iter(OFF))}: NONE",
    ]


def test_an_expired_exemption_of_a_mended_object_is_still_a_finding(pack: PolicyHost) -> None:
    assert of(pack.analyze(service("old")), RULE) == ["advisory"]


def test_a_renewed_exemption_holds_while_the_old_one_is_still_reported(pack: PolicyHost) -> None:
    [finding] = pack.analyze(service("renewed", annotations=OFF))

    assert "expired on 2020-01-31" in finding.message


def test_objects_of_other_kinds_that_have_the_exempt_name_are_no_finding(pack: PolicyHost) -> None:
    assert pack.analyze(resource("kubernetes:core/v1:Secret", {"metadata": {"name": "old"}}, "old")) == []


@pytest.mark.integration
@pytest.mark.parametrize("broken", ["kube-system/web", {"object": "web"}, exemption("web", until="soon")])
def test_an_exemption_without_a_reason_or_a_day_is_refused(broken: object) -> None:
    with pytest.raises(PolicyError, match="exempt"):
        start({RULE: {"exempt": [broken]}})


def in_list(*items: object, kind: str = "kubernetes:core/v1:ServiceList") -> AnalyzedResource:
    return resource(kind, {"items": [*items]})


def test_each_object_of_a_typed_list_is_judged(pack: PolicyHost) -> None:
    wrong = service("web", annotations=OFF).properties

    assert of(pack.analyze(in_list(service().properties, wrong, wrong)), RULE) == ["advisory", "advisory"]


def test_each_object_of_a_list_of_anything_is_judged_by_its_kind(pack: PolicyHost) -> None:
    wrong = service("web", annotations=OFF).properties
    items = ({**wrong, "apiVersion": "v1", "kind": "Service"}, {**wrong, "apiVersion": "v1", "kind": "ConfigMap"})

    assert of(pack.analyze(in_list(*items, kind="kubernetes:core/v1:List")), RULE) == ["advisory"]


def test_an_unknown_object_of_a_list_is_not_evaluated_and_hides_no_other(pack: PolicyHost) -> None:
    wrong = service("web", annotations=OFF).properties

    assert of(pack.analyze(in_list(UNKNOWN, wrong)), RULE) == ["advisory", "not-evaluated"]


@pytest.mark.parametrize("kind", ["core/v1beta1:Service", "v1:Service"], ids=["another version", "a CustomResource"])
def test_the_api_version_of_a_resource_does_not_matter(pack: PolicyHost, kind: str) -> None:
    wrong = replace(service("web", annotations=OFF), type=f"kubernetes:{kind}")

    assert of(pack.analyze(wrong), RULE) == ["advisory"]
