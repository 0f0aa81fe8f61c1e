"""Stack `local`, from nothing to traffic and back to nothing. The tests share one site and run in this order."""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.clouds.mycloud.cloud import MyCloud
from cloud_controller.clouds.mycloud.config import parse
from cloud_controller.controller_names import NAMES
from cloud_controller.kube import NODES, PODS, SECRETS, SERVICES, Kube, NotFoundError, PatchType
from tests.e2e.local_stack import LocalStack, answers, eventually, udp_echo
from tests.example_program import run_example, unpacked_wheels

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"


@pytest.fixture(scope="module")
def stack(empty_stack: LocalStack) -> Iterator[LocalStack]:
    """The stack, brought up once for the module."""
    empty_stack.run("up")
    yield empty_stack


def running_machines(stack: LocalStack) -> dict[str, dict[str, object]]:
    return {m["name"]: m for m in stack.cloud.list("machines") if m["state"] == "running"}


def live_machines(stack: LocalStack) -> list[dict[str, object]]:
    return [m for m in stack.cloud.list("machines") if m["state"] != "terminated"]


def route_targets(stack: LocalStack) -> dict[str, str]:
    (network,) = stack.cloud.list("networks")
    routes = stack.cloud.list(f"route_tables/{network['route_table_id']}/routes")
    return {r["destination_cidr"]: r["next_hop_machine_id"] for r in routes}


def load_balancer(stack: LocalStack, service: str) -> dict[str, object]:
    (found,) = [b for b in stack.cloud.list("load_balancers") if b["name"].endswith(f"-default-{service}")]
    return found


def controllers_token(stack: LocalStack) -> str:
    return str(json.loads((stack.state / "mycloud" / "controllers-token.json").read_text())["token"])


def members(stack: LocalStack, service: str) -> set[str]:
    balancer = load_balancer(stack, service)
    sets = balancer["backend_sets"]
    assert isinstance(sets, list)
    return {b["machine_id"] for s in sets for b in s["backends"]}


def test_every_node_is_initialised(stack: LocalStack) -> None:
    machines = running_machines(stack)

    nodes = {n["metadata"]["name"]: n for n in stack.kube.list(NODES).items}

    assert set(nodes) == set(machines)
    for name, node in nodes.items():
        machine = machines[name]
        labels = node["metadata"]["labels"]
        assert UNINITIALIZED not in [t["key"] for t in node["spec"].get("taints", [])], name
        assert node["spec"]["providerID"] == f"mycloud://local/{machine['zone']}/{machine['id']}"
        assert labels["topology.kubernetes.io/zone"] == machine["zone"]
        assert labels["topology.kubernetes.io/region"] == "local"
        assert labels["node.kubernetes.io/instance-type"] == machine["type"]
        addresses = [(a["type"], a["address"]) for a in node["status"]["addresses"]]
        assert ("InternalIP", machine["private_ips"][0]) in addresses  # type: ignore[index]


def test_every_node_has_a_pod_route(stack: LocalStack) -> None:
    machines = running_machines(stack)

    nodes = stack.kube.list(NODES).items

    wanted = {n["spec"]["podCIDR"]: machines[n["metadata"]["name"]]["id"] for n in nodes}
    assert route_targets(stack) == wanted


def test_the_control_plane_machine_runs_only_the_ccm(stack: LocalStack) -> None:
    (control_plane,) = [m["name"] for m in running_machines(stack).values() if m["role"] == "control-plane"]

    pods = stack.kube.list(PODS, field_selector=f"spec.nodeName={control_plane}").items

    assert {p["metadata"]["namespace"] + "/" + p["metadata"]["generateName"] for p in pods} == {
        "kube-system/cloud-controller-manager-"
    }


def test_http_through_the_load_balancer_reaches_every_pod(stack: LocalStack) -> None:
    url = stack.outputs["webUrl"]

    def both_answered() -> bool:
        seen.add(answers(url))
        return len(seen - {None}) == 2

    seen: set[str | None] = set()
    eventually(both_answered, "both web pods answer through the load balancer")


def test_udp_through_the_load_balancer_is_answered(stack: LocalStack) -> None:
    assert b"hello" in udp_echo(stack.outputs["echoAddress"], 8053, b"hello")


def test_the_log_of_a_pod_is_shown_without_kubectl(stack: LocalStack) -> None:
    pod = next(each["metadata"]["name"] for each in stack.kube.list(PODS, "default").items if "web" in str(each))

    assert stack.run("logs", "--pod", f"default/{pod}").startswith("listening on 127.")


