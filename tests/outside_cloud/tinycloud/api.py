"""tinycloud's API: accounts in this process's memory. A real cloud's package has its SDK instead."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from cloud_controller.load_balancers.model import Ingress, LoadBalancerModel, LoadBalancerState, ObservedLoadBalancer

PAGE = 100


class Refused(Exception):
    """The API's answer to a request that it does not carry out. `retry_after`: seconds, if it is throttling."""

    def __init__(self, code: str, retry_after: float = 1.0) -> None:
        super().__init__(code)
        self.code = code
        self.retry_after = retry_after


class NoAnswer(Exception):
    """The connection broke: the request may have been carried out."""


@dataclass
class Account:
    """All load balancers by ID, and the tokens with which they were created."""

    load_balancers: dict[str, ObservedLoadBalancer] = field(default_factory=dict)
    quota: int = 1000
    page: int = PAGE
    unlisted: set[str] | None = None
    """IDs that lists do not show yet; None: lists do not lag."""
    _tokens: dict[str, str] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def list_load_balancers(
        self, tags: Collection[tuple[str, str]], cursor: str
    ) -> tuple[list[ObservedLoadBalancer], str]:
        """A page of those with these tags, and the cursor of the next page ("" after the last one)."""
        found = sorted(self.load_balancers.values(), key=lambda lb: lb.created_at)
        found = [lb for lb in found if {*tags} <= lb.model.tags.items() and lb.id not in (self.unlisted or ())]
        later = [lb for lb in found if lb.created_at > cursor]
        return later[: self.page], later[self.page - 1].created_at if len(later) > self.page else ""

    def get_load_balancer(self, id: str) -> ObservedLoadBalancer:
        """One by its ID; lists may lag behind it."""
        if id not in self.load_balancers:
            raise Refused("NoSuchLoadBalancer")
        return self.load_balancers[id]

    def create_load_balancer(self, model: LoadBalancerModel, token: str) -> ObservedLoadBalancer:
        """Create it, or return the one that was created with this token."""
        if (made := self.load_balancers.get(self._tokens.get(token, ""))) is not None:
            return made
        if len(self.load_balancers) >= self.quota:
            raise Refused("TooMany")
        number = next(self._numbers)
        ingress = (Ingress(ip=f"192.0.2.{number % 256}"),)
        made = ObservedLoadBalancer(f"lb-{number}", LoadBalancerState.READY, model, ingress, created_at=f"{number:09}")
        self.load_balancers[made.id], self._tokens[token] = made, made.id
        if self.unlisted is not None:
            self.unlisted.add(made.id)
        return made

    def put_load_balancer(self, id: str, model: LoadBalancerModel) -> None:
        """Make it exactly this, at once."""
        self.load_balancers[id] = replace(self.get_load_balancer(id), model=model)

    def delete_load_balancer(self, id: str) -> None:
        """Delete it at once."""
        self.get_load_balancer(id)
        del self.load_balancers[id]


ACCOUNT = Account()
"""The one of every cloud config."""
