"""Which of a load balancer's security groups holds which rule, and by which changes: pure."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Literal

MOST_RULES = 60
"""Ingress rules that a security group may have (AWS's default quota; each range of clients counts)."""

MOST_GROUPS = 5
"""Security groups that a load balancer may be in."""

Change = tuple[Literal["add", "remove"], frozenset[str]]


def distributed(current: Sequence[Set[str]], wanted: Set[str], most: int = MOST_RULES) -> list[frozenset[str]]:
    """The rules of each group, as few groups as hold them all; a rule stays where it is, if it can."""
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
    """The calls that a group needs: additions first, so that no client is shut out meanwhile, if there is room."""
    added, removed = frozenset(wanted - current), frozenset(current - wanted)
    add: list[Change] = [("add", added)] if added else []
    remove: list[Change] = [("remove", removed)] if removed else []
    return [*add, *remove] if len(current) + len(added) <= most else [*remove, *add]
