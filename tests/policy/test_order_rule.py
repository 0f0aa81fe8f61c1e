"""Rule `lb-service-depend-on-ccm`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedProvider, AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import EXEMPT, ccm, of, patch, resource, service

RULE = "lb-service-depend-on-ccm"


def component(name: str, **options: Any) -> AnalyzedResource:
    return resource("cloudcontroller:index:LoadBalancerService", {}, name, **options)


def test_a_service_that_depends_on_the_ccm_passes(pack: PolicyHost) -> None:
    manager = ccm()

    assert of(pack.analyze_stack([manager, service(dependencies=(manager.urn,))]), RULE) == []


def test_a_service_without_a_dependency_on_the_ccm_is_refused(pack: PolicyHost) -> None:
    web = service()

    [finding] = [each for each in pack.analyze_stack([ccm(), web]) if each.policy == RULE]

    assert (finding.level, finding.urn) == ("mandatory", web.urn)
    assert "kube-system/web" in finding.message
    assert "kube-system/ccm" in finding.message


def test_dependencies_count_through_properties_parents_and_other_resources(pack: PolicyHost) -> None:
    manager = ccm()
    controller = resource("pulumi-python:dynamic/cloudcontroller:CloudController", {}, dependencies=(manager.urn,))
    parent = component("parent", dependencies=(controller.urn,))
    by_parent = service("a", parent=parent.urn)
    by_property = service("b", property_dependencies={"metadata": [controller.urn]})

    assert of(pack.analyze_stack([manager, controller, parent, by_parent, by_property]), RULE) == []


def test_a_common_parent_is_no_dependency(pack: PolicyHost) -> None:
    parent = component("parent")
    manager = ccm()
    inside = resource(manager.type, manager.properties, "ccm", parent=parent.urn)

    assert of(pack.analyze_stack([parent, inside, service(parent=parent.urn)]), RULE) == ["mandatory"]


def test_a_patch_of_a_ccm_that_runs_anyway_needs_no_dependency(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([patch(ccm()), service()]), RULE) == []


def test_a_ccm_of_another_cluster_does_not_count(pack: PolicyHost) -> None:
    here, there = (
        AnalyzedProvider("pulumi:providers:kubernetes", f"urn:pulumi:dev::sample::p::{name}", name)
        for name in ("here", "there")
    )
    manager, other = ccm(), ccm(name="other")
    ours = resource(manager.type, manager.properties, "ours", provider=here)
    theirs = resource(other.type, other.properties, "theirs", provider=there)

    findings = pack.analyze_stack([ours, theirs, service(provider=here, dependencies=(theirs.urn,))])

    assert of(findings, RULE) == ["mandatory"]


def test_a_stack_without_a_ccm_passes_the_order_rule(pack: PolicyHost) -> None:
    assert pack.analyze_stack([service()]) == []


@pytest.mark.parametrize(
    "other",
    [
        service(type="ClusterIP"),
        service(spec={"loadBalancerClass": "service.k8s.aws/nlb"}),
        service(EXEMPT),
    ],
)
def test_services_that_no_ccm_serves_and_exempt_ones_are_left_alone(pack: PolicyHost, other: AnalyzedResource) -> None:
    assert of(pack.analyze_stack([ccm(), other]), RULE) == []


@pytest.mark.parametrize(
    "own", ["cloud-controller/nlb", "cloud-controller/classic", "mycloud.io/load-balancer", "mycloud.io/ours"]
)
def test_a_service_of_a_class_that_the_ccm_serves_must_depend_on_it(pack: PolicyHost, own: str) -> None:
    ours = service(spec={"loadBalancerClass": own})

    assert of(pack.analyze_stack([ccm(), ours]), RULE) == ["mandatory"]


def test_a_service_of_unknown_type_is_not_evaluated_but_the_others_are(pack: PolicyHost) -> None:
    findings = pack.analyze_stack([ccm(), service("a", type=UNKNOWN), service("b")])

    assert sorted(of(findings, RULE)) == ["mandatory", "not-evaluated"]


def test_a_workload_of_unknown_image_leaves_the_order_rule_unevaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([ccm(container={"image": UNKNOWN}), service()]), RULE) == ["not-evaluated"]
