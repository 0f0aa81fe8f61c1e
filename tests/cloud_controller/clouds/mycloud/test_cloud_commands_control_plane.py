"""The commands against a real API server and mycloud: plan with rights to read alone, apply, dry run, and no secret."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import pytest

from cloud_controller import rbac
from cloud_controller.cli import commands as cli
from cloud_controller.cli.planned_service import CHANGES
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.controller_names import NAMES
from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT
from cloud_controller.controllers.service.rules import FINALIZER
from cloud_controller.daemon.leader import LeaderElector, LeaseTimes
from cloud_controller.kube import (
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    SERVICES,
    ForbiddenError,
    Kube,
    Object,
    PatchType,
    name,
)
from local.control_plane.control_plane import ControlPlane
from tests.cloud_controller.rights import user_with
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

pytestmark = pytest.mark.control_plane

PATIENCE = 60.0


@pytest.fixture(scope="module")
def reader(control_plane: ControlPlane, kube: Kube) -> Iterator[str]:
    """The kubeconfig of an identity that may read what the controllers read, and write nothing."""
    reads = tuple(
        replace(rule, verbs=verbs)
        for rule in rbac.rules(NAMES).cluster
        if (verbs := tuple(verb for verb in rule.verbs if verb in ("get", "list", "watch")))
    )
    with user_with(control_plane, kube, "reader", rbac.Rules(reads, ())) as kubeconfig:

        def may_read() -> bool:
            try:
                Kube.from_kubeconfig(kubeconfig).list(NODES)
            except ForbiddenError:
                return False
            return True

        eventually(may_read, "the API server knows the rights that were just written")
        yield kubeconfig


class Commands:
    """The command line with files of this test."""

    def __init__(self, directory: Path, site: MyCloudSite, kubeconfig: str, token: str) -> None:
        self.token = token
        self.directory = directory
        (directory / "kubeconfig").write_text(kubeconfig)
        (directory / "token").write_text(token)
        config = ("[Global]", f"endpoint = {site.endpoint}", f"token-file = {directory}/token")
        (directory / "cloud.conf").write_text("\n".join([*config, f"cluster-id = {site.cluster['id']}", ""]))
        self.options = [
            "--cloud=mycloud",
            f"--cloud-config={directory}/cloud.conf",
            f"--kubeconfig={directory}/kubeconfig",
            f"--cluster-cidr={site.network['pod_cidr']}",
        ]

    def __call__(self, command: str, *more: str) -> int:
        return cli.main([command, *self.options, "--log-level=error", *more])


@pytest.fixture
def reading(tmp_path: Path, site: MyCloudSite, reader: str) -> Commands:
    """Rights to read alone, in the cluster and in the cloud."""
    (tmp_path / "reading").mkdir()
    return Commands(tmp_path / "reading", site, reader, site.issue_token(operations=["GET *", "POST /v1/access:check"]))


@pytest.fixture
def working(tmp_path: Path, site: MyCloudSite, control_plane: ControlPlane) -> Commands:
    """All rights in the cluster, and in the cloud those of the table."""
    (tmp_path / "working").mkdir()
    kubeconfig = control_plane.kubeconfig("admin", ["system:masters"], timedelta(hours=1))
    return Commands(tmp_path / "working", site, kubeconfig, site.controllers_token)


@pytest.fixture
def cluster(kube: Kube, site: MyCloudSite) -> Iterator[Kube]:
    """A new node with a machine, and two Services; all gone afterwards."""
    machine = site.machine("worker-0")
    taint = {"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}
    node: Object = {"metadata": {"name": "worker-0"}, "spec": {"taints": [taint], "podCIDR": pods(site)}}
    node["spec"]["podCIDRs"] = [node["spec"]["podCIDR"]]
    node["spec"]["providerID"] = provider_id(machine)
    kube.create(NODES, node)
    for service in ("db", "web"):
        kube.create(
            SERVICES,
            {
                "metadata": {"name": service, "namespace": "default"},
                "spec": {"type": "LoadBalancer", "ports": [{"port": 8080}]},
            },
        )
    yield kube
    kube.delete(NODES, "worker-0")
    for service in ("db", "web"):
        kube.patch(SERVICES, service, {"metadata": {"finalizers": None}}, "default", type=PatchType.MERGE)
        kube.delete(SERVICES, service, "default")


def pods(site: MyCloudSite) -> str:
    """The first part of the pods' range."""
    return str(site.network["pod_cidr"]).replace("0.0/16", "1.0/24")