def test_the_written_kubeconfig_opens_the_cluster(stack: LocalStack) -> None:
    path = Path(stack.run("kubeconfig").strip().removeprefix("export KUBECONFIG="))

    assert Kube.from_file(path).list(NODES).items
    assert path.stat().st_mode & 0o777 == 0o600


def test_status_shows_healthy_nodes_and_pods_and_the_leader(stack: LocalStack) -> None:
    (cluster,) = json.loads(stack.run("status", "--json"))["kubernetes"]

    assert {each["name"] for each in cluster["nodes"]} == set(running_machines(stack))
    assert all(each["ready"] and each["initialized"] for each in cluster["nodes"])
    assert cluster["leader"].startswith("local-control-plane-0_")  # the daemon's pod has its machine's host name
    assert cluster["pods_not_ready"] == []


def test_a_second_up_changes_nothing(stack: LocalStack) -> None:
    assert stack.changes("up") == {}


def test_a_preview_of_an_unchanged_stack_shows_no_change(stack: LocalStack) -> None:
    assert stack.changes("preview") == {}


def test_another_program_puts_a_service_behind_a_load_balancer_of_this_cluster(
    stack: LocalStack, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The example, with the components as a library."""
    library = unpacked_wheels(tmp_path_factory)
    kubeconfig = stack.pulumi("stack", "output", "kubeconfig", "--show-secrets")

    run_example(library, tmp_path / "state", kubeconfig, "up")
    url = run_example(library, tmp_path / "state", kubeconfig, "stack", "output", "url").strip()
    eventually(lambda: answers(url), f"the web pods answer at {url}")
    run_example(library, tmp_path / "state", kubeconfig, "destroy")

    names = {str(each["name"]) for each in stack.cloud.list("load_balancers")}
    assert not [name for name in names if name.endswith("-default-shop")]


def test_no_secret_is_printed_or_stored_in_plain_text(stack: LocalStack) -> None:
    tokens = [(stack.state / "mycloud" / "token").read_text().strip(), controllers_token(stack)]

    shown = stack.run("preview", "--diff") + stack.run("status")

    assert not [token for token in tokens if token in shown]
    for file in (stack.state / "stacks").rglob("*"):
        if file.is_file():
            assert not [token for token in tokens if token.encode() in file.read_bytes()], file


def test_the_controllers_token_may_do_what_the_controllers_do_and_no_more(stack: LocalStack) -> None:
    secret = stack.kube.get(SECRETS, "cloud-controller-manager-config", "kube-system")
    config = parse(base64.b64decode(secret["data"]["cloud.conf"]).decode())
    (cluster,) = stack.cloud.list("clusters")

    assert config.token == controllers_token(stack)
    MyCloud(config).check_access(NAMES)
    for operation in ("POST /v1/machines", "DELETE /v1/networks/ID", f"POST /v1/clusters/{cluster['id']}/credentials"):
        answer = Client(config.endpoint, config.token).post("access:check", {"operations": [operation]})
        assert answer["denied"] == [operation]


def test_a_route_deleted_by_hand_shows_in_preview_and_up_restores_it(stack: LocalStack) -> None:
    (network,) = stack.cloud.list("networks")
    before = route_targets(stack)
    lost = sorted(before)[0]
    stack.cloud.post(f"route_tables/{network['route_table_id']}/routes:batch_delete", {"destination_cidrs": [lost]})

    shown = stack.run("preview")
    stack.run("up")

    assert f"route/{lost}" in shown
    assert route_targets(stack) == before


def test_outputs_follow_an_address_that_others_changed(stack: LocalStack) -> None:
    def annotated(scheme: str | None) -> str:
        """The address of `web` once it has another load balancer."""
        before = load_balancer(stack, "web")["address"]
        patch = {"metadata": {"annotations": {CATALOGUE.by_argument["scheme"].name: scheme}}}
        stack.kube.patch(SERVICES, "web", patch, "default", type=PatchType.MERGE)

        def published() -> str:
            ingress = stack.kube.get(SERVICES, "web", "default")["status"]["loadBalancer"].get("ingress") or [{}]
            address = str(ingress[0].get("ip"))
            return address if address != before else ""

        return str(eventually(published, "the Service has another address"))

    changed = annotated("internal")
    assert f"curl http://{changed}:8080/" in stack.run("up")
    assert stack.outputs["webAddress"] == changed
    assert stack.changes("refresh") == {}

    annotated(None)
    stack.run("up")


def test_a_misspelt_annotation_is_an_event_that_names_the_nearest_one(stack: LocalStack) -> None:
    kube = stack.kube
    kube.create(
        SERVICES,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "misspelt",
                "annotations": {"service.beta.kubernetes.io/dlb-listener-maxpqs": "10"},
            },
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 8090}]},
        },
        "default",
    )

    def complaint() -> list[str]:
        events = kube.list(kube.resource("v1", "Event"), "default").items
        return [e["message"] for e in events if e["involvedObject"]["name"] == "misspelt" and e["type"] == "Warning"]

    messages = eventually(complaint, "a Warning event on Service misspelt")
    kube.delete(SERVICES, "misspelt", "default")

    assert "dlb-listener-maxqps" in messages[0]
    assert not [b for b in stack.cloud.list("load_balancers") if b["name"].endswith("-misspelt")]
    eventually(lambda: not service_exists(stack, "misspelt"), "the Service goes, without a stuck finalizer")


def service_exists(stack: LocalStack, name: str) -> bool:
    try:
        stack.kube.get(SERVICES, name, "default")
    except NotFoundError:
        return False
    return True


@pytest.mark.parametrize("count", [4, 2])
def test_nodes_routes_and_members_follow_the_number_of_workers(stack: LocalStack, count: int) -> None:
    stack.scale_workers(count)

    stack.run("up")

    machines = running_machines(stack)
    workers = {str(m["id"]) for m in machines.values() if m["role"] == "worker"}
    assert len(workers) == count
    eventually(
        lambda: {n["metadata"]["name"] for n in stack.kube.list(NODES).items} == set(machines),
        "exactly the machines are nodes",
    )
    eventually(lambda: set(route_targets(stack).values()) == {m["id"] for m in machines.values()}, "each has a route")
    eventually(lambda: members(stack, "web") == workers, "exactly the workers are members of the load balancer")
    url = stack.outputs["webUrl"]
    eventually(lambda: answers(url), "the load balancer answers")


def test_an_up_killed_while_it_makes_a_machine_is_finished_by_the_next_one(stack: LocalStack) -> None:
    before = set(running_machines(stack))
    stack.scale_workers(3)
    run = stack.start("up")
    eventually(lambda: {m["name"] for m in live_machines(stack)} - before, "the third worker is being made")
    stack.signal_pulumi(signal.SIGKILL)
    assert run.wait() != 0

    stack.run("up")

    names = [str(m["name"]) for m in live_machines(stack)]
    assert sorted(names) == sorted({*before, "local-workers-2"})
    assert stack.changes("preview") == {}


def test_a_terminated_machine_loses_its_node_and_its_membership(stack: LocalStack) -> None:
    victim = next(m for m in running_machines(stack).values() if m["role"] == "worker")

    stack.cloud.delete("machines", str(victim["id"]))

    eventually(
        lambda: victim["name"] not in {n["metadata"]["name"] for n in stack.kube.list(NODES).items},
        "the node of the terminated machine is deleted",
    )
    eventually(lambda: victim["id"] not in members(stack, "web"), "it is no member any more")
    url = stack.outputs["webUrl"]
    eventually(lambda: answers(url), "the load balancer answers again")


def test_a_preview_without_a_declared_machine_names_the_command_to_run(stack: LocalStack) -> None:
    shown = stack.run("preview", expect=1)

    assert "refresh" in shown


def test_refresh_and_up_replace_a_missing_machine(stack: LocalStack) -> None:
    stack.run("refresh")

    stack.run("up")

    machines = running_machines(stack)
    assert len([m for m in machines.values() if m["role"] == "worker"]) == 3
    assert {n["metadata"]["name"] for n in stack.kube.list(NODES).items} == set(machines)
    assert set(route_targets(stack).values()) == {m["id"] for m in machines.values()}


def test_status_shows_what_runs(stack: LocalStack) -> None:
    reported = json.loads(stack.run("status", "--json"))

    assert {m["name"] for m in reported["machines"] if m["state"] == "running"} == set(running_machines(stack))


def test_destroy_leaves_the_cloud_empty(stack: LocalStack) -> None:
    stack.on_copy("destroy")

    cloud = stack.cloud
    left = {c: cloud.list(c) for c in ("networks", "subnets", "clusters", "load_balancers", "route_tables")}
    assert left == {c: [] for c in left}
    assert [m for m in cloud.list("machines") if m["state"] != "terminated"] == []
