"""A label on their nodes does not take a load balancer's last members out, whatever the cloud sends its traffic to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cloud_controller.controllers.service.gate_plan import Verdict, registration, view_of
from cloud_controller.controllers.service.plan import plan_service
from cloud_controller.controllers.service.rules import Rules
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from cloud_controller.load_balancers.model import Ingress, LoadBalancerState, ObservedLoadBalancer
from cloud_controller.load_balancers.operations import RemoveMembers
from cloud_controller.load_balancers.pods import PodNetwork
from cloud_controller.plan import Attention
from tests.cloud_controller.combinations import AWS, CLB, LOCAL, MYCLOUD, NLB, OPENSTACK, Asked, builder_of
from tests.cloud_controller.load_balancing import endpoint, endpoint_slice

TARGETS = {
    **{f"nodes of {kind.cloud} {kind.kind}": Asked(kind) for kind in (MYCLOUD, AWS, CLB, NLB, OPENSTACK)},
    "nodes with pods": Asked(MYCLOUD, spec=LOCAL),
    "nodes of a network load balancer": Asked(AWS, {"type": "nlb"}),
    "pods of mycloud": Asked(MYCLOUD, {"backend_type": "pod-ip"}),
    "pods of a network load balancer": Asked(AWS, {"type": "nlb", "nlb_target_type": "ip"}),
    "pods of a CLB": Asked(CLB, {"backend_type": "eni"}),
    "pods of an NLB": Asked(NLB, {"backend_type": "eni"}),
    "pods on any port": Asked(NLB, {"backend_type": "eni", "listener_port_range": "80-90:80"}),
}
PODS = {"n1": "10.0.0.5", "n2": "10.0.0.6", "n3": "10.0.0.7"}


def nodes(asked: Asked, *names: str) -> tuple[NodeBackend, ...]:
    """So many nodes; some clouds send to a machine by its ID."""
    by_id = asked.kind in (AWS, CLB, NLB)
    return tuple(NodeBackend(each, f"i-{each}", f"i-{each}" if by_id else f"10.1.0.{each[1:]}") for each in names)


def backends(*, on: tuple[str, ...], **of: tuple[NodeBackend, ...]) -> Backends:
    """With a ready pod on each of the nodes `on`."""
    slices = endpoint_slice(*(endpoint(PODS[each], each) for each in on))
    slices["ports"][0] |= {"name": "tcp"}
    return Backends(slices=(slices,), pods=PodNetwork(("10.0.0.0/8",), dict.fromkeys(PODS, ())), **of)


def rules(asked: Asked) -> Rules:
    return Rules("prod-1" if asked.kind is AWS else "c-1", frozenset(each for each in asked.kind.classes if each))


def served(asked: Asked) -> tuple[Any, ObservedLoadBalancer]:
    """The Service, and its load balancer with the members that n1 and n2 give it."""
    builder, facts = builder_of(asked.kind)
    service = asked.service()
    service["metadata"] |= {"namespace": "default", "uid": "uid-web"}
    service["spec"]["ports"][0]["nodePort"] = 30080
    service["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    model = builder.build(service, backends(on=("n1", "n2"), nodes=nodes(asked, "n1", "n2")), facts).model
    assert [len(pool.members) for pool in model.pools] == [2]
    return service, ObservedLoadBalancer("lb-1", LoadBalancerState.READY, model, (Ingress(ip="192.0.2.1"),))


@pytest.mark.parametrize("targets", TARGETS)
def test_the_members_stay_when_a_label_excludes_all_nodes(targets: str) -> None:
    asked = TARGETS[targets]
    builder, facts = builder_of(asked.kind)
    service, lb = served(asked)
    labelled = backends(on=("n1", "n2", "n3"), excluded=nodes(asked, "n1", "n2", "n3"))

    found = plan_service(service, [lb], labelled, builder, facts, rules(asked))

    assert not [each for each in found.plan if isinstance(each.operation, RemoveMembers)]
    assert found.attention is Attention.EXCLUDED
    assert found.keeps is not None and found.keeps.startswith("without n1, n2, excluded by label")


@pytest.mark.parametrize("targets", [each for each in TARGETS if each.startswith("pods")])
def test_a_new_pod_beside_members_that_stay_waits_until_it_is_one(targets: str) -> None:
    asked = TARGETS[targets]
    builder, facts = builder_of(asked.kind)
    service, lb = served(asked)
    labelled = backends(on=("n1", "n2"), excluded=nodes(asked, "n1", "n2"))
    slices = labelled.slices[0]
    new = endpoint("10.0.0.8", "n1")
    new["targetRef"]["uid"] = "uid-new"
    labelled = replace(labelled, slices=({**slices, "endpoints": [*slices["endpoints"], new]},))
    pod = {"metadata": {"uid": "uid-new"}, "spec": {"nodeName": "n1"}, "status": {"podIPs": [{"ip": "10.0.0.8"}]}}

    verdict = registration(pod, view_of(service, [lb], labelled, builder, facts, rules(asked)))

    assert isinstance(verdict, Verdict) and (verdict.opens, verdict.reason) == (False, "NotRegistered")
