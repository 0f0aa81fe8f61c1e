"""Hundreds of Services with mistakes beside good ones on a real API server: owners are told, the good serve."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from cloud_controller.clouds.mycloud.annotations import CATALOGUE, INGRESS_NODE
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.kube import EVENTS, NAMESPACES, NODES, SERVICES, Kube, Object, PatchType
from cloud_controller.load_balancers.sharing import SHARED_WITH_TAG
from tests.cloud_controller.clouds.mycloud.bad_services import Wrong, some_mistakes
from tests.cloud_controller.clouds.mycloud.running_controller import Running, eventually

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

pytestmark = pytest.mark.control_plane

MISTAKES = 200
GOOD = 20
SPACE = "bad-input"
LONGEST = 1024
"""Bytes of an event's message."""


def create(kube: Kube, service: Object) -> None:
    service["metadata"]["namespace"] = SPACE
    kube.create(SERVICES, service)


def warnings(kube: Kube) -> dict[str, list[str]]:
    """Messages of the failures, by Service."""
    found: dict[str, list[str]] = {}
    for event in kube.list(EVENTS, SPACE).items:
        if event["reason"] == "SyncLoadBalancerFailed":
            assert event["type"] == "Warning"
            found.setdefault(event["involvedObject"]["name"], []).append(event["message"])
    return found


def serving(kube: Kube) -> set[str]:
    """The Services that have an address."""
    services = kube.list(SERVICES, SPACE).items
    return {each["metadata"]["name"] for each in services if each["status"]["loadBalancer"].get("ingress")}


@pytest.mark.timeout(600)
def test_two_hundred_wrong_services_are_told_and_the_good_ones_serve(kube: Kube, site: MyCloudSite) -> None:
    machine = site.machine("bad-input-node")
    kube.create(NAMESPACES, {"metadata": {"name": SPACE}})
    node = {
        "metadata": {"name": machine["name"], "annotations": {INGRESS_NODE: "true"}},
        "spec": {"providerID": provider_id(machine)},
    }
    kube.create(NODES, node)
    addresses = [{"type": "InternalIP", "address": machine["private_ips"][0]}]
    kube.patch(
        NODES, machine["name"], {"status": {"addresses": addresses}}, type=PatchType.STRATEGIC, subresource="status"
    )
    body = {"name": "edge", "network_id": site.network["id"], "tags": {SHARED_WITH_TAG: "any"}}
    edge = site.client.create("load_balancers", body)["id"]
    site.settle()
    share = {CATALOGUE.by_argument["id"].name: edge}
    wrong = {f"wrong-{number:03}": mistake for number, mistake in enumerate(some_mistakes(MISTAKES))}
    good = {f"good-{number:02}": Wrong((), port={"port": 9000 + number}) for number in range(GOOD - 1)}
    first_of_two = Wrong((), share, port={"port": 7000})
    second_of_two = Wrong(("spec.ports[0].port", f"{SPACE}/good-shared", "free"), share, port={"port": 7000})

    with Running(kube, site):
        create(kube, first_of_two.service("good-shared"))
        good["good-shared"] = first_of_two
        eventually(site, lambda: serving(kube) == {"good-shared"})
        wrong["wrong-shared"] = second_of_two
        with ThreadPoolExecutor(8) as pool:
            services = [mistake.service(name) for name, mistake in {**wrong, **good}.items() if name != "good-shared"]
            # Every one of them is let in: what is asserted below is about all.
            [*pool.map(lambda service: create(kube, service), services)]

        eventually(site, lambda: serving(kube) == good.keys() and warnings(kube).keys() == wrong.keys(), seconds=240)

        told = warnings(kube)
        for name, mistake in wrong.items():
            assert any(all(words in message for words in mistake.told) for message in told[name]), (mistake, told[name])
            assert all(len(message.encode()) <= LONGEST for message in told[name])
        names = sorted(lb["name"] for lb in site.load_balancers())
        assert names == sorted(
            ["edge", *(f"{site.cluster['id']}-{SPACE}-{name}" for name in good if name != "good-shared")]
        )

        # None of them is stuck.
        with ThreadPoolExecutor(8) as pool:
            [*pool.map(lambda name: kube.delete(SERVICES, name, SPACE), [*wrong, *good])]
        eventually(site, lambda: not kube.list(SERVICES, SPACE).items and len(site.load_balancers()) == 1, seconds=240)
    assert site.load_balancers()[0]["listeners"] == []
    kube.delete(NODES, machine["name"])
    kube.delete(NAMESPACES, SPACE)
