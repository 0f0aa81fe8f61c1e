"""What a Service may cost: work that grows no faster than the Service, and none for what no load balancer holds."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controllers.service.plan import ServicePlan, plan_service
from cloud_controller.controllers.service.rules import Rules, members_of
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.model import Listener, LoadBalancerModel, LoadBalancerState, ObservedLoadBalancer
from tests.cloud_controller.combinations import AWS, CERTIFICATE, CLB, MYCLOUD, NLB, OPENSTACK, Asked, builder_of, many

NETWORK = {"type": "nlb"}
TLS = {"cert_id": "c-1"}
NODES = tuple(NodeBackend(f"n{each}", f"i-{each}", f"10.1.0.{each}", labels={"env": "prod"}) for each in range(20))
CONTROL_PLANE = NodeBackend("control-plane", "i-99", "10.1.0.99")
"""Excluded by its label for good, as kubeadm does."""


def build(asked: Asked) -> Any:
    """The build of a Service, as the daemon and `plan -f` call it."""
    builder, facts = builder_of(asked.kind)
    return builder.build(stored(asked), Backends(NODES), facts)


def stored(asked: Asked) -> Any:
    """The Service as an API server completes it."""
    service = asked.service()
    service["metadata"] |= {"namespace": "default", "uid": "uid-web"}
    for number, port in enumerate(service["spec"]["ports"]):
        port["nodePort"] = 30000 + number
    return service


def planned(asked: Asked, *members: NodeBackend, excluded: tuple[NodeBackend, ...] = (CONTROL_PLANE,)) -> ServicePlan:
    """The plan of a Service whose load balancer has these members behind its first port."""
    builder, facts = builder_of(asked.kind)
    service = stored(asked)
    small = replace(asked, arguments={}, ports=asked.ports[:1], spec={})
    model = builder.build(stored(small), Backends(members), facts).model
    lb = ObservedLoadBalancer("lb-1", LoadBalancerState.READY, model)
    rules = Rules("prod-1" if asked.kind is AWS else "c-1", frozenset(each for each in asked.kind.classes if each))
    return plan_service(service, [lb], Backends(NODES, excluded=excluded), builder, facts, rules)


def refusal(asked: Asked) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        build(asked)
    return str(caught.value)


def lines(work: Callable[[], object]) -> int:
    """How many lines of Python a work takes: a count that no other process changes, unlike its time."""
    count = 0

    def traced(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def peak(work: Callable[[], object]) -> int:
    """The most bytes that a work holds at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def listed(word: str, count: int) -> str:
    """So many words, each with the number of one of the Service's ports."""
    return ",".join(word.format(1000 + each) for each in range(count))


def of_ports(kind: Catalogue) -> Callable[[int], Asked]:
    return lambda count: Asked(kind, {}, many(count))


def of_ranges(kind: Catalogue) -> Callable[[int], Asked]:
    def asked(count: int) -> Asked:
        ranges = ["0.0.0.0/0", *(f"10.{each // 250}.{each % 250}.0/24" for each in range(count - 1))]
        return Asked(kind, {}, many(9), {"loadBalancerSourceRanges": ranges})

    return asked


def of_cloud(kind: Catalogue) -> str:
    return f"{kind.cloud}{kind.kind}"


