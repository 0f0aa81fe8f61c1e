"""Stack `mycloud-ha`: production's shape on one machine. Clients notice no death, eviction or restart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from cloud_controller.kube import NODES, SERVICES, TooManyRequestsError
from cloud_controller.manifests import SECURE_PORT
from local.addresses import socket_address
from local.control_plane.components import CONTROLLER_MANAGER_PORT
from local.pulumi.secrets import open_crypter
from tests.e2e.candidates import (
    CCM,
    all_ready,
    budget,
    candidates_counted,
    evict,
    held_lease,
    leaders_machine,
    ready_candidates,
)
from tests.e2e.dashboard_picture import draw_if_asked
from tests.e2e.local_stack import LocalStack, answers, eventually, http_get, udp_echo
from tests.e2e.prometheus import Prometheus, alerts_in_a_thirtieth, prometheus, token_to_scrape, without_answer
from tests.e2e.traffic import Traffic

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(900)]

INSTANCE_DOWN = "CloudControllerManagerInstanceDown"
NO_LEADER = "CloudControllerManagerNoLeader"
FAILING_CLOUD = {"CloudAPIErrorRateHigh", "CloudAPIErrorRateVeryHigh"}


@pytest.fixture(scope="module")
def stack(state_folder: Path) -> LocalStack:
    """The stack, brought up once for the module."""
    stack = LocalStack.copied(state_folder, "mycloud-ha")
    stack.run("up")
    return stack


@pytest.fixture(scope="module")
def monitor(stack: LocalStack, state_folder: Path) -> Iterator[Prometheus]:
    """Prometheus with the project's alerts, which scrapes the daemons and kube-controller-manager."""
    (cluster,) = stack.cloud.list("clusters", name="ha")
    jobs = {
        CCM: [f"{socket_address(pod['status']['podIP'])}:{SECURE_PORT}" for pod in all_ready(stack)],
        "kube-controller-manager": [f"{urlsplit(cluster['endpoint']).hostname}:{CONTROLLER_MANAGER_PORT}"],
    }
    with prometheus(
        state_folder / "prometheus", jobs, token_to_scrape(stack.kube), alerts_in_a_thirtieth("mycloud")
    ) as server:
        yield server


@pytest.fixture(scope="module")
def neighbour(state_folder: Path) -> LocalStack:
    """Stack `local` in the same site."""
    neighbour = LocalStack.copied(state_folder, "local")
    neighbour.scale_workers(1)
    neighbour.run("up")
    return neighbour


def test_each_zone_has_a_candidate_for_leader(stack: LocalStack) -> None:
    zones = {m["name"]: m["zone"] for m in stack.cloud.list("machines") if m["role"] == "control-plane"}

    nodes = [pod["spec"]["nodeName"] for pod in all_ready(stack)]

    assert sorted(nodes) == sorted(zones)
    assert sorted(zones.values()) == ["zone-a", "zone-b", "zone-c"]


def test_both_load_balancers_admit_this_machine(stack: LocalStack) -> None:
    url = stack.outputs["webUrl"]
    eventually(lambda: answers(url), "the web workload answers")
    assert b"ping" in udp_echo(stack.outputs["echoAddress"], 8053, b"ping")


def test_a_second_up_changes_nothing(stack: LocalStack) -> None:
    assert stack.changes("up") == {}


def test_prometheus_reads_every_daemon_with_the_rights_that_the_manifests_give_it(monitor: Prometheus) -> None:
    eventually(lambda: monitor.ask(f'sum(up{{job="{CCM}"}})') == [({}, 3.0)], "it reads three daemons")


