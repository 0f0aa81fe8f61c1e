"""Rule: the load balancers, listeners and addresses of a stack fit into the cloud's quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from policy.checklist.asked import Wanted, every_wanted
from policy.checklist.serving import CLOUDS
from policy.clouds.interface import PolicyCloud
from policy.rules import ADVISORY, LOW, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem, only_known


def problems(stack: Stack) -> Iterator[tuple[Subject | None, Problem]]:
    """What the stack has more of than an account may have by default."""
    services = only_known(every_wanted(stack))
    for cloud in CLOUDS.values():
        quotas = {**cloud.balancers.quotas, **_raised(stack.config, cloud)}
        of_cloud = [each for each in services if each.cloud is cloud]
        kinds = Counter(only_known(partial(_new_kind, each) for each in of_cloud))
        for kind, number in kinds.items():
            yield None, partial(_exceeded, cloud, f"{kind} load balancers", number, quotas.get(kind))
        yield None, partial(_exceeded, cloud, "addresses", _addresses(stack, cloud), quotas.get("addresses"))
        for wanted in of_cloud:
            yield wanted.service, partial(_listeners, wanted, quotas)


def _new_kind(wanted: Wanted) -> str | None:
    """The kind of a load balancer that is made for the Service."""
    if any(name in wanted.texts for name in wanted.cloud.shares):
        return None
    return wanted.cloud.balancers.kind(wanted.asked) or None


def _addresses(stack: Stack, cloud: PolicyCloud) -> int:
    return len(stack.of(*(kind for kind, billed in cloud.meaning.billed.items() if billed.what == "address")))


def _listeners(wanted: Wanted, quotas: Mapping[str, int]) -> str | None:
    kind = wanted.cloud.balancers.kind(wanted.asked)
    quota = quotas.get(f"listeners of {kind}")
    # Where a listener serves both TCP and UDP, there are fewer.
    number = len({port.item["port"] for port in wanted.ports()})
    return _exceeded(wanted.cloud, f"listeners of a {kind} load balancer", number, quota)


def _exceeded(cloud: PolicyCloud, what: str, number: int, quota: int | None) -> str | None:
    if quota is None or number <= quota:
        return None
    return f"{number} {what} are more than the quota of {quota} on {cloud.name}: request a higher one"


def _raised(config: Mapping[str, Any], cloud: PolicyCloud) -> dict[str, int]:
    """The account's own quotas, which the setting names as CLOUD/QUOTA."""
    given: Mapping[str, Any] = config.get("quotas") or {}
    prefix = f"{cloud.name}/"
    return {name.removeprefix(prefix): int(value) for name, value in given.items() if name.startswith(prefix)}


QUOTAS_SUFFICE = StackRule(
    "lb-service-stay-within-quotas",
    problems,
    why=(
        "A load balancer beyond the account's quota is not created, and its Service waits for an address forever. "
        "Higher quotas take days to be granted."
    ),
    level=ADVISORY,
    settings={
        "quotas": {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "default": {},
            "description": (
                "The account's own quotas by name: "
                + ", ".join(f"`{cloud.name}/{name}`" for cloud in CLOUDS.values() for name in cloud.balancers.quotas)
                + "."
            ),
        },
    },
    title="Load balancers stay within quotas",
    severity=LOW,
    lines=["11.4.6"],
    judges=(
        "The numbers of load balancers of each kind that the stack's Services ask for, of elastic IPs that it makes, "
        "and of ports of each Service stay within the cloud's default quotas for a region (as of November 2026). The "
        "setting `quotas` gives the account's own."
    ),
    unseen=(
        "What else counts against the account's quotas: other stacks, load balancers of Ingresses, public addresses "
        "that the cloud gives to load balancers."
    ),
    tags=["network"],
    remedy="Request a higher quota, and give it in the setting `quotas`; or let Services share a load balancer.",
    url=("https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer"),
)
