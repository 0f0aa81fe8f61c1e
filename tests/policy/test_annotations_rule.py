"""Rule `lb-service-fit-annotations`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, Secret
from tests.cloud_controller.combinations import ONLY_WITH_IPV6, PAIRS, Asked
from tests.policy.services import ACK, EKS, balanced, managed, ours, port, said, vendors
from tests.policy_objects import of, resource, service

RULE = "lb-service-fit-annotations"
BETA = "service.beta.kubernetes.io/"
DLB, AWS, CLB = f"{BETA}dlb-", f"{BETA}aws-load-balancer-", f"{BETA}alibaba-cloud-loadbalancer-"


def messages(pack: PolicyHost, *stack: AnalyzedResource) -> list[str]:
    return [finding.message for finding in said(pack, RULE, *stack)]


def in_program(asked: Asked) -> tuple[AnalyzedResource, AnalyzedResource]:
    """The Service of a combination, and the controller that serves it."""
    manifest = asked.service()
    spec = {"loadBalancerSourceRanges": [], **manifest["spec"]}
    return ours(asked.kind.cloud), service(spec=spec, annotations=manifest["metadata"]["annotations"])


def test_an_annotation_that_fits_passes(pack: PolicyHost) -> None:
    fits = {f"{DLB}listener-maxqps": "1000", f"{DLB}health-check-interval": "5", f"{DLB}health-check-timeout": "5"}

    assert messages(pack, ours("mycloud"), balanced(annotations=fits)) == []


def test_a_misspelt_name_is_reported_with_the_nearest_one(pack: PolicyHost) -> None:
    [finding] = said(pack, RULE, ours("mycloud"), balanced(annotations={f"{DLB}listener-max-qps": "1000"}))

    assert (finding.level, finding.severity) == ("advisory", "high")
    assert finding.message == (
        f"annotation {DLB}listener-max-qps: unknown on mycloud; did you mean {DLB}listener-maxqps?"
    )


def test_a_near_miss_outside_the_clouds_prefix_is_reported(pack: PolicyHost) -> None:
    ranges = {f"{BETA}load-balancer-source-range": "192.0.2.0/24"}

    assert "did you mean" in messages(pack, ours("mycloud"), balanced(annotations=ranges))[0]


def test_a_value_out_of_range_is_reported_with_what_is_allowed(pack: PolicyHost) -> None:
    [message] = messages(pack, ours("mycloud"), balanced(annotations={f"{DLB}health-check-interval": "301"}))

    allowed = "an integer from 1 to 300, in seconds"
    assert message == f"annotation {DLB}health-check-interval: '…' is not a valid value (allowed: {allowed})"


def test_all_that_is_wrong_with_a_service_is_reported_at_once(pack: PolicyHost) -> None:
    wrong = {f"{DLB}schema": "internal", f"{DLB}scheduler": "random", f"{DLB}id": "web"}

    [message] = messages(pack, ours("mycloud"), balanced(annotations=wrong))

    assert all(name in message for name in wrong)


def test_an_unknown_value_hides_no_error_of_another_annotation(pack: PolicyHost) -> None:
    annotations = {f"{DLB}scheme": UNKNOWN, f"{DLB}scheduler": "random"}

    found = said(pack, RULE, ours("mycloud"), balanced(annotations=annotations))

    assert [finding.level for finding in found] == ["advisory", "not-evaluated"]
    assert "scheduler" in found[0].message


def test_an_unknown_value_hides_no_conflict_of_others(pack: PolicyHost) -> None:
    annotations = {f"{DLB}scheme": UNKNOWN, f"{DLB}health-check-timeout": "9"}

    found = said(pack, RULE, ours("mycloud"), balanced(annotations=annotations))

    assert "health-check-timeout" in found[0].message


def test_unknown_annotations_are_not_evaluated_and_hide_no_other_service(pack: PolicyHost) -> None:
    wrong = balanced("wrong", annotations={f"{DLB}scheduler": "random"})

    found = said(pack, RULE, ours("mycloud"), balanced("unknown", annotations=UNKNOWN), wrong)

    assert sorted(finding.level for finding in found) == ["advisory", "not-evaluated"]


@pytest.mark.parametrize("value", ["hunter2-hunter2", "it's\\secret", "x" * 300])
def test_a_secret_value_is_not_in_the_message(pack: PolicyHost, value: str) -> None:
    [message] = messages(pack, ours("mycloud"), balanced(annotations={f"{DLB}scheme": Secret(value)}))

    assert "is not a valid value (allowed: internet-facing, internal)" in message
    assert value[:20] not in message
    assert "secret" not in message


def test_a_secret_part_of_a_value_is_not_in_the_message(pack: PolicyHost) -> None:
    secret = {f"{CLB}protocol-port": Secret("hunter2:80")}

    [message] = messages(pack, ours("alicloud"), balanced(annotations=secret, loadBalancerSourceRanges=[]))

    assert "is not a protocol and a port" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(("wrong", "right"), [*PAIRS, *ONLY_WITH_IPV6])
def test_what_the_controller_refuses_together_is_refused_in_the_program(
    pack: PolicyHost, wrong: Asked, right: Asked
) -> None:
    assert len(messages(pack, *in_program(wrong))) == 1
    assert messages(pack, *in_program(right)) == []


def test_the_classs_kind_of_load_balancer_decides_what_is_valid(pack: PolicyHost) -> None:
    dual_stack = {f"{CLB}ip-version": "DualStack", f"{CLB}zone-maps": "cn-hangzhou-k:vsw-1"}

    assert messages(pack, balanced(annotations=dual_stack, loadBalancerClass="alibabacloud.com/nlb")) == []
    assert "ip-version" in messages(pack, balanced(annotations=dual_stack, loadBalancerClass="cloud-controller/clb"))[0]


@pytest.mark.parametrize(
    "cluster",
    [
        vendors("aws"),
        managed(EKS),
        resource("aws:ec2/vpc:Vpc", {}),
        resource("kubernetes:core/v1:ConfigMap", {}),
    ],
    ids=["vendor's CCM", "managed cluster", "package", "nothing"],
)
def test_a_misspelt_name_is_found_whoever_serves_the_service(pack: PolicyHost, cluster: AnalyzedResource) -> None:
    assert "did you mean" in messages(pack, cluster, balanced(annotations={f"{AWS}internl": "true"}))[0]


def test_a_vendors_controller_has_its_own_rules_about_combinations(pack: PolicyHost) -> None:
    both = {f"{AWS}internal": "true", f"{AWS}scheme": "internet-facing"}

    assert messages(pack, vendors("aws"), balanced(annotations=both)) == []
    assert "contradicts" in messages(pack, ours("aws"), balanced(annotations=both))[0]


def test_a_class_of_two_clouds_is_judged_as_the_cloud_of_its_annotations(pack: PolicyHost) -> None:
    both = {f"{AWS}internal": "true", f"{AWS}scheme": "internet-facing"}

    assert "contradicts" in messages(pack, balanced(annotations=both, loadBalancerClass="cloud-controller/nlb"))[0]
    of_two = balanced(annotations={**both, f"{CLB}id": "lb-x"}, loadBalancerClass="cloud-controller/nlb")
    assert messages(pack, of_two) == []


def test_an_annotation_that_leaves_the_service_to_another_controller_is_respected(pack: PolicyHost) -> None:
    both = {f"{AWS}type": "external", f"{AWS}internal": "true", f"{AWS}scheme": "internet-facing"}

    assert messages(pack, ours("aws"), balanced(annotations=both)) == []


@pytest.mark.parametrize(
    ("type", "wrong", "right"),
    [
        ("azure-native:network:VirtualNetwork", "azure-load-balancer-internel", "azure-load-balancer-internal"),
        ("azure:core/resourceGroup:ResourceGroup", "port_80_no_probe_rul", "port_80_no_probe_rule"),
        ("tencentcloud:Vpc/instance:Instance", "tencentcloud-loadbalancer-typ", "tencentcloud-loadbalancer-type"),
        ("openstack:networking/network:Network", "openstack-internal-load-balance", "openstack-internal-load-balancer"),
    ],
)
def test_misspelt_names_of_clouds_without_controllers_here_are_found(
    pack: PolicyHost, type: str, wrong: str, right: str
) -> None:
    network = resource(type, {}, "network")

    assert f"{wrong}: unknown on" in messages(pack, network, balanced(annotations={f"{BETA}{wrong}": "true"}))[0]
    assert messages(pack, network, balanced(annotations={f"{BETA}{right}": "true"})) == []


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("loadbalancer.openstack.org/host-name", "loadbalancer.openstack.org/hostname"),
        ("kubernetes.io/elb.healthcheck-flag", "kubernetes.io/elb.health-check-flag"),
        ("networking.gke.io/load-balancer-typ", "networking.gke.io/load-balancer-type"),
    ],
)
def test_misspelt_names_with_a_vendors_domain_are_found(pack: PolicyHost, wrong: str, right: str) -> None:
    packages = {"loadbalancer": "openstack:a:A", "kubernetes": "huaweicloud:a:A", "networking": "gcp:a:A"}
    some = resource(packages[wrong.partition(".")[0]], {}, "some")

    assert "did you mean" in messages(pack, some, balanced(annotations={wrong: "x"}))[0]
    assert messages(pack, some, balanced(annotations={right: "x"})) == []


@pytest.mark.parametrize("class_", ["example.com/others", "cloud-controller/nlb"])
def test_services_of_classes_that_the_cloud_does_not_have_are_left_alone(pack: PolicyHost, class_: str) -> None:
    misspelt = balanced(annotations={f"{DLB}schema": "internal"}, loadBalancerClass=class_)

    assert messages(pack, ours("mycloud"), misspelt) == []


def test_another_annotation_that_would_restrict_access_is_refused_by_our_controller(pack: PolicyHost) -> None:
    allowed = {"service.beta.kubernetes.io/some-cloud-allowed-cidrs": "10.0.0.0/8"}

    assert "every client could connect" in messages(pack, ours("mycloud"), balanced(annotations=allowed))[0]
    assert messages(pack, managed(ACK), balanced(annotations=allowed)) == []


def test_a_service_that_is_no_load_balancer_is_left_alone(pack: PolicyHost) -> None:
    wrong: Any = {f"{DLB}schema": "internal"}

    assert of(pack.analyze_stack([service(type="ClusterIP", annotations=wrong)]), RULE) == []


def test_a_patch_is_judged_by_what_it_sets_alone(pack: PolicyHost) -> None:
    def patch(annotations: dict[str, str]) -> AnalyzedResource:
        props = balanced("web", port(80), annotations=annotations, allocateLoadBalancerNodePorts=False).properties
        return resource("kubernetes:core/v1:ServicePatch", props)

    assert messages(pack, ours("mycloud"), patch({f"{DLB}scheduler": "round_robin"})) == []
    assert "scheduler" in messages(pack, ours("mycloud"), patch({f"{DLB}scheduler": "random"}))[0]