KINDS = (MYCLOUD, AWS, CLB, NLB, OPENSTACK)
SERVICES: Mapping[str, tuple[int, Callable[[int], Asked]]] = {
    **{f"ports of {kind.cloud} {kind.kind}": (250, of_ports(kind)) for kind in KINDS},
    "ports of a network load balancer": (50, lambda n: Asked(AWS, NETWORK, many(n))),
    "ports with TLS": (
        50,
        lambda n: Asked(AWS, {**NETWORK, "ssl_cert": CERTIFICATE, "ssl_ports": listed("{}", n)}, many(n)),
    ),
    "attributes of ports": (
        50,
        lambda n: Asked(AWS, NETWORK | {f"target_group_attributes_of_port.{1000 + i}": "" for i in range(n)}, many(n)),
    ),
    **{f"source ranges of {kind.cloud}": (1000, of_ranges(kind)) for kind in (MYCLOUD, AWS, CLB, OPENSTACK)},
    "protocols of a CLB": (250, lambda n: Asked(CLB, TLS | {"protocol_port": listed("https:{}", n)}, many(n))),
    "redirections": (
        250,
        lambda n: Asked(
            CLB,
            TLS
            | {
                "protocol_port": f"{listed('http:{}', n // 2)},{listed('https:2{}', n // 2)}",
                "forward_port": listed("{0}:2{0}", n // 2),
            },
            (
                *many(n // 2),
                *({**each, "name": f"s{each['port']}", "port": 20000 + each["port"]} for each in many(n // 2)),
            ),
        ),
    ),
    "domains": (
        100,
        lambda n: Asked(
            CLB, TLS | {"protocol_port": "https:1000", "domain_extensions": listed("a{}.example:c", n)}, many(1)
        ),
    ),
    "protocols of an NLB": (250, lambda n: Asked(NLB, TLS | {"protocol_port": listed("tcpssl:{}", n)}, many(n))),
    "ranges of ports": (
        250,
        lambda n: Asked(NLB, {"backend_type": "eni", "listener_port_range": listed("{0}0-{0}9:{0}", n)}, many(250)),
    ),
    "words of a node selector": (100, lambda n: Asked(OPENSTACK, {"node_selector": ",".join(["env=prod"] * n)})),
}
"""Services of any size, each with the most that is served."""


@pytest.mark.parametrize("name", SERVICES)
def test_twice_the_service_is_at_most_twice_the_work_and_memory(name: str) -> None:
    most, sized = SERVICES[name]
    build(sized(most // 2))  # Compiles the catalogue's patterns.

    assert lines(lambda: build(sized(most))) < 2.3 * lines(lambda: build(sized(most // 2)))
    assert peak(lambda: build(sized(most))) < 2.3 * peak(lambda: build(sized(most // 2)))


@pytest.mark.parametrize("name", SERVICES)
def test_more_than_a_load_balancer_holds_costs_less_than_what_it_holds(name: str) -> None:
    most, sized = SERVICES[name]
    too_much = sized(14 * most)

    assert lines(lambda: refusal(too_much)) < lines(lambda: build(sized(most)))
    assert "too many" in refusal(too_much)


@pytest.mark.parametrize("members", [NODES, (CONTROL_PLANE,)], ids=["members", "excluded members"])
@pytest.mark.parametrize("kind", KINDS, ids=of_cloud)
def test_an_excluded_node_makes_the_plan_of_a_service_that_is_refused_no_dearer(
    kind: Catalogue, members: tuple[NodeBackend, ...]
) -> None:
    found = planned(of_ports(kind)(3500), *members)

    assert found.fault is not None and "too many" in str(found.fault)
    assert lines(lambda: planned(of_ports(kind)(3500), *members)) < lines(lambda: planned(of_ports(kind)(250)))


@pytest.mark.parametrize("kind", KINDS, ids=of_cloud)
def test_an_excluded_node_that_is_no_member_costs_next_to_nothing(kind: Catalogue) -> None:
    most = of_ports(kind)(250)
    planned(most, *NODES)

    assert lines(lambda: planned(most, *NODES)) < 1.02 * lines(lambda: planned(most, *NODES, excluded=()))


@pytest.mark.parametrize("kind", KINDS, ids=of_cloud)
def test_the_members_of_a_refused_service_are_those_of_the_listeners_that_it_has(kind: Catalogue) -> None:
    refused = stored(Asked(kind, {}, many(2000)))
    model = LoadBalancerModel("web", listeners=(Listener("TCP", 1007, "tcp-1007"),))
    has_one = ObservedLoadBalancer("lb-1", LoadBalancerState.READY, model)

    found = members_of(refused, Backends(NODES), builder_of(kind)[0], [has_one])

    assert {key: len(members) for key, members in found.items()} == {("TCP", 1007): len(NODES)}
