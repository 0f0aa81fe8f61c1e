"""Distributes a load balancer's rules over its security groups. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Literal

MOST_RULES = 60
"""The most ingress rules in a security group (AWS's default quota; each CIDR and port range counts)."""

MOST_GROUPS = 5
"""The most security groups of a load balancer."""

Change = tuple[Literal["add", "remove"], frozenset[str]]


def distributed(current: Sequence[Set[str]], wanted: Set[str], most: int = MOST_RULES) -> list[frozenset[str]]:
    """The rules of each group, in as few groups as possible; rules stay in their group if they can."""
    groups: list[set[str]] = []
    placed: set[str] = set()
    for index in range(max(1, math.ceil(len(wanted) / most))):
        present = current[index] if index < len(current) else frozenset()
        kept = sorted((present & wanted) - placed)[:most]
        groups.append(set(kept))
        placed.update(kept)
    rest = sorted(wanted - placed)
    for group in groups:
        room = most - len(group)
        group.update(rest[:room])
        rest = rest[room:]
    return [frozenset(group) for group in groups]


def changes(current: Set[str], wanted: Set[str], most: int = MOST_RULES) -> list[Change]:
    """The changes of a group's rules: additions first if the quota has room, so that no client is locked out
    meanwhile."""
    added, removed = frozenset(wanted - current), frozenset(current - wanted)
    add: list[Change] = [("add", added)] if added else []
    remove: list[Change] = [("remove", removed)] if removed else []
    return [*add, *remove] if len(current) + len(added) <= most else [*remove, *add]
