"""The shared context of mycloud's endpoints, and the query of every list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Annotated, Protocol

from fastapi import Depends, Query, Request
from pydantic import Field

from local.addresses import AddressBlock
from local.mycloud.balancer_board import BalancerBoard
from local.mycloud.calls import Calls
from local.mycloud.consistency import Consistency
from local.mycloud.errors import InvalidParameter
from local.mycloud.faults import Faults
from local.mycloud.filters import Filter
from local.mycloud.models.common import MAX_PAGE, State, Strict
from local.mycloud.models.compute import Cluster
from local.mycloud.store import Store


class Kubeconfigs(Protocol):
    """Issues credentials of clusters; implemented by the lifecycle's machinery."""

    def kubeconfig(self, cluster: Cluster, ttl: timedelta) -> str:
        """A cluster-admin kubeconfig (YAML, a secret) that expires after `ttl`."""
        ...


@dataclass(frozen=True)
class Context:
    """One site's API. `first_port`: the lowest port that a load balancer may listen on.

    `is_healthy`: whether the lifecycle and its workers run.
    """

    block: AddressBlock
    store: Store
    token: str
    kubeconfigs: Kubeconfigs
    first_port: int = 1
    is_healthy: Callable[[], bool] = lambda: True
    board: BalancerBoard = field(default_factory=BalancerBoard)
    faults: Faults = field(default_factory=Faults)
    consistency: Consistency = field(default_factory=Consistency)
    calls: Calls = field(default_factory=Calls)


def _context(request: Request) -> Context:
    context = request.app.state.context
    assert isinstance(context, Context)
    return context


Ctx = Annotated[Context, Depends(_context)]


class ListQuery(Strict):
    """The query of every collection.

    `ids` and `names` are comma-separated; `tag` and `any_tag` are `key=value`, repeatable.
    """

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = MAX_PAGE
    cursor: str | None = None
    ids: str | None = None
    name: str | None = None
    names: str | None = None
    tag: Annotated[list[str], Field(default_factory=list)]
    any_tag: Annotated[list[str], Field(default_factory=list)]
    state: State | None = None
    network_id: str | None = None
    subnet_id: str | None = None
    cluster_id: str | None = None
    zone: str | None = None
    machine_id: str | None = None

    def filter(self) -> Filter:
        """The query in the store's form; raises `InvalidParameter`."""
        return Filter(
            ids=_several("ids", self.ids),
            name=self.name,
            names=_several("names", self.names),
            tags=_tags("tag", self.tag),
            any_tags=_tags("any_tag", self.any_tag),
            states=None if self.state is None else [self.state.value],
            network_id=self.network_id,
            subnet_id=self.subnet_id,
            cluster_id=self.cluster_id,
            zone=self.zone,
            machine_id=self.machine_id,
        )


def _several(field: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    values = [each for each in text.split(",") if each]
    if len(values) > MAX_PAGE:
        raise InvalidParameter(f"{len(values)} {field} exceed the maximum", field=field, allowed=f"at most {MAX_PAGE}")
    return values


def _tags(field: str, texts: list[str]) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator:
            raise InvalidParameter(f"{text!r} is not a tag filter", field=field, allowed="KEY=VALUE")
        pairs.append((key, value))
    return pairs


@dataclass(frozen=True, slots=True)
class ListedPage:
    """The requested page and the requested objects."""

    wanted: Filter
    limit: int
    cursor: str | None


def _listing(context: Ctx, query: Annotated[ListQuery, Query()]) -> ListedPage:
    wanted = replace(query.filter(), created_until=context.consistency.horizon())
    return ListedPage(wanted, query.limit, query.cursor)


Listing = Annotated[ListedPage, Depends(_listing)]
