"""Values that carry the resources without which they are useless."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TypeVar, cast

import pulumi

T = TypeVar("T")


def with_what_it_needs(value: pulumi.Output[T], needed: Iterable[pulumi.Resource]) -> pulumi.Output[T]:
    """The value; what uses it is made after `needed`, and is gone before them.

    A subnet is useless without its route, and a role without its policy, but the engine does not know that: a destroy
    would begin with them, and the CCM could no longer delete its load balancers. Unlike a value computed from theirs,
    it stays known in a preview that changes one of them.
    """

    async def together() -> set[pulumi.Resource]:
        return {*await value.resources(), *needed}

    # The SDK's type for the future of a value that may not be known yet is wider than what its own Output takes.
    future = cast("Awaitable[T]", value.future())
    return pulumi.Output(together(), future, value.is_known(), value.is_secret())