def snapshot(kube: Kube) -> dict[str, str]:
    """Everything that a controller could have written: by resource version, or what it would be of a node."""
    lists = {kind.plural: kube.list(kind).items for kind in (SERVICES, EVENTS, LEASES)}
    # Others write nodes too.
    nodes = {name(node): repr((node["metadata"].get("labels"), uninitialised(node))) for node in kube.list(NODES).items}
    # The control plane's own parts go on working: their leases, and what they tell.
    own = ("kube-controller-manager", "kube-scheduler", "apiserver-", "kube-")
    ending = {name(each) for each in kube.list(NAMESPACES).items if "deletionTimestamp" in each["metadata"]}
    return nodes | {
        f"{plural}/{each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for plural, items in lists.items()
        for each in items
        if each["metadata"]["namespace"] not in ending
        if not name(each).startswith(own) and each.get("source", {}).get("component") != "node-controller"
    }


def uninitialised(node: Object) -> bool:
    return any(taint["key"] == UNINITIALIZED_TAINT for taint in node["spec"].get("taints") or [])


# ------------------------------------------------------------------------------------------------------------- plan


def test_a_plan_needs_rights_to_read_alone_and_shows_every_service(
    cluster: Kube, site: MyCloudSite, reading: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    before = snapshot(cluster)
    token = site.issue_token(operations=["GET *"])
    (reading.directory / "token").write_text(token)
    writes = site.writes()

    assert reading("plan") == 0

    out = capsys.readouterr().out
    assert "node/worker-0: initialise as m1.small in zone-b" in out
    assert f"route/{pods(site)}" in out
    assert "service/default/db: create load balancer" in out
    assert "service/default/web: create load balancer" in out
    assert site.writes() == writes
    assert snapshot(cluster) == before


@pytest.mark.usefixtures("cluster")
def test_a_plan_tells_by_its_exit_code_whether_there_is_something_to_do_only_where_it_is_asked(
    reading: Commands,
) -> None:
    assert reading("plan", "--controllers=service", "--detailed-exitcode") == CHANGES
    assert reading("plan", "--controllers=service") == 0
    assert reading("plan", "--controllers=node-lifecycle", "--detailed-exitcode") == 0


# ------------------------------------------------------------------------------------------------------------ apply


@pytest.mark.usefixtures("data_plane")
def test_apply_does_everything_until_nothing_is_left_and_gives_the_lease_back(
    cluster: Kube, site: MyCloudSite, working: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    patient = [f"--leader-elect-{what}" for what in ("lease-duration=60s", "renew-deadline=40s", "retry-period=10s")]
    assert working("apply", "--yes", "--deadline=120s", *patient) == 0

    assert not uninitialised(cluster.get(NODES, "worker-0"))
    routes = site.client.list(f"route_tables/{site.network['route_table_id']}/routes")
    assert [route["destination_cidr"] for route in routes] == [pods(site)]
    for each in ("db", "web"):
        service = cluster.get(SERVICES, each, "default")
        assert service["metadata"]["finalizers"] == [FINALIZER]
        assert service["status"]["loadBalancer"]["ingress"]
    assert len(site.load_balancers()) == 2
    assert "failed:" not in capsys.readouterr().out
    assert cluster.get(LEASES, rbac.LEASE_NAME, rbac.LEASE_NAMESPACE)["spec"]["holderIdentity"] == ""

    assert working("plan", "--controllers=service") == 0
    out = capsys.readouterr().out
    assert out.splitlines() == [
        "service: nothing to do",
        "     service/default/db: up to date",
        "     service/default/web: up to date",
    ]
    assert working("apply", "--controllers=service") == 0
    assert capsys.readouterr().out.endswith("nothing to do\n")

    cluster.patch(SERVICES, "web", {"spec": {"type": "ClusterIP"}}, "default", type=PatchType.MERGE)
    assert working("apply", "--yes", "--controllers=service") == 0
    left = cluster.get(SERVICES, "web", "default")
    assert (left["metadata"].get("finalizers"), left["status"]) == (None, {"loadBalancer": {}})
    assert len(site.load_balancers()) == 1


def test_apply_does_not_work_beside_a_daemon_that_leads(
    cluster: Kube, site: MyCloudSite, working: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    times = LeaseTimes(60, 40, 0.2)
    leader = LeaderElector(cluster, rbac.LEASE_NAMESPACE, "taken", identity="the-daemon", times=times)
    assert leader.acquire(threading.Event())
    ended = threading.Event()
    holder = threading.Thread(target=leader.hold, args=(ended,))
    holder.start()
    writes = site.writes()
    try:
        mine = [f"--leader-elect-{what}" for what in ("lease-duration=3s", "renew-deadline=2500ms", "retry-period=2s")]
        # It waits as long as the holder's lease may have run out, by its own times; a call has the last of them.
        assert working("apply", "--yes", "--leader-elect-resource-name=taken", *mine) == 1
    finally:
        ended.set()
        holder.join()

    assert "the lease is held by the-daemon: stop that daemon" in capsys.readouterr().err
    assert site.writes() == writes


# ------------------------------------------------------------------------------------------------------- the process


CONFINE = """\
while read -r _ _ _ _ point options _; do
    case $point in /proc | /proc/* | /sys | /sys/* | /dev | /dev/*) continue ;; esac
    mount -o "remount,bind,ro,${options#rw,}" "$point" || exit
done </proc/self/mountinfo
exec unshare --user --map-user=65534 --map-group=65534 setpriv --no-new-privs \
    sh -c 'id -u >&2; touch /tmp/mine; exec "$@"' sh "$@"
"""
"""Runs a command as nobody, without capabilities, where no file can be written: as a pod's securityContext asks.

First it says who it is, and that it cannot write."""
CONFINED = ("unshare", "--user", "--map-root-user", "--mount", "--propagation=private", "sh", "-c", CONFINE, "sh")


def daemon(
    commands: Commands, *more: str, log: TextIO | int = subprocess.PIPE, within: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """`cloud-controller run` as a process of its own, which logs to `log`; `within`: a command that runs it."""
    arguments = [sys.executable, "-m", "cloud_controller.cli", "run", *commands.options, "--secure-port=0", *more]
    arguments = [*within, *arguments]
    return subprocess.Popen(arguments, stderr=log, stdout=subprocess.DEVNULL, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Exit code of a daemon that is asked to stop, and what it still tells, where that goes to a pipe."""
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, (err or "").splitlines()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_dry_run_logs_each_plan_and_writes_nothing_with_rights_to_read_alone(
    cluster: Kube, site: MyCloudSite, reading: Commands
) -> None:
    before, writes = snapshot(cluster), site.writes()
    process = daemon(reading, "--dry-run", "--logging-format=json", "--route-reconciliation-period=200ms")
    assert process.stderr is not None
    told = []
    waiting = {"node/worker-0", f"route/{pods(site)}", "service/default/web"}
    for text in process.stderr:
        told.append(json.loads(text))
        waiting -= {told[-1].get("target")}
        if not waiting:
            break
    code, _ = ended(process)

    assert code == 0
    assert not waiting
    assert {line["level"] for line in told} == {"info"}
    assert site.writes() == writes
    assert snapshot(cluster) == before


@pytest.mark.usefixtures("data_plane")
def test_the_daemon_never_shows_a_secret_even_when_it_tells_everything(cluster: Kube, working: Commands) -> None:
    log = working.directory / "log"
    with log.open("w") as told:  # A pipe that nobody reads would hold it up once it is full.
        process = daemon(working, "--v=6", "--controllers=*,-volume", log=told)

    def served() -> object:
        return cluster.get(SERVICES, "web", "default")["status"]["loadBalancer"].get("ingress")

    try:
        eventually(lambda: process.poll() is not None or served(), "web has an address")
        command_line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        environment = Path(f"/proc/{process.pid}/environ").read_bytes()
    finally:
        code, _ = ended(process)

    lines = log.read_text().splitlines()
    assert code == 0
    secrets = [working.token]
    kubeconfig = (working.directory / "kubeconfig").read_text()
    secrets += [line.split(": ")[1] for line in kubeconfig.splitlines() if "client-key-data" in line]
    assert len(secrets) == 2
    for secret in secrets:
        assert secret not in "\n".join(lines)
        assert secret.encode() not in command_line + environment
    assert any("target=service/default/web" in line for line in lines)
    assert lines[-1].endswith("released lease=kube-system/cloud-controller-manager")


@pytest.mark.usefixtures("data_plane")
def test_the_daemon_works_as_nobody_without_capabilities_and_without_a_file_that_it_could_write(
    cluster: Kube, working: Commands
) -> None:
    if subprocess.run([*CONFINED, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine allows no user namespaces")
    log = working.directory / "log"
    with log.open("w") as told:
        serving = (f"--secure-port={free_port()}", "--bind-address=127.0.0.1")
        process = daemon(working, "--controllers=*,-volume", *serving, log=told, within=CONFINED)

    def served() -> object:
        return cluster.get(SERVICES, "web", "default")["status"]["loadBalancer"].get("ingress")

    try:
        eventually(lambda: process.poll() is not None or served(), "web has an address")
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    finally:
        code, _ = ended(process)

    user, refused, *lines = log.read_text().splitlines()
    assert code == 0, lines
    assert user == "65534"
    assert refused.endswith("Read-only file system")
    assert (int(status["CapEff"], 16), status["NoNewPrivs"]) == (0, "1")
    assert any("target=service/default/web" in line for line in lines)


@pytest.mark.usefixtures("cluster")
def test_a_daemon_whose_token_lacks_a_right_says_which_and_ends_at_once(site: MyCloudSite, working: Commands) -> None:
    (working.directory / "token").write_text(site.issue_token(operations=["GET *", "POST /v1/access:check"]))

    process = daemon(working, "--controllers=service")
    _, err = process.communicate(timeout=PATIENCE)

    assert process.returncode == 1
    assert "the token does not allow DELETE /v1/load_balancers/ID" in err
    assert "(needed by service)" in err
