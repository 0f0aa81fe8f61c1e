"""Rule: Services do not claim the same port of one load balancer, nor the same address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import combinations

from cloud_controller.load_balancers.annotation import Annotation, Value
from policy.checklist.asked import Wanted, every_wanted
from policy.objects import object_name
from policy.rules import ADVISORY, HIGH, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem, only_known


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Each pair of Services that can't both have what they ask for."""
    for one, other in combinations(only_known(every_wanted(stack)), 2):
        if one.cloud is other.cloud:
            yield other.service, partial(_ports, one, other)
            for entry in one.cloud.catalogue:
                if entry.exclusive and one.service.cluster == other.service.cluster:
                    yield other.service, partial(_exclusive, one, other, entry)


def _ports(one: Wanted, other: Wanted) -> str | None:
    named = _shared(one)
    if not named or named != _shared(other):
        return None
    both = sorted({*_keys(one)} & {*_keys(other)})
    if not both:
        return None
    return f"{', '.join(both)} of the shared load balancer is also a port of Service {object_name(one.service.props)}"


def _shared(wanted: Wanted) -> str | None:
    """The ID of an existing load balancer that it uses."""
    names = [name for name in wanted.cloud.shares if name in wanted.texts]
    return wanted.texts[names[0]].strip() if names else None


def _keys(wanted: Wanted) -> list[str]:
    return [f"{port.item['protocol']} {port.item['port']}" for port in wanted.ports()]


def _exclusive(one: Wanted, other: Wanted, entry: Annotation) -> str | None:
    """What only one load balancer at a time can have, such as an elastic IP."""
    if not {*_claimed(one.asked.settings.given, entry)} & {*_claimed(other.asked.settings.given, entry)}:
        return None
    return f"annotation {entry.name} claims what Service {object_name(one.service.props)} claims too"


def _claimed(given: Mapping[str, Value], entry: Annotation) -> Iterator[str]:
    value = given.get(entry.argument)
    words = value if isinstance(value, tuple) else () if value is None else (str(value),)
    for word in words:
        # A word of zone-maps: ZONE:VSWITCH:ADDRESS:EIP.
        yield from filter(None, map(str.strip, word.split(":")[2:] if ":" in word else [word]))


SHARED_PORTS_ARE_FREE = StackRule(
    "lb-service-share-without-clash",
    problems,
    why=(
        "Services may share a load balancer, but not a port of it, and an elastic IP, a private address or a name "
        "belongs to one load balancer at a time. The controller refuses the second Service, which then has no address."
    ),
    level=ADVISORY,
    title="Shared load balancers have no clashes",
    severity=HIGH,
    sections="4.3, 5.3",
    judges=(
        "Two Services whose annotation names the same existing load balancer have no port in common, where TCP and UDP "
        "count apart. Two Services of one cluster do not both claim the same value of an annotation that the cloud's "
        "catalogue calls exclusive: elastic IPs, private addresses, names of load balancers."
    ),
    unseen=(
        "Services of other stacks; ports that a load balancer's owner serves; an ID that is known only after the "
        "update."
    ),
    tags=["network"],
    remedy="Give the Services different ports, or the second one another load balancer or address.",
    url="https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer",
)
