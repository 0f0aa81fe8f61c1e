"""How many things that cost by the hour a plan has before and after: number and type, no prices. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloud_stacks.effects import SERVICE
from cloud_stacks.outcome import UNKNOWN, Resource
from policy import clouds
from policy.clouds.interface import Billed
from policy.objects import dig

Json = Any


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """A number of one kind and size."""

    what: str
    size: str
    before: int
    after: int


def changes(resources: Iterable[Resource]) -> list[Cost]:
    """What the stack has more or less of."""
    billed = {kind: each for cloud in clouds.descriptors() for kind, each in cloud.meaning.billed.items()}
    before: Counter[tuple[str, str]] = Counter()
    after: Counter[tuple[str, str]] = Counter()
    for resource in resources:
        for inputs, counter, there in (
            (resource.before, before, resource.op != "create"),
            (resource.after, after, resource.op != "delete"),
        ):
            if there and (counted := _counted(resource.type, inputs, billed)):
                what, size, number = counted
                counter[what, size] += number
    kinds = sorted({*before, *after})
    return [Cost(*kind, before[kind], after[kind]) for kind in kinds if before[kind] != after[kind]]


def _counted(kind: str, inputs: Mapping[str, Json], billed: Mapping[str, Billed]) -> tuple[str, str, int] | None:
    if kind == SERVICE:
        is_balanced = dig(inputs, "spec", "type") == "LoadBalancer"
        return ("load balancer", str(dig(inputs, "spec", "loadBalancerClass") or ""), 1) if is_balanced else None
    if (what := billed.get(kind)) is None:
        return None
    number = _at(inputs, what.count) if what.count else 1
    size = _at(inputs, what.size) if what.size else ""
    try:
        counted = int(float(number))
    except (TypeError, ValueError):
        counted = 1
        size = f"{size or ''} (number {number or UNKNOWN})".strip()
    return what.what, str(size or ""), counted


def _at(value: Json, path: Sequence[str | int]) -> Json:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value
