"""Whatever a Service says: AWS's build makes a sound model of it, or an error that names what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.kube import Object
from cloud_controller.load_balancers.diff import diff
from cloud_controller.load_balancers.model import Built, LoadBalancerState, ObservedLoadBalancer
from tests.cloud_controller.clouds.aws.services import BUILDER, DUAL_VPC, backends, built, classic, node, slices

WORDS = ("443", "*", "web", "sg-0a", "sg-0b", "eipalloc-0a", "subnet-a1", "subnet-b1", "10.0.1.9", "10.0.11.9", "a=b")
ATTRIBUTES = (
    "stickiness.enabled=true",
    "preserve_client_ip.enabled=false",
    "proxy_protocol_v2.enabled=false",
    "load_balancing.cross_zone.enabled=true",
    "access_logs.s3.enabled=true",
    "access_logs.s3.bucket=logs",
)
OFFERED = [entry for entry in CATALOGUE if not entry.ignored]
BACKENDS = backends(node(1, pool="edge"), node(2), slices=(slices("10.0.1.9"), slices("2001:db8::9", family="IPv6")))


@some.composite
def annotation(draw: Any) -> tuple[str, str]:
    entry = draw(some.sampled_from(OFFERED))
    if entry.type is bool:
        usual = some.sampled_from(["true", "false", "yes"])
    elif entry.type is int:
        usual = some.integers(0, 130).map(str)
    elif entry.type is tuple:
        usual = some.lists(some.sampled_from([*WORDS, *ATTRIBUTES]), min_size=1, max_size=3).map(",".join)
    else:
        usual = some.sampled_from([*entry.allowed, "traffic-port", "8080", "/up", "logs"])
    return entry.name, draw(some.one_of(usual, usual, usual, some.text(max_size=5)))


@some.composite
def service(draw: Any) -> Object:
    numbers = draw(some.lists(some.sampled_from([53, 80, 443]), min_size=1, max_size=3))
    ports = {
        (number, draw(some.sampled_from(["TCP", "TCP", "UDP"]))): draw(some.sampled_from([30080, 30080, None]))
        for number in numbers
    }
    spec: dict[str, Any] = draw(
        some.sampled_from(
            [
                {},
                {"externalTrafficPolicy": "Local", "healthCheckNodePort": 31000},
                {"sessionAffinity": "ClientIP"},
                {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack"},
                {"ipFamilies": ["IPv6"]},
                {"loadBalancerClass": "cloud-controller/nlb"},
                {"loadBalancerSourceRanges": ["10.0.0.0/8", "2001:db8::/32"]},
            ]
        )
    )
    given_annotations = dict(draw(some.lists(annotation(), max_size=5)))
    if draw(some.booleans()):
        given_annotations[CATALOGUE.by_argument["type"].name] = "nlb"
    listed = [
        {"protocol": protocol, "port": number, "nodePort": node_port} for (number, protocol), node_port in ports.items()
    ]
    return classic(given_annotations, *listed, **spec)


def built_or_refused(asked: Object) -> Built | None:
    try:
        return built(asked, with_=BACKENDS, facts=DUAL_VPC)
    except InvalidConfiguration as refused:
        assert refused.field.startswith(("annotation ", "spec."))
        return None


@settings(max_examples=120, deadline=None)
@given(service())
def test_a_service_comes_to_a_sound_model_or_an_error_that_names_what_is_wrong(asked: Object) -> None:
    found = built_or_refused(asked)
    if found is None:
        return
    model = found.model
    assert {listener.pool for listener in model.listeners} == {pool.name for pool in model.pools}
    assert len({listener.port for listener in model.listeners}) == len(model.listeners)
    subnets = model.attributes["subnets"]
    assert isinstance(subnets, tuple)
    assert [*subnets] == sorted(subnets)
    assert_only_values(model.attributes)
    for listener in model.listeners:
        assert_only_values(listener.attributes)
    for pool in model.pools:
        assert_only_values(pool.attributes)


def assert_only_values(values: Mapping[str, object]) -> None:
    for key, value in values.items():
        assert value is None or isinstance(value, str | int | bool | tuple), key


@settings(max_examples=60, deadline=None)
@given(service())
def test_what_was_made_of_a_service_differs_in_nothing_from_it(asked: Object) -> None:
    first, again = built_or_refused(asked), built_or_refused(asked)
    if first is None or again is None:
        return
    present = ObservedLoadBalancer("k8s-web-0", LoadBalancerState.READY, first.model)

    assert len(diff(again.model, [present], CATALOGUE, target="service/shop/web", client_token="t")) == 0


@settings(max_examples=60, deadline=None)
@given(service())
def test_members_are_the_same_by_themselves_as_in_the_model(asked: Object) -> None:
    found = built_or_refused(asked)
    if found is None:
        return
    pools = {pool.name: pool for pool in found.model.pools}

    assert BUILDER.members(asked, BACKENDS) == {each.key: pools[each.pool].members for each in found.model.listeners}