def test_an_eviction_beyond_the_disruption_budget_is_refused(stack: LocalStack) -> None:
    first, second, _ = all_ready(stack)
    eventually(lambda: budget(stack)["disruptionsAllowed"] == 1, "the budget allows one")

    evict(stack, first)
    with pytest.raises(TooManyRequestsError, match="disruption budget"):
        evict(stack, second)

    assert second["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in all_ready(stack)}


def test_a_new_token_restarts_one_candidate_after_another_while_traffic_flows(stack: LocalStack) -> None:
    before = {pod["metadata"]["uid"] for pod in all_ready(stack)}
    use_new_token(stack)

    with Traffic(stack.outputs["webUrl"]).flowing() as traffic, candidates_counted(stack) as ready:
        stack.on_copy("up")
        after = {pod["metadata"]["uid"] for pod in ready_candidates(stack)}
        stack.run("up")  # the site's own token again

    assert not before & after
    # A new holder of the lease is not ready before it knows the cluster, so there may be fewer than two.
    assert min(ready) >= 1
    assert traffic.failures_since(0) == []


def test_no_alert_fires_or_is_pending_in_a_healthy_cluster(monitor: Prometheus) -> None:
    eventually(monitor.evaluated, "every rule has been evaluated")

    # A daemon without work reads all machines every five minutes, and here the alert allows thirty seconds.
    others = 'ALERTS{alertname!="CloudControllerMachinesNotRead"}'
    eventually(lambda: monitor.ask(others) == [], "no rule is true")


def test_no_request_fails_while_the_leaders_machine_dies_and_another_takes_over(stack: LocalStack) -> None:
    lease = eventually(lambda: held_lease(stack), "somebody leads")
    dead = leaders_machine(lease)
    (machine,) = stack.cloud.list("machines", name=dead, state="running")

    with Traffic(stack.outputs["webUrl"]).flowing() as traffic:
        eventually(lambda: traffic.answers_since(0).total() > 100, "traffic flows")
        killed = time.monotonic()
        stack.kill_machine(machine["id"])
        new = eventually(lambda: held_lease(stack, other_than=dead), "another candidate leads")
        took_over = time.monotonic()
        eventually(lambda: traffic.answers_since(took_over).total() > 100, "traffic flows on")

    print(f"{leaders_machine(new)} leads {took_over - killed:.1f} s after {dead} died")
    assert traffic.failures_since(0) == []


def test_the_missing_leader_was_reported_until_another_led(monitor: Prometheus) -> None:
    eventually(lambda: monitor.has_fired(NO_LEADER), "the alert has fired")
    eventually(lambda: NO_LEADER not in monitor.firing(), "it is over")


def test_a_service_made_while_the_old_leaders_machine_is_dead_gets_its_load_balancer(stack: LocalStack) -> None:
    selector = stack.kube.get(SERVICES, "web", "default")["spec"]["selector"]
    ports = [{"port": 8081, "targetPort": "main"}]
    spec = {"type": "LoadBalancer", "selector": selector, "ports": ports}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "late"}, "spec": spec}

    stack.kube.create(SERVICES, service, "default")

    url = eventually(lambda: url_of(stack, "late"), "the Service has an address")
    eventually(lambda: answers(url), "its load balancer answers")
    stack.kube.delete(SERVICES, "late", "default")
    eventually(lambda: len(stack.cloud.list("load_balancers")) == 2, "its load balancer goes with it")


def test_a_worker_added_while_the_old_leaders_machine_is_dead_is_initialised(stack: LocalStack) -> None:
    stack.scale_workers(3)

    stack.run("up")

    node = stack.kube.get(NODES, "ha-workers-2")
    taints = [taint["key"] for taint in node["spec"].get("taints", [])]
    assert node["spec"]["providerID"]
    assert "node.cloudprovider.kubernetes.io/uninitialized" not in taints


def test_while_the_old_leaders_machine_is_dead_no_other_candidate_may_be_evicted(stack: LocalStack) -> None:
    eventually(lambda: budget(stack)["currentHealthy"] == 2, "the dead machine's candidate counts no more")
    first = ready_candidates(stack)[0]

    with pytest.raises(TooManyRequestsError, match="disruption budget"):
        evict(stack, first)


def test_a_failing_cloud_is_reported_until_it_answers_again(stack: LocalStack, monitor: Prometheus) -> None:
    stack.cloud.post("admin/faults", {"operation": "*", "kind": "error", "count": None})
    eventually(lambda: monitor.firing() >= FAILING_CLOUD, "the alerts fire")

    stack.cloud.delete_path("admin/faults")

    eventually(lambda: not FAILING_CLOUD & monitor.firing(), "they are over")


def test_every_query_of_the_dashboard_has_an_answer(monitor: Prometheus) -> None:
    # A worker has joined, and the cloud has failed: what a healthy cluster does not show is there, too.
    eventually(lambda: not without_answer(monitor), "every query has an answer")

    draw_if_asked(monitor)


