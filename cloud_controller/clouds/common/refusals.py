"""Rules about Services that every cloud has, each in its own words about what it serves instead. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.clouds.common.source_ranges import no_client
from cloud_controller.load_balancers import terms
from cloud_controller.load_balancers.refusals import Refusal
from cloud_controller.load_balancers.restrictions import MOST_RANGES
from cloud_controller.load_balancers.terms import Saying, Term, say

SERVED = ("TCP", "UDP")
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
"""The pattern of an IPv4 address."""


def unserved_protocol(*served: str, why: str = "is not supported", allowed: str | None = None) -> Refusal:
    """A port of a protocol that load balancers do not serve."""
    return Refusal(
        say("spec.ports[{}].protocol", terms.INDEX),
        ~terms.PROTOCOL.is_(*served),
        say(f"'{{}}' {why}", terms.PROTOCOL),
        allowed or ", ".join(served),
        each=terms.PORTS,
    )


def missing_node_port(otherwise: str = "") -> Refusal:
    """A port without a node port for the load balancer to send to; `otherwise`: another way out than allocating it."""
    return Refusal(
        say("spec.ports[{}].nodePort", terms.INDEX),
        ~terms.HAS_NODE_PORT,
        "missing, but the load balancer sends to node ports",
        "spec.allocateLoadBalancerNodePorts: true" + (f"; or {otherwise}" if otherwise else ""),
        each=terms.PORTS,
    )


def only_ipv4(why: str, otherwise: str = "") -> Iterator[Refusal]:
    """Families that load balancers with only IPv4 addresses lack; `why` they have no others; `otherwise`: as above."""
    or_otherwise = f"; or {otherwise}" if otherwise else ""
    yield Refusal(
        "spec.ipFamilies",
        ~terms.FIRST_FAMILY.is_("IPv4"),
        say(f"{{}} cannot be the first family: {why}", terms.FIRST_FAMILY),
        f"IPv4 as the first family{or_otherwise}",
    )
    yield Refusal(
        "spec.ipFamilyPolicy",
        terms.spec("ipFamilyPolicy").is_("RequireDualStack"),
        f"RequireDualStack is not supported: {why}",
        f"SingleStack, PreferDualStack{or_otherwise}",
    )


_IN_SPEC = Term(
    "(has(object.spec.loadBalancerSourceRanges) && object.spec.loadBalancerSourceRanges.size() > 0)",
    lambda asked: bool(asked.spec.get("loadBalancerSourceRanges")),
)
_ANNOTATED = terms.words("load_balancer_source_ranges")
RANGES = Term(
    f"({_IN_SPEC.cel} ? object.spec.loadBalancerSourceRanges : {_ANNOTATED.cel})",
    lambda asked: asked.spec.get("loadBalancerSourceRanges") or _ANNOTATED.of(asked),
)
"""The source ranges as written: those of the spec, otherwise those of the annotation."""


def too_many_ranges() -> Refusal:
    """More source ranges in the spec than load balancers are for; of the annotation, its entry's `most` says so."""
    why = say("{} ranges are too many", RANGES.size)
    return Refusal("spec.loadBalancerSourceRanges", RANGES.size.above(MOST_RANGES), why, f"at most {MOST_RANGES:,}")


def refused_ranges(when: Term, why: str | Saying, allowed: str) -> Iterator[Refusal]:
    """Source ranges, wherever they are written."""
    yield Refusal("spec.loadBalancerSourceRanges", _IN_SPEC & when, why, allowed)
    yield Refusal("load_balancer_source_ranges", ~_IN_SPEC & RANGES.any & when, why, allowed)


def only_ipv6_ranges(only_ipv4: Term = terms.ALWAYS) -> Iterator[Refusal]:
    """Ranges that no client of a load balancer with only IPv4 addresses has."""
    return refused_ranges(only_ipv4 & ~RANGES.where(~terms.ITEM.matches(".*:.*")).any, *no_client(6, served=4))
