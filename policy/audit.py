"""What rules about the audit of a cloud's API share: a stack with a cluster has a trail without a flaw."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial

from policy.rules import Stack
from policy.subjects import Subject
from policy.unknowns import Problem


def audited(
    stack: Stack, cloud: str, option: str, clusters: Collection[str], trail: str, flaw: Callable[[Subject], str | None]
) -> Iterator[tuple[Subject | None, Problem]]:
    """That a stack with one of `clusters` lacks a trail, and what is wrong with those that it has.

    `clusters` and `trail`: Pulumi's types; `option`: the stack's setting that makes a trail.
    """
    if not stack.of(*clusters):
        stack.not_applicable(f"the stack makes no cluster on {cloud}")
    trails = stack.of(trail)
    if not trails and not stack.config.get("trail"):
        yield (
            None,
            lambda: (
                f"no trail records the calls of {cloud}'s API: set {option} in the stack's config, or name the trail "
                "of the account or organization in setting `trail`"
            ),
        )
    for each in trails:
        yield each, partial(flaw, each)
