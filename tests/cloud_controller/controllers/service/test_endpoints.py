"""Which EndpointSlices a Service has, as they come and go."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from cloud_controller.controllers.service.endpoints import ServiceEndpoints, by_service
from cloud_controller.kube import ENDPOINT_SLICES, Object, name
from tests.fake_kubernetes import FakeKubernetes


def endpoint_slice(called: str, service: str | None = "web") -> Object:
    labels = {"kubernetes.io/service-name": service} if service else {}
    return {"metadata": {"namespace": "default", "name": called, "labels": labels}}


@pytest.fixture
def api() -> FakeKubernetes:
    return FakeKubernetes()


@pytest.fixture
def changed() -> list[str]:
    return []


@pytest.fixture
def known(api: FakeKubernetes, changed: list[str]) -> ServiceEndpoints:
    return ServiceEndpoints(api.informer(ENDPOINT_SLICES), changed.append)


def names(slices: Iterable[Object]) -> list[str]:
    return [name(each) for each in slices]


def test_a_service_has_all_its_slices_in_a_stable_order(
    api: FakeKubernetes, known: ServiceEndpoints, changed: list[str]
) -> None:
    api.put(ENDPOINT_SLICES, endpoint_slice("web-b"), endpoint_slice("web-a"))

    assert names(known.get("default/web")) == ["web-a", "web-b"]
    assert changed == ["default/web", "default/web"]


def test_a_slice_that_is_gone_is_forgotten(api: FakeKubernetes, known: ServiceEndpoints) -> None:
    api.put(ENDPOINT_SLICES, endpoint_slice("web-a"))
    api.remove(ENDPOINT_SLICES, "default/web-a")

    assert known.get("default/web") == ()


def test_a_slice_that_changes_its_service_concerns_both(
    api: FakeKubernetes, known: ServiceEndpoints, changed: list[str]
) -> None:
    api.put(ENDPOINT_SLICES, endpoint_slice("x"))
    changed.clear()

    api.put(ENDPOINT_SLICES, endpoint_slice("x", "dns"))

    assert (names(known.get("default/web")), names(known.get("default/dns"))) == ([], ["x"])
    assert set(changed) == {"default/web", "default/dns"}


@pytest.mark.usefixtures("known")
def test_slices_of_no_service_concern_nobody(api: FakeKubernetes, changed: list[str]) -> None:
    api.put(ENDPOINT_SLICES, endpoint_slice("x", None))

    assert changed == []
    assert by_service([endpoint_slice("x", None), endpoint_slice("y")]) == {"default/web": [endpoint_slice("y")]}