def test_the_old_leaders_machine_has_a_candidate_again_once_it_is_started(stack: LocalStack) -> None:
    stack.start_stopped_machines()

    all_ready(stack)


def test_the_dead_instance_was_reported_until_it_was_back(monitor: Prometheus) -> None:
    assert monitor.has_fired(INSTANCE_DOWN)
    eventually(lambda: INSTANCE_DOWN not in monitor.firing(), "it is over")


def test_two_stacks_in_one_site_do_not_disturb_each_other(stack: LocalStack, neighbour: LocalStack) -> None:
    with Traffic(stack.outputs["webUrl"]).flowing() as traffic:
        assert neighbour.changes("up") == {}
        neighbour_answers(neighbour)
        assert stack.changes("up") == {}

    assert traffic.failures_since(0) == []
    assert {cluster["name"] for cluster in stack.cloud.list("clusters")} == {"ha", "local"}


def test_a_protected_stack_is_not_destroyed(stack: LocalStack, neighbour: LocalStack) -> None:
    stack.configure("protect", True)
    stack.run("up")

    stack.run("down", expect=1)

    assert http_get(stack.outputs["webUrl"])["pod"]
    neighbour_answers(neighbour)


def test_a_retained_load_balancer_keeps_its_address_through_a_destroy(stack: LocalStack, neighbour: LocalStack) -> None:
    before = stack.outputs
    stack.configure("protect", False)
    stack.configure("retain", True)
    stack.run("up")

    stack.run("down")
    left = {balancer["address"] for balancer in stack.cloud.list("load_balancers")}
    # Objects in the cluster that stayed have the field manager of the stack that is gone.
    stack.run("up", PULUMI_K8S_ENABLE_PATCH_FORCE="true")

    assert left >= {before["webAddress"], before["echoAddress"]}
    assert stack.outputs == before
    eventually(lambda: answers(before["webUrl"]), "the old address answers")
    neighbour_answers(neighbour)


def test_down_leaves_nothing_of_the_stack_and_all_of_the_other(stack: LocalStack, neighbour: LocalStack) -> None:
    stack.configure("retain", False)
    stack.run("up")

    stack.run("down")

    cloud = neighbour.cloud
    (cluster,) = cloud.list("clusters")
    (network,) = cloud.list("networks")
    assert (cluster["name"], network["name"]) == ("local", "local")
    assert {b["tags"]["kubernetes.io/cluster"] for b in cloud.list("load_balancers")} == {cluster["id"]}
    living = [m["name"] for m in cloud.list("machines") if m["state"] != "terminated"]
    assert sorted(living) == ["local-control-plane-0", "local-workers-0"]
    neighbour_answers(neighbour)


def test_down_of_the_last_stack_ends_the_site(stack: LocalStack, neighbour: LocalStack) -> None:
    processes = stack.processes()
    assert stack.running(processes)

    neighbour.run("down")

    assert stack.running(processes) == []


# --------------------------------------------------------------------------------------------------------- helpers


def neighbour_answers(neighbour: LocalStack) -> None:
    url = neighbour.outputs["webUrl"]
    eventually(lambda: answers(url), "the neighbour's web workload answers")


def url_of(stack: LocalStack, name: str) -> str | None:
    service = stack.kube.get(SERVICES, name, "default")
    ingress = service["status"]["loadBalancer"].get("ingress") or []
    return f"http://{ingress[0]['ip']}:{service['spec']['ports'][0]['port']}" if ingress else None


def use_new_token(stack: LocalStack) -> None:
    """As `pulumi config set --secret mycloudControllerToken` does, with a new token of mycloud."""
    token = stack.cloud.post("admin/tokens", {"ttl_seconds": 3600})["token"]
    settings = yaml.safe_load(stack.site_copy.read_text())
    passphrase = (stack.site_copy.parent / "passphrase").read_text().strip()
    crypter = open_crypter(passphrase, settings["encryptionsalt"])
    settings["config"]["cloud-controller:mycloudControllerToken"] = {"secure": crypter.encrypt(token)}
    stack.site_copy.write_text(yaml.safe_dump(settings))
