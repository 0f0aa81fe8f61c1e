"""The dynamic resource ServiceAddress on mycloud's real API, with the daemon's controller and a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pulumi.dynamic.config import Config
from pulumi.dynamic.dynamic import serialize_provider

from cloud_controller.controllers.service.address_changes import ANNOTATION, OPTION, AddressChanges
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.plan import Action
from components import service_address, service_plan
from components.cluster_plan import NotConverged
from components.placeholder import PLACEHOLDER
from components.service_address import ServiceAddressProvider
from local.plugins.dynamic import DynamicChecks, DynamicServer
from local.plugins.provider import DiffRequest
from local.plugins.values import UNKNOWN
from tests.cloud_controller.clouds.conftest import MyCloudSite
from tests.cloud_controller.clouds.mycloud.services import SCHEME, only
from tests.cloud_controller.cluster import WEB
from tests.cloud_controller.load_balancing import Running, changed
from tests.components.clouds.mycloud.conftest import Serve, world

ROOT = Path(__file__).parents[4]
ACKNOWLEDGE = f"{OPTION}=acknowledge"
INTERNAL = {SCHEME: "internal"}


def provider(token: str = "t") -> ServiceAddressProvider:
    """A configured provider, as the plugin has it."""
    made = ServiceAddressProvider()
    config = {"p:mycloud": '{"endpoint": "http://127.16.0.1:7070"}', "p:mycloudToken": token}
    request: Any = SimpleNamespace(config=Config(config, "p"))
    made.configure(request)
    return made


def inputs(annotations: dict[str, str] | None = None, *arguments: str, **more: Any) -> dict[str, Any]:
    return {
        "cloud": "mycloud",
        "cluster_id": "c-1",
        "network_id": "net-1",
        "service": WEB,
        "annotations": annotations or {},
        "arguments": [*arguments],
        **more,
    }


def change(running: Running, annotations: dict[str, str]) -> Action:
    """The change of the address that an update to these annotations would be."""
    after = {"metadata": {"annotations": annotations}}
    service = service_plan.updated(running.cluster.service(), {}, after)
    found = service_plan.address_change(world(running), service, ServiceOptions())
    assert found is not None
    return found


def test_a_preview_finds_the_change_with_the_digest_that_the_daemon_asks_for(running: Running) -> None:
    found = change(running, INTERNAL)

    changed(running.cluster, INTERNAL)
    (held,) = running.plan(address_changes=AddressChanges.ACKNOWLEDGE).held
    assert (found.held, [*map(str, found.changes)]) == (held.held, ["scheme: internet-facing -> internal"])


def test_an_acknowledged_change_is_found_as_well(running: Running) -> None:
    digest = change(running, INTERNAL).held or ""

    assert change(running, {**INTERNAL, ANNOTATION: digest}).held == digest


def test_the_way_back_has_another_digest(running: Running) -> None:
    there = change(running, INTERNAL).held
    changed(running.cluster, INTERNAL)
    running.settle()

    assert change(running, {SCHEME: "internet-facing"}).held != there


def test_a_change_in_place_keeps_the_address(running: Running) -> None:
    service = service_plan.updated(running.cluster.service(), {}, {"spec": {"ports": [{"port": 8080}, {"port": 81}]}})

    assert service_plan.address_change(world(running), service, ServiceOptions()) is None


def test_an_update_waits_for_the_new_address(running: Running, site: MyCloudSite) -> None:
    made: Any = provider().create(inputs()).outs
    old = made["address"]
    changed(running.cluster, INTERNAL)

    assert provider().diff(WEB, made, inputs(INTERNAL)).changes
    outputs: Any = provider().update(WEB, made, inputs(INTERNAL)).outs

    assert outputs["address"] == only(site.load_balancers())["address"] != old
    assert not provider().diff(WEB, outputs, inputs(INTERNAL)).changes
    refreshed: Any = provider().read(WEB, outputs)
    assert refreshed.outs == outputs
    assert not provider().diff(WEB, refreshed.outs, inputs(INTERNAL)).changes


def test_an_address_that_a_change_in_place_takes_away_is_awaited() -> None:
    internal = {"service.beta.kubernetes.io/openstack-internal-load-balancer": "true"}
    before, after = inputs(cloud="openstack"), inputs(internal, cloud="openstack")

    assert ServiceAddressProvider().diff(WEB, before, after).changes


def test_a_change_that_the_daemon_holds_is_not_awaited(serve: Serve) -> None:
    running = serve(address_changes=AddressChanges.ACKNOWLEDGE)
    made: Any = provider().create(inputs()).outs
    changed(running.cluster, INTERNAL)

    outputs: Any = provider().update(WEB, made, inputs(INTERNAL, ACKNOWLEDGE)).outs

    assert outputs["address"] == made["address"]


def test_a_later_acknowledgement_alone_is_awaited_too(running: Running, site: MyCloudSite) -> None:
    old = inputs(INTERNAL, ACKNOWLEDGE, address=running.cluster.ingress[0]["ip"])
    acknowledged = {**INTERNAL, ANNOTATION: change(running, INTERNAL).held or ""}
    changed(running.cluster, acknowledged)

    assert provider().diff(WEB, old, inputs(acknowledged, ACKNOWLEDGE)).changes
    outputs: Any = provider().update(WEB, old, inputs(acknowledged, ACKNOWLEDGE)).outs

    assert outputs["address"] == only(site.load_balancers())["address"] != old["address"]


def test_an_address_that_others_changed_is_a_difference(running: Running) -> None:
    made: Any = provider().create(inputs()).outs
    changed(running.cluster, INTERNAL)
    running.settle()

    assert provider().diff(WEB, made, inputs()).changes
    outputs: Any = provider().update(WEB, made, inputs()).outs

    assert outputs["address"] == running.cluster.ingress[0]["ip"] != made["address"]


@pytest.mark.usefixtures("running")
def test_a_preview_without_secrets_finds_no_difference() -> None:
    assert not provider(PLACEHOLDER).diff(WEB, inputs(address="192.0.2.1"), inputs()).changes


def test_a_service_that_is_gone_is_gone_after_a_refresh(running: Running) -> None:
    del running.cluster.objects["services"][WEB]

    gone: Any = provider().read(WEB, inputs(address="192.0.2.1"))

    assert gone.id is None


def test_a_wait_ends_with_what_is_missing(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_address, "DEADLINE", 0.0)
    monkeypatch.setattr("components.service_plan.sleep", lambda _: None)
    changed(running.cluster, INTERNAL)

    with pytest.raises(NotConverged, match=r"default/web has no new address after 0 s; still to do: .*load balancer"):
        provider().update(WEB, inputs(), inputs(INTERNAL))


@pytest.mark.usefixtures("running")
def test_another_service_or_cluster_is_another_resource() -> None:
    found = provider().diff(WEB, inputs(), inputs(service="default/echo", cluster_id="c-2"))

    assert found.replaces == ["cluster_id", "service"]


def test_what_is_not_known_yet_or_secret_stays_as_it_is() -> None:
    live = {
        "metadata": {"annotations": {"a": "1", "b": "2", "ours": "x"}},
        "spec": {"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30080}], "clusterIP": "10.0.0.1"},
    }
    before = {"metadata": {"annotations": {"a": "1", "b": "2"}}}
    unknown: Callable[[], object] = object
    after = {
        "metadata": {"annotations": {"a": unknown()}},
        "spec": {"ports": [{"port": 80}, {"port": 443}], "selector": {"app": unknown()}},
    }

    found = service_plan.updated(live, before, after)

    assert found["metadata"]["annotations"] == {"a": "1", "ours": "x"}
    assert [each["nodePort"] for each in found["spec"]["ports"]] == [30080, 30000]
    assert (found["spec"]["clusterIP"], found["spec"].get("selector")) == ("10.0.0.1", None)


def test_the_provider_is_pickled_without_its_config() -> None:
    assert "mycloudToken" not in serialize_provider(provider())


@pytest.mark.integration
def test_the_real_plugin_sees_that_an_annotation_may_move_the_address() -> None:
    urn = "urn:pulumi:s::cloud-controller::pulumi-python:dynamic/cloudcontroller:ServiceAddress::web"
    plugin = serialize_provider(ServiceAddressProvider())
    config = {"cloud-controller:mycloud": "{}", "cloud-controller:mycloudToken": PLACEHOLDER}
    server = DynamicServer(ROOT, "cloud-controller", lambda _: None)
    try:
        made = DynamicChecks(server, config)
        olds = {**inputs(), "__provider": plugin}

        def changes(annotations: dict[str, Any]) -> bool | None:
            news = {**inputs(annotations), "__provider": plugin}
            outputs = {**olds, "address": "192.0.2.1"}
            request = DiffRequest(urn=urn, id=WEB, old_inputs=olds, old_outputs=outputs, news=news, ignore_changes=())
            return made.diff(request).changed

        found = [changes(each) for each in ({}, INTERNAL, {SCHEME: UNKNOWN})]
    finally:
        server.close()

    assert found == [False, True, False]
