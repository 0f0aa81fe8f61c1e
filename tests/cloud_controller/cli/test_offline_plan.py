"""Two sets of manifests compared without a cluster and without a cloud: what changes in each load balancer's model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from cloud_controller import clouds
from cloud_controller.cli import offline_plan, service_files
from cloud_controller.cli.planned_service import Outcome, PlannedService, ServicesPlan
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controllers.service.address_changes import AddressChanges
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.kube import Object

CLOUDS = ("alicloud", "aws", "mycloud", "openstack")
NLB = "service.beta.kubernetes.io/aws-load-balancer-"
UUID = "0c3c7a26-7d21-4f0e-9c4c-3d3a2f1b8e11"


def annotation(cloud: str, argument: str) -> str:
    return clouds.descriptor(cloud).catalogue.by_argument[argument].name


SCHEME, REUSE = annotation("mycloud", "scheme"), annotation("mycloud", "id")


def service(name: str = "web", annotations: dict[str, Any] | None = None, **spec: Any) -> Object:
    given = {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 80}], **spec}
    metadata = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": given}


def manifests(services: list[Object]) -> service_files.Manifests:
    return service_files.parse([("a.yaml", yaml.safe_dump_all(services))], "default")


def compared(
    before: list[Object], after: list[Object], cloud: str = "mycloud", options: ServiceOptions | None = None
) -> ServicesPlan:
    found = clouds.descriptor(cloud)
    return offline_plan.compare(manifests(before), manifests(after), found, options or ServiceOptions())


def only(before: list[Object], after: list[Object], cloud: str = "mycloud") -> PlannedService:
    [found] = compared(before, after, cloud).services
    return found


@pytest.mark.parametrize("cloud", CLOUDS)
def test_an_unchanged_service_is_up_to_date_and_its_plan_is_empty(cloud: str) -> None:
    found = only([service(externalTrafficPolicy="Local")], [service(externalTrafficPolicy="Local")], cloud)

    assert (found.outcome, found.actions) == (Outcome.UP_TO_DATE, ())


def test_a_class_that_the_cloud_serves_by_default_is_planned_and_its_mistakes_are_refused() -> None:
    zones = annotation("alicloud", "zone_maps")
    good, bad = ("cn-hangzhou-i:vsw-1,cn-hangzhou-j:vsw-2", "nonsense")
    given = [
        service(name, {zones: value}, loadBalancerClass="alibabacloud.com/nlb")
        for name, value in (("bad", bad), ("good", good))
    ]

    found = compared([], given, "alicloud")

    assert [each.outcome for each in found.services] == [Outcome.REFUSED, Outcome.CREATED]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_services_are_created_changed_and_deleted_on_every_cloud(cloud: str) -> None:
    more = service("more", ports=[{"port": 80}, {"port": 81, "name": "b"}])
    before = [service("gone"), service("more"), service("inner"), service("quiet", type="ClusterIP")]
    after = [service("new"), more, service("inner", type="ClusterIP"), service("quiet", type="ClusterIP")]

    found = compared(before, after, cloud)

    assert {each.key.partition("/")[2]: each.outcome for each in found.services} == {
        "gone": Outcome.DELETED,
        "inner": Outcome.DELETED,
        "more": Outcome.CHANGED,
        "new": Outcome.CREATED,
        "quiet": Outcome.NOT_SERVED,
    }
    assert all(action.assumed for each in found.services for action in each.actions)
    assert "backend" not in str([str(action) for each in found.services for action in each.actions])


@pytest.mark.parametrize(
    ("cloud", "argument", "value", "more"),
    [
        ("mycloud", "scheme", "internal", {}),
        ("aws", "scheme", "internal", {}),
        ("aws", "type", "nlb", {}),
        ("aws", "eip_allocations", "eipalloc-0a,eipalloc-0b", {"type": "nlb"}),
        ("alicloud", "address_type", "intranet", {}),
        ("openstack", "flavor_id", UUID, {}),
    ],
)
def test_what_the_catalogue_calls_a_replacement_replaces_the_address(
    cloud: str, argument: str, value: str, more: dict[str, str]
) -> None:
    of_type = {annotation(cloud, name): text for name, text in more.items()}
    given = {**of_type, annotation(cloud, argument): value}

    found = only([service(annotations=of_type)], [service(annotations=given)], cloud)

    assert (found.outcome, found.path) == (Outcome.REPLACED, f"metadata.annotations.{annotation(cloud, argument)}")


def test_a_replaced_address_has_no_acknowledgement_without_the_cloud() -> None:
    held = ServiceOptions(address_changes=AddressChanges.ACKNOWLEDGE)

    [found] = compared([service()], [service(annotations={SCHEME: "internal"})], options=held).services

    assert (found.outcome, found.acknowledgements) == (Outcome.REPLACED, ())


def test_a_replacement_is_at_the_line_of_its_annotation() -> None:
    found = only([service()], [service(annotations={"example.com/a": "b", SCHEME: "internal"})])

    text = yaml.safe_dump_all([service(annotations={"example.com/a": "b", SCHEME: "internal"})])
    assert SCHEME in text.splitlines()[found.line - 1]


@pytest.mark.parametrize(
    ("changed", "told", "path"),
    [
        (service(annotations={f"{SCHEME}s": "internal"}), "did you mean", f"metadata.annotations.{SCHEME}s"),
        (service(annotations={SCHEME: True}), "not a string", f"metadata.annotations.{SCHEME}"),
        (service(ports=[{"port": "80"}]), "not a number", "spec.ports[0].port"),
        (service(ports=[{"port": 0}]), "0 is not a port", "spec.ports[0].port"),
        (service(ports=[{"port": 80, "protocol": "SCTP"}]), "'SCTP' is not supported", "spec.ports[0].protocol"),
        (service(ports={"port": 80}), "not a list", "spec.ports"),
        (service(allocateLoadBalancerNodePorts=False), "missing, but the load balancer", "spec.ports[0].nodePort"),
        (service(loadBalancerClass="mycloud.io/other"), "cannot be changed", "spec.loadBalancerClass"),
        (service(sessionAffinityConfig={"clientIP": []}), "not a mapping", "spec.sessionAffinityConfig.clientIP"),
        ({**service(), "spec": "x"}, "spec: not a mapping", "spec"),
    ],
)
def test_what_the_controller_or_the_api_server_cannot_read_is_refused_at_its_line(
    changed: Object, told: str, path: str
) -> None:
    found = only([service()], [changed])

    assert found.outcome is Outcome.REFUSED
    assert found.refusal is not None and told in found.refusal.why
    assert found.path == path


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize(
    ("without", "empty"),
    [
        ({}, {"externalTrafficPolicy": "", "sessionAffinity": "", "loadBalancerIP": "", "healthCheckNodePort": 0}),
        ({}, {"ports": [{"port": 80, "name": "", "protocol": "", "targetPort": 0, "nodePort": 0}]}),
        ({}, {"ports": [{"port": 80, "targetPort": ""}]}),
        ({"externalTrafficPolicy": "Local"}, {"healthCheckNodePort": 0}),
    ],
)
def test_what_a_manifest_leaves_empty_gets_its_default(
    cloud: str, without: dict[str, Any], empty: dict[str, Any]
) -> None:
    found = only([service(**without)], [service(**without, **empty)], cloud)

    assert (found.outcome, found.refusal) == (Outcome.UP_TO_DATE, None)


def test_an_empty_time_of_session_affinity_is_the_default() -> None:
    empty = service(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": None}})

    assert only([service(sessionAffinity="ClientIP")], [empty]).outcome is Outcome.UP_TO_DATE


def with_node_port(name: str, number: int, **spec: Any) -> Object:
    return service(name, ports=[{"port": 80, "nodePort": number}], **spec)


def test_two_services_cannot_have_one_node_port() -> None:
    plan = compared([], [with_node_port("a", 30080), with_node_port("b", 30080, type="NodePort")])

    first, second = plan.services
    assert (first.outcome, second.outcome) == (Outcome.CREATED, Outcome.REFUSED)
    assert second.path == "spec.ports[0].nodePort"
    assert "30080 is also a node port of Service default/a (a.yaml:1)" in str(second.refusal)


@pytest.mark.parametrize(
    "other",
    [
        with_node_port("b", 30081),
        service("b"),
        with_node_port("b", 30080, type="ClusterIP"),
        service("b", ports=[{"port": 53, "protocol": name, "nodePort": 30053} for name in ("TCP", "UDP")]),
    ],
)
def test_services_with_other_node_ports_and_two_protocols_on_one_are_planned(other: Object) -> None:
    assert all(each.refusal is None for each in compared([], [with_node_port("a", 30080), other]).services)


def test_a_node_port_for_health_checks_is_one_too() -> None:
    local = service("b", externalTrafficPolicy="Local", healthCheckNodePort=30080)

    assert "spec.healthCheckNodePort: 30080" in str(
        compared([], [with_node_port("a", 30080), local]).services[1].refusal
    )


def test_a_service_that_was_refused_before_has_nothing_to_lose() -> None:
    assert only([service(annotations={SCHEME: "x"})], [service()]).outcome is Outcome.CREATED


def test_a_port_of_a_shared_load_balancer_is_free_once_its_service_is_gone() -> None:
    on = {REUSE: "lb-1"}

    taken = compared([service("a", on)], [service("a", on), service("b", on)])
    freed = compared([service("a", on)], [service("b", on)])

    assert [each.outcome for each in taken.services] == [Outcome.UP_TO_DATE, Outcome.REFUSED]
    assert "is in use by Service default/a" in str(taken.services[1].refusal)
    assert freed.services[1].refusal is None


def test_a_move_to_a_shared_load_balancer_changes_the_address() -> None:
    assert only([service()], [service(annotations={REUSE: "lb-1"})]).outcome is Outcome.REPLACED


def test_a_class_is_chosen_with_the_type() -> None:
    ours, other = service(loadBalancerClass="mycloud.io/load-balancer"), service(loadBalancerClass="example.com/a")

    assert only([other], [ours]).outcome is Outcome.REFUSED
    assert only([service(type="ClusterIP")], [ours]).outcome is Outcome.CREATED


def test_services_of_other_classes_are_not_served() -> None:
    before, after = (service(loadBalancerClass="example.com/a", ports=[{"port": each}]) for each in (80, 81))

    assert only([before], [after]).outcome is Outcome.NOT_SERVED
    required = ServiceOptions(without_class=False)
    assert [each.outcome for each in compared([], [service()], options=required).services] == [Outcome.NOT_SERVED]


@pytest.mark.parametrize(
    ("cloud", "given"),
    [
        ("aws", {"type": "nlb", "subnets": "subnet-0a,my-subnet"}),
        (
            "aws",
            {
                "type": "nlb",
                "subnets": "subnet-0a,subnet-0b",
                "private_ipv4_addresses": "10.1.0.9,10.2.0.9",
                "scheme": "internal",
            },
        ),
        ("aws", {"type": "nlb", "eip_allocations": "eipalloc-0a"}),
        ("aws", {"type": "nlb", "ip_address_type": "dualstack"}),
        ("aws", {"type": "nlb", "nlb_target_type": "ip"}),
        ("aws", {"type": "nlb", "security_groups": "sg-0a,sg-0b"}),
        ("openstack", {"lb_class": "fast"}),
        ("openstack", {"floating_network_id": UUID, "floating_subnet_name": "~^public-[0-9]"}),
        ("openstack", {"floating_subnet_tags": "a,b"}),
        ("openstack", {"member_subnet_id": UUID, "port_id": UUID}),
        ("openstack", {"internal": "true", "network_id": UUID}),
    ],
)
def test_what_a_service_names_is_assumed_to_exist(cloud: str, given: dict[str, str]) -> None:
    annotations = {annotation(cloud, argument): value for argument, value in given.items()}

    assert only([], [service(annotations=annotations)], cloud).outcome is Outcome.CREATED


def test_what_is_no_pattern_is_refused_without_the_cloud_too() -> None:
    name = annotation("openstack", "floating_subnet_name")

    found = only([], [service(annotations={name: "~["})], "openstack")

    assert (found.outcome, found.path) == (Outcome.REFUSED, f"metadata.annotations.{name}")


def test_a_cloud_that_cannot_be_planned_without_calls_says_so() -> None:
    without = replace(clouds.descriptor("mycloud"), assumed=None)

    with pytest.raises(InvalidConfiguration, match="cloud mycloud does not support plans without the cloud"):
        offline_plan.compare(manifests([]), manifests([]), without, ServiceOptions())


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize(
    ("metadata", "spec", "field"),
    [({"finalizers": 3}, {}, "metadata.finalizers"), ({}, {"ports": []}, "spec.ports")],
)
def test_what_the_api_server_alone_would_refuse_is_no_crash(
    cloud: str, metadata: dict[str, Any], spec: dict[str, Any], field: str
) -> None:
    wrong = service(**spec)
    wrong["metadata"] |= metadata

    refusal = only([service()], [wrong], cloud).refusal

    assert refusal is not None and refusal.field == field
