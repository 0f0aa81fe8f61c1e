"""Providers for a real server of dynamic providers, which unpickles them by reference."""

from __future__ import annotations

from typing import Any

from components.cluster_plan import NotConverged
from components.dynamic_provider import DynamicProvider


class Refusing(DynamicProvider):
    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        try:
            raise KeyError("a reason")
        except KeyError as error:
            raise NotConverged("objects would stay: default/shop.\nDelete them first") from error


class Broken(DynamicProvider):
    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        raise KeyError("services")
