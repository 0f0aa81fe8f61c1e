"""Which kind of load balancer a Service gets on AWS, and which Services and nodes are none of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import CATALOGUE, PREFIX
from cloud_controller.clouds.aws.facts import Facts
from cloud_controller.kube import Object
from cloud_controller.load_balancers.catalogue import Mutability
from cloud_controller.load_balancers.diff import diff
from cloud_controller.load_balancers.model import LoadBalancerState, ObservedLoadBalancer
from cloud_controller.plan import ActionKind
from tests.cloud_controller.clouds.aws.services import BUILDER, built, classic, ignored, model, named, nlb, node, subnet
from tests.cloud_controller.load_balancing import port

TYPE = f"{PREFIX}type"
DELAY = "deregistration_delay.timeout_seconds"
NO_DELAY = named(target_group_attributes=(f"{DELAY}=0",))


@pytest.mark.parametrize(
    ("annotations", "spec", "kind"),
    [
        ({}, {}, "classic"),
        ({TYPE: ""}, {}, "classic"),
        ({TYPE: "clb"}, {}, "classic"),
        ({TYPE: "nlb"}, {}, "network"),
        ({}, {"loadBalancerClass": "cloud-controller/nlb"}, "network"),
        ({}, {"loadBalancerClass": "cloud-controller/classic"}, "classic"),
        ({TYPE: "nlb"}, {"loadBalancerClass": "cloud-controller/nlb"}, "network"),
    ],
)
def test_the_kind_is_said_by_annotation_or_class(annotations: dict[str, str], spec: dict[str, Any], kind: str) -> None:
    assert model(classic(annotations, **spec)).attributes["type"] == kind


@pytest.mark.parametrize("said", ["classic", "external"])
def test_an_annotation_that_contradicts_the_class_is_refused(said: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"contradicts spec.loadBalancerClass 'cloud-controller/nlb'"):
        built(classic({TYPE: said}, loadBalancerClass="cloud-controller/nlb"))


@pytest.mark.parametrize("service", [classic, nlb])
def test_a_path_that_no_check_asks_for_is_told_of(service: Callable[[dict[str, str]], Object]) -> None:
    by_http = named(healthcheck_path="/up", healthcheck_protocol="HTTP")

    assert [*ignored(service(named(healthcheck_path="/up")))] == ["healthcheck-path"]
    assert [*ignored(service(by_http))] == []


@pytest.mark.parametrize(
    ("service", "ours"),
    [
        (classic(), True),
        (nlb(), True),
        (classic({TYPE: "external"}), False),
        (classic({TYPE: "nlb-ip"}), False),
        (classic({TYPE: "external"}, loadBalancerClass="cloud-controller/nlb"), True),
        (classic({TYPE: "alb"}), True),
    ],
)
def test_what_is_left_to_the_other_controller_is_not_claimed(service: Object, ours: bool) -> None:
    assert BUILDER.claims(service) is ours


def test_a_service_without_annotations_is_served_and_does_not_drain() -> None:
    plain = classic()
    del plain["metadata"]["annotations"]

    assert BUILDER.claims(plain)
    assert not BUILDER.drains(plain)
    assert BUILDER.drains(plain | {"spec": plain["spec"] | {"loadBalancerClass": "cloud-controller/nlb"}})
    assert built(plain).model.attributes["type"] == "classic"


@pytest.mark.parametrize(
    ("service", "drained"),
    [
        (nlb(), True),
        (nlb(named(target_group_attributes=(f"{DELAY}=60",))), True),
        (nlb(NO_DELAY), False),
        (nlb(NO_DELAY | named(target_group_attributes_of_port={"80": (f"{DELAY}=300",)})), True),
        (nlb(NO_DELAY | named(target_group_attributes_of_port={"80": (f"{DELAY}=",)})), False),
        (nlb(NO_DELAY | named(target_group_attributes_of_port={"443": (f"{DELAY}=300",)})), False),
        (nlb(named(target_group_attributes_of_port={"80": (f"{DELAY}=0",)})), False),
        (nlb(named(target_group_attributes_of_port={"443": (f"{DELAY}=0",)})), True),
        (nlb(named(target_group_attributes_of_port={"81": (f"{DELAY}=0",)}), port(80), port(81)), False),
        (nlb(loadBalancerClass="cloud-controller/classic"), False),
        (classic(), False),
        (classic(named(connection_draining_enabled=True)), True),
        (classic({f"{PREFIX}connection-draining-enabled": "perhaps"}), False),
    ],
)
def test_connections_outlive_a_member_where_the_load_balancer_drains(service: Object, drained: bool) -> None:
    assert BUILDER.drains(service) is drained


@pytest.mark.parametrize("service", [nlb(), classic()], ids=["network", "classic"])
@pytest.mark.parametrize(("free", "told"), [(7, True), (8, False), (None, False)])
def test_a_subnet_with_too_few_addresses_is_told_of(service: Object, free: int | None, told: bool) -> None:
    facts = Facts("vpc-1", (subnet("a1", free_addresses=free), subnet("b1", free_addresses=200)))

    found = dict(built(service, facts=facts).warnings)

    message = "subnet-a1 (10.0.1.0/24) has fewer than 8 free IP addresses, which a load balancer needs"
    assert found == ({"SubnetAlmostFull": message} if told else {})


def test_a_subnet_that_the_load_balancer_is_not_in_may_be_full() -> None:
    facts = Facts("vpc-1", (subnet("a1", free_addresses=0), subnet("b1", free_addresses=200)))

    assert built(nlb(named(subnets=("subnet-b1",))), facts=facts).warnings == ()


def test_pods_are_followed_only_where_they_are_targets() -> None:
    assert BUILDER.follows_endpoints(nlb(named(nlb_target_type="ip")))
    assert not BUILDER.follows_endpoints(nlb())
    assert not BUILDER.follows_endpoints(nlb(externalTrafficPolicy="Local"))
    assert not BUILDER.follows_endpoints(classic(named(nlb_target_type="ip")))
    assert not BUILDER.follows_endpoints(nlb({f"{PREFIX}nlb-target-type": "pods"}))


@pytest.mark.parametrize(
    ("provider_id", "machine"),
    [
        ("aws:///us-east-1a/i-0123456789abcdef0", "i-0123456789abcdef0"),
        ("aws:////i-0123456789abcdef0", "i-0123456789abcdef0"),
        ("i-0123456789abcdef0", "i-0123456789abcdef0"),
        ("aws:///us-east-1a/fargate-ip-10-0-1-9.ec2.internal", "fargate-ip-10-0-1-9.ec2.internal"),
        ("gce://project/zone/name", None),
        ("", None),
    ],
)
def test_a_node_is_reached_by_its_machine(provider_id: str, machine: str | None) -> None:
    of_node = {"metadata": {"name": "n1"}, "spec": {"providerID": provider_id}}

    found = BUILDER.backend(of_node)

    assert (found and found.instance_id) == machine


def test_a_node_brings_its_labels_for_services_that_choose_by_them() -> None:
    found = BUILDER.backend(node(1, pool="edge"))

    assert found is not None
    assert found.labels == {"pool": "edge"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (classic(), nlb()),
        (nlb(), nlb(named(internal=True))),
        (nlb(), nlb(named(eip_allocations=("eipalloc-0a", "eipalloc-0b", "eipalloc-0c")))),
    ],
)
def test_what_aws_cannot_change_is_a_replacement_and_the_plan_says_that_the_address_changes(
    before: Object, after: Object
) -> None:
    present = ObservedLoadBalancer("k8s-web-0", LoadBalancerState.READY, model(before))

    (action,) = diff(model(after), [present], CATALOGUE, target="service/shop/web", client_token="t")

    assert action.kind is ActionKind.REPLACE
    assert "the address changes" in action.summary


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (nlb(), nlb(named(healthcheck_interval=10))),
        (nlb(), nlb(named(cross_zone_load_balancing_enabled=True))),
        (nlb(), nlb(named(subnets=("subnet-a1",)))),
        (nlb(), nlb(named(target_group_attributes=("preserve_client_ip.enabled=false",)))),
        (classic(), classic(named(connection_idle_timeout=10))),
        (nlb(), nlb(loadBalancerSourceRanges=["10.0.0.0/8"])),
    ],
)
def test_the_rest_is_changed_in_place_and_by_one_action(before: Object, after: Object) -> None:
    present = ObservedLoadBalancer("k8s-web-0", LoadBalancerState.READY, model(before))

    (action,) = diff(model(after), [present], CATALOGUE, target="service/shop/web", client_token="t")

    assert action.kind is ActionKind.UPDATE


def test_every_field_of_the_models_that_an_annotation_decides_has_the_mutability_of_its_entry() -> None:
    replaced = {entry.sets for entry in CATALOGUE if entry.mutability is Mutability.REPLACE}

    assert replaced <= {*model(nlb()).attributes}
