"""Which EndpointSlices a Service has, as they come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloud_controller.controllers.service.endpoints import ServiceEndpoints, by_service
from cloud_controller.kube import EventType, Object


class Slices:
    def add_handler(self, handler: Callable[[EventType, Object | None, Object | None], None]) -> None:
        self.tell = handler


def endpoint_slice(name: str, service: str | None = "web") -> Object:
    labels = {"kubernetes.io/service-name": service} if service else {}
    return {"metadata": {"namespace": "default", "name": name, "labels": labels}}


@pytest.fixture
def slices() -> Slices:
    return Slices()


@pytest.fixture
def changed() -> list[str]:
    return []


@pytest.fixture
def known(slices: Any, changed: list[str]) -> ServiceEndpoints:
    return ServiceEndpoints(slices, changed.append)


def test_a_service_has_all_its_slices_in_a_stable_order(
    slices: Slices, known: ServiceEndpoints, changed: list[str]
) -> None:
    for name in ("web-b", "web-a"):
        slices.tell(EventType.ADDED, None, endpoint_slice(name))

    assert known.get("default/web") == (endpoint_slice("web-a"), endpoint_slice("web-b"))
    assert changed == ["default/web", "default/web"]


def test_a_slice_that_is_gone_is_forgotten(slices: Slices, known: ServiceEndpoints) -> None:
    slices.tell(EventType.ADDED, None, endpoint_slice("web-a"))
    slices.tell(EventType.DELETED, endpoint_slice("web-a"), None)

    assert known.get("default/web") == ()


def test_a_slice_that_changes_its_service_concerns_both(
    slices: Slices, known: ServiceEndpoints, changed: list[str]
) -> None:
    slices.tell(EventType.ADDED, None, endpoint_slice("x"))
    changed.clear()

    slices.tell(EventType.MODIFIED, endpoint_slice("x"), endpoint_slice("x", "dns"))

    assert (known.get("default/web"), known.get("default/dns")) == ((), (endpoint_slice("x", "dns"),))
    assert set(changed) == {"default/web", "default/dns"}


@pytest.mark.usefixtures("known")
def test_slices_of_no_service_concern_nobody(slices: Slices, changed: list[str]) -> None:
    slices.tell(EventType.ADDED, None, endpoint_slice("x", None))

    assert changed == []
    assert by_service([endpoint_slice("x", None), endpoint_slice("y")]) == {"default/web": [endpoint_slice("y")]}
