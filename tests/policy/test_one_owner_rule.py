"""Rule `lb-service-have-one-owner`."""

from __future__ import annotations

import pytest

from cloud_stacks.policies.host import AnalyzedProvider, AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.services import ACK, EKS, balanced, managed, ours, said, vendors
from tests.policy_objects import resource

RULE = "lb-service-have-one-owner"
ONLY_CLASSES = "--require-load-balancer-class"


def messages(pack: PolicyHost, *stack: AnalyzedResource) -> list[str]:
    return [finding.message for finding in said(pack, RULE, *stack)]


@pytest.mark.parametrize(
    "alone",
    [
        [ours("aws")],
        [ours("aws", ONLY_CLASSES), vendors("aws", name="other")],
        [ours("aws", ONLY_CLASSES), managed(EKS)],
        [ours("aws", ONLY_CLASSES.replace("-class", "_class")), managed(EKS)],
        [ours("alicloud", ONLY_CLASSES), managed(ACK)],
        [ours("aws"), vendors("aws", "--controllers=cloud-node-controller", name="other")],
        [ours("aws"), vendors("aws", "--controllers=*,-service-lb-controller", name="other")],
        [ours("aws", "--controllers=node,route"), managed(EKS)],
    ],
)
def test_one_controller_of_each_class_passes(pack: PolicyHost, alone: list[AnalyzedResource]) -> None:
    assert messages(pack, *alone) == []


def test_our_ccm_beside_the_vendors_is_reported(pack: PolicyHost) -> None:
    other = vendors("aws", "--controllers=*", name="aws-ccm")

    [finding] = said(pack, RULE, ours("aws"), other)

    assert (finding.level, finding.severity, finding.urn) == ("advisory", "high", other.urn)
    assert finding.message == (
        "the cloud controller manager kube-system/ccm and the cloud controller manager kube-system/aws-ccm both serve "
        "Services without a class: each would make a load balancer of its own"
    )


def test_two_of_our_ccms_are_reported_with_the_classes_that_both_serve(pack: PolicyHost) -> None:
    [message] = messages(pack, ours("mycloud", ONLY_CLASSES), ours("mycloud", ONLY_CLASSES, name="second"))

    assert "both serve Services of class mycloud.io/load-balancer" in message


@pytest.mark.parametrize(("cloud", "kind"), [("aws", EKS), ("alicloud", ACK)])
def test_a_ccm_beside_that_of_a_managed_cluster_is_reported(pack: PolicyHost, cloud: str, kind: str) -> None:
    [message] = messages(pack, ours(cloud), managed(kind))

    assert "the controller of the managed cluster managed" in message


def test_a_service_that_two_resources_make_is_reported(pack: PolicyHost) -> None:
    first = balanced("web")
    second = resource(first.type, first.properties, "again")

    [finding] = said(pack, RULE, first, second)

    assert finding.urn == second.urn
    assert finding.message == (
        "Service kube-system/web is also made by the resource web: each update undoes what the other wrote"
    )


def test_services_of_the_same_name_in_two_clusters_pass(pack: PolicyHost) -> None:
    here, there = (
        AnalyzedProvider("pulumi:providers:kubernetes", f"urn:pulumi:dev::sample::p::{name}", name)
        for name in ("here", "there")
    )
    service = balanced("web")
    both = [resource(service.type, service.properties, name.name, provider=name) for name in (here, there)]

    assert messages(pack, *both) == []


def test_a_patch_is_no_second_owner(pack: PolicyHost) -> None:
    service = balanced("web")

    assert messages(pack, service, resource("kubernetes:core/v1:ServicePatch", service.properties, "patch")) == []


def test_an_unknown_name_is_not_evaluated(pack: PolicyHost) -> None:
    service = balanced("web")
    unnamed = resource(service.type, {**service.properties, "metadata": {"name": UNKNOWN}}, "unnamed")

    assert [finding.level for finding in said(pack, RULE, service, unnamed)] == ["not-evaluated"]


def test_unknown_workloads_and_flags_are_no_controllers(pack: PolicyHost) -> None:
    unknown = ours("aws", UNKNOWN, name="other")

    assert len(messages(pack, ours("aws"), unknown)) == 1
    assert messages(pack, ours("aws"), resource("kubernetes:apps/v1:Deployment", {"spec": UNKNOWN}, "app")) == []
