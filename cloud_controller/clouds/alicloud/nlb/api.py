"""What the modules of NLB need of the client and of the cloud config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class Api(Protocol):
    """See `Client`."""

    def call(self, product: str, action: str, parameters: Mapping[str, Any]) -> dict[str, Any]: ...
    def pages(
        self, product: str, action: str, parameters: Mapping[str, Any], path: str
    ) -> Iterable[dict[str, Any]]: ...


class Place(Protocol):
    """The cluster, and the VPC where its load balancers are."""

    @property
    def cluster_id(self) -> str: ...
    @property
    def vpc_id(self) -> str: ...
