"""Changes of an address that wait for an acknowledgement, on mycloud's real API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controllers.service.address_changes import ANNOTATION, CONDITION, AddressChanges
from cloud_controller.controllers.service.controller import NODES_CHANGED, ServiceOptions
from tests.cloud_controller.clouds.mycloud.services import MAX_QPS, SCHEME, members, named, only, put_node, web
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, changed, endpoint, endpoint_slice, port, served

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import Json, MyCloudSite

ACKNOWLEDGE = ServiceOptions(address_changes=AddressChanges.ACKNOWLEDGE)


@pytest.fixture
def cluster(site: MyCloudSite) -> Cluster:
    """Two workers, both ingress nodes, and no Service."""
    cluster = Cluster()
    put_node(cluster, site.machine("worker-0"), ingress=True)
    put_node(cluster, site.machine("worker-1"), ingress=True)
    return cluster


def condition(cluster: Cluster) -> dict[str, Any] | None:
    found = [each for each in cluster.service()["status"].get("conditions") or [] if each["type"] == CONDITION]
    return found[0] if found else None


def digest(running: Running) -> str:
    """The digest of the only held change."""
    (held,) = running.plan(address_changes=AddressChanges.ACKNOWLEDGE).held
    assert held.held and held.acknowledgement == f'{ANNOTATION}: "{held.held}"'
    return held.held


def with_held_change(site: MyCloudSite, cluster: Cluster) -> tuple[Running, Json]:
    """A controller of a Service that asked for another address, and the load balancer that it had before."""
    running = served(site, cluster, web(), options=ACKNOWLEDGE)
    old = only(site.load_balancers())
    changed(cluster, {SCHEME: "internal"})
    return running.settle(), old


def test_a_change_of_the_address_is_held_and_says_why(site: MyCloudSite, cluster: Cluster) -> None:
    running, old = with_held_change(site, cluster)

    assert only(site.load_balancers())["id"] == old["id"]
    assert cluster.ingress[0]["ip"] == old["address"]
    held = condition(cluster)
    assert held is not None and (held["status"], held["reason"]) == ("True", "AddressChangeHeld")
    message = (
        f"The Service keeps load balancer {old['id']} and its address {old['address']}, which would change: scheme:"
        f' internet-facing -> internal. To let that happen once, set annotation {ANNOTATION}: "{digest(running)}". To'
        " keep the address, undo the change."
    )
    assert held["message"] == message
    assert cluster.events[-1] == ("AddressChangeHeld", message)
    running.settle()
    assert cluster.reasons.count("AddressChangeHeld") == 1
    assert not running.calls.writes


def test_everything_else_goes_on_while_a_change_is_held(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web(), options=ACKNOWLEDGE)
    old = only(site.load_balancers())

    changed(cluster, {SCHEME: "internal", MAX_QPS: "7"}, ports=[port(8080), port(8443)])
    del cluster.objects["nodes"]["worker-1"]
    running.handle(NODES_CHANGED)
    running.settle()

    lb = only(site.load_balancers())
    assert (lb["id"], lb["scheme"], lb["address"]) == (old["id"], "internet-facing", old["address"])
    assert [(each["port"], each["max_qps"]) for each in lb["listeners"]] == [(8080, 7), (8443, 7)]
    assert {each.partition(":")[0] for each in members(lb)} == {cluster.address("worker-0")}


def test_the_acknowledgement_lets_the_change_happen(site: MyCloudSite, cluster: Cluster) -> None:
    running, old = with_held_change(site, cluster)

    changed(cluster, {ANNOTATION: digest(running)})
    running.handle()
    assert cluster.ingress[0]["ip"] == old["address"], "traffic stays until the new one serves"
    running.settle()

    new = only(site.load_balancers())
    assert (new["scheme"], new["id"] != old["id"]) == ("internal", True)
    assert cluster.ingress[0]["ip"] == new["address"]
    assert condition(cluster) is None
    done = f"address changed {old['address']} -> {new['address']}; load balancer {old['id']} deleted"
    assert cluster.events[-1] == ("EnsuredLoadBalancer", f"Ensured load balancer: {done}")


def test_a_commit_may_carry_the_change_and_its_acknowledgement(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web(), options=ACKNOWLEDGE)
    old = only(site.load_balancers())
    cluster.service()["metadata"]["annotations"] = {SCHEME: "internal"}
    foreseen = digest(running)

    cluster.service()["metadata"]["annotations"] = {SCHEME: "internal", ANNOTATION: foreseen}
    running.settle()

    assert only(site.load_balancers())["id"] != old["id"]
    assert "AddressChangeHeld" not in cluster.reasons


def test_a_change_that_is_undone_leaves_nothing(site: MyCloudSite, cluster: Cluster) -> None:
    running, old = with_held_change(site, cluster)

    changed(cluster, {SCHEME: "internet-facing"})
    running.settle()

    assert only(site.load_balancers())["id"] == old["id"]
    assert condition(cluster) is None
    assert not running.plan(address_changes=AddressChanges.ACKNOWLEDGE).changes


def test_a_service_that_names_another_load_balancer_keeps_its_own(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web(None, port(9090), name="other"))
    running = served(site, cluster, web(), options=ACKNOWLEDGE)
    other = next(lb for lb in site.load_balancers() if lb["name"].endswith("other"))
    own = next(lb for lb in site.load_balancers() if lb["id"] != other["id"])

    changed(cluster, named(id=other["id"]), ports=[port(8080), port(8443)])
    running.settle()
    assert cluster.ingress[0]["ip"] == own["address"]
    kept = next(lb for lb in site.load_balancers() if lb["id"] == own["id"])
    assert [each["port"] for each in kept["listeners"]] == [8080, 8443]
    changed(cluster, {ANNOTATION: digest(running)})
    running.settle()

    assert only(site.load_balancers())["id"] == other["id"]
    assert cluster.ingress[0]["ip"] == other["address"]
    back = cluster.service()["metadata"]["annotations"]
    cluster.service()["metadata"]["annotations"] = {ANNOTATION: back[ANNOTATION]}
    running.settle()
    assert only(site.load_balancers())["id"] == other["id"], "the way back needs an acknowledgement too"
    changed(cluster, {ANNOTATION: digest(running)})
    running.settle()
    assert cluster.ingress[0]["ip"] != other["address"]


def test_a_gauge_counts_the_services_that_need_attention_by_reason(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web(), options=ACKNOWLEDGE)
    cluster.put(web({MAX_QPS: "many"}, name="refused"))
    cluster.put(web({}, name="nobodys", loadBalancerClass="example.com/nobodys"))
    changed(cluster, {SCHEME: "internal"})

    def counted() -> dict[str, float]:
        reasons = ("refused", "failed", "address-change-held", "no-backends", "not-served")
        of = {each: {"reason": each} for each in reasons}
        name, registry = "cloud_controller_services_needing_attention", running.controller._metrics.registry
        return {reason: registry.get_sample_value(name, labels) or 0 for reason, labels in of.items()}

    with pytest.raises(InvalidConfiguration):
        running.handle("default/refused")
    running.handle()
    expected = {"refused": 1, "failed": 0, "address-change-held": 1, "no-backends": 0, "not-served": 1}
    assert counted() == expected

    cluster.objects["nodes"].clear()
    changed(cluster, {SCHEME: "internet-facing"})
    cluster.delete_service("default/refused")
    running.handle(NODES_CHANGED)
    running.settle("default/web", "default/refused")
    assert counted() == {**expected, "refused": 0, "address-change-held": 0, "no-backends": 1}


def test_a_gauge_counts_the_services_without_ready_endpoints(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web(name="starting"))
    cluster.put(web(name="without-slices"))
    cluster.put(web({}, name="nobodys", loadBalancerClass="example.com/nobodys"))
    ready = endpoint("10.244.0.1", "worker-0")
    starting = ready | {"conditions": {"ready": False}}
    cluster.put_slice(endpoint_slice(starting, ready))
    cluster.put_slice(endpoint_slice(starting, name="starting-1", of="starting"))
    running = served(site, cluster, web())

    labels = {"reason": "no-ready-endpoints"}
    registry = running.controller._metrics.registry
    assert registry.get_sample_value("cloud_controller_services_needing_attention", labels) == 2
