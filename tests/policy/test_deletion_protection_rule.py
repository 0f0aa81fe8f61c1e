"""Rule `lb-service-protect-from-deletion`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.services import ACK, balanced, managed, ours, said, vendors

RULE = "lb-service-protect-from-deletion"
BETA = "service.beta.kubernetes.io/"
AWS, OFF = f"{BETA}aws-load-balancer-", f"{BETA}alibaba-cloud-loadbalancer-delete-protection"
NLB = "cloud-controller/nlb"


def messages(pack: PolicyHost, *stack: AnalyzedResource) -> list[str]:
    return [finding.message for finding in said(pack, RULE, *stack)]


def nlb(attributes: Any = None, name: str = "web", **spec: Any) -> AnalyzedResource:
    annotations = {} if attributes is None else {f"{AWS}attributes": attributes}
    return balanced(name, annotations=annotations, **{"loadBalancerClass": NLB, **spec})


@pytest.mark.parametrize("attributes", [None, "deletion_protection.enabled=false", "zonal_shift.config.enabled=true"])
def test_an_nlb_without_the_attribute_is_reported(pack: PolicyHost, attributes: str | None) -> None:
    [finding] = said(pack, RULE, ours("aws"), nlb(attributes))

    assert (finding.level, finding.severity) == ("advisory", "low")
    assert finding.message == (
        "the load balancer is not protected from deletion: "
        f"annotation {AWS}attributes: deletion_protection.enabled=true"
    )


def test_an_nlb_with_the_attribute_passes(pack: PolicyHost) -> None:
    assert messages(pack, ours("aws"), nlb("deletion_protection.enabled=true")) == []


def test_a_classic_load_balancer_has_no_protection(pack: PolicyHost) -> None:
    assert messages(pack, ours("aws"), balanced(loadBalancerClass="cloud-controller/classic")) == []


def test_awss_own_ccm_does_not_read_the_attribute_and_the_load_balancer_controller_does(pack: PolicyHost) -> None:
    by_ccm = balanced(annotations={f"{AWS}type": "nlb"})
    by_class = balanced(loadBalancerClass="service.k8s.aws/nlb")

    assert messages(pack, vendors("aws"), by_ccm) == []
    assert len(messages(pack, vendors("aws"), by_class)) == 1


@pytest.mark.parametrize("controller", [ours("alicloud"), managed(ACK)], ids=["ours", "vendor's"])
def test_protection_that_is_switched_off_on_alicloud_is_reported(
    pack: PolicyHost, controller: AnalyzedResource
) -> None:
    assert f"annotation {OFF}" in messages(pack, controller, balanced(annotations={OFF: "off"}))[0]
    assert messages(pack, controller, balanced(annotations={OFF: "on"})) == []
    assert messages(pack, controller, balanced()) == []


def test_a_reused_load_balancer_is_its_owners_to_protect(pack: PolicyHost) -> None:
    reused = {OFF: "off", f"{BETA}alibaba-cloud-loadbalancer-id": "lb-0a"}

    assert messages(pack, ours("alicloud"), balanced(annotations=reused)) == []


def test_mycloud_has_no_protection(pack: PolicyHost) -> None:
    assert messages(pack, ours("mycloud"), balanced()) == []


def test_unknown_attributes_are_not_evaluated(pack: PolicyHost) -> None:
    assert [finding.level for finding in said(pack, RULE, ours("aws"), nlb(UNKNOWN))] == ["not-evaluated"]
