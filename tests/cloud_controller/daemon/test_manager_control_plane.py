"""The daemon with a real API server, with no other rights than those that its controllers are said to need."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urllib3
import yaml

from cloud_controller import clouds, rbac
from cloud_controller.cli.commands import main
from cloud_controller.cloud import Unavailable
from cloud_controller.controllers.nodes import (
    UNINITIALIZED_TAINT,
    condition,
    has_taint,
)
from cloud_controller.controllers.route import RouteController, RouteOptions
from cloud_controller.daemon import manager
from cloud_controller.daemon.leader import LeaderElector, LeaseTimes
from cloud_controller.daemon.manager import Manager
from cloud_controller.daemon.options import ManagerOptions, Serving
from cloud_controller.kube import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    LEASES,
    NODES,
    SERVICE_ACCOUNTS,
    ForbiddenError,
    Kube,
    NotFoundError,
    Object,
    name,
)
from local.control_plane.control_plane import ControlPlane
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.descriptors import descriptor_of
from tests.cloud_controller.rights import user_with
from tests.waiting import eventually

pytestmark = [
    pytest.mark.control_plane,
    pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning"),
]
HTTP = urllib3.PoolManager(cert_reqs="CERT_NONE", retries=False, timeout=60)
PATIENCE = 60.0
CONTROLLERS = ("node", "node-lifecycle", "route")
USER = "the-daemon"
OPTIONS = ManagerOptions(
    controllers=CONTROLLERS,
    route=RouteOptions(("10.1.0.0/16",)),
    # Longer than a busy machine keeps a process waiting: a call for the lease has `retry_period`.
    lease_times=LeaseTimes(30, 20, 5),
    node_monitor_period=0.5,
    route_reconciliation_period=1.0,
)


@pytest.fixture(scope="module")
def daemon_kube(control_plane: ControlPlane, kube: Kube) -> Iterator[Kube]:
    """A client as the daemon's user."""
    with user_with(control_plane, kube, USER, rbac.rules(CONTROLLERS, protected=True)) as kubeconfig:
        daemon = Kube.from_kubeconfig(kubeconfig)

        def may_work() -> bool:
            try:
                daemon.list(NODES)
                daemon.get(LEASES, rbac.LEASE_NAME, rbac.LEASE_NAMESPACE)
            except ForbiddenError:
                return False
            except NotFoundError:
                pass
            return True

        eventually(may_work, "the API server knows the rights that were just written")
        yield daemon


@dataclass
class Daemon:
    """A daemon in a thread of the test."""

    kube: Kube
    cloud: FakeCloud
    options: ManagerOptions = OPTIONS
    code: int | None = None

    def __post_init__(self) -> None:
        self.stop = threading.Event()
        self.manager = Manager(self.kube, self.cloud, self.options)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        self.code = self.manager.run(self.stop)

    def end(self) -> int | None:
        self.stop.set()
        self.thread.join(PATIENCE)
        return self.code


@pytest.fixture
def start(daemon_kube: Kube, kube: Kube, cloud: FakeCloud) -> Iterator[Callable[..., Daemon]]:
    started: list[Daemon] = []

    def start(**options: object) -> Daemon:
        started.append(Daemon(daemon_kube, cloud, replace(OPTIONS, **options)))  # type: ignore[arg-type]
        return started[-1]

    # Each daemon puts back the hook that it found, and they end in any order.
    hook = threading.excepthook
    yield start
    for daemon in started:
        daemon.end()
    threading.excepthook = hook
    for node in kube.list(NODES).items:
        kube.delete(NODES, name(node))
    # Not all give it back.
    with suppress(NotFoundError):
        kube.delete(LEASES, rbac.LEASE_NAME, rbac.LEASE_NAMESPACE)


def register(kube: Kube, node: str) -> None:
    """What a kubelet with an external cloud does first."""
    taint = {"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}
    kube.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "spec": {"taints": [taint]}})


def lease_holder(kube: Kube) -> str:
    """Empty where nobody holds it, or nobody ever did."""
    try:
        return str(kube.get(LEASES, rbac.LEASE_NAME, rbac.LEASE_NAMESPACE)["spec"]["holderIdentity"])
    except NotFoundError:
        return ""


def initialised(kube: Kube, node: str) -> Object | None:
    found = kube.get(NODES, node)
    network = condition(found, "NetworkUnavailable")
    done = not has_taint(found, UNINITIALIZED_TAINT) and network is not None and network["status"] == "False"
    return found if done else None


def test_a_daemon_that_is_still_busy_at_shutdown_does_not_release_its_lease(
    kube: Kube, start: Callable[..., Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "_STOP_TIMEOUT", 0.1)
    busy, go_on = threading.Event(), threading.Event()

    def slow(*_: object) -> list[str]:
        busy.set()
        go_on.wait(PATIENCE)
        return []

    monkeypatch.setattr(RouteController, "reconcile", slow)
    daemon = start()
    assert busy.wait(PATIENCE)
    leader = lease_holder(kube)
    try:
        assert daemon.end() == 0
        assert daemon.manager.busy
        assert lease_holder(kube) == leader != ""
    finally:
        go_on.set()


def test_a_daemon_with_an_overdue_lease_exits_with_1_even_before_the_renewal_fails(
    start: Callable[..., Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = threading.Event()

    def silent(*_: object) -> bool:
        return answer.wait()

    monkeypatch.setattr(LeaderElector, "hold", silent)
    daemon = start(lease_times=LeaseTimes(4, 3, 1))
    try:
        daemon.thread.join(PATIENCE)
        assert daemon.code == 1
    finally:
        answer.set()


def test_without_leader_election_no_lease_is_touched(
    kube: Kube, cloud: FakeCloud, start: Callable[..., Daemon]
) -> None:
    start(leader_elect=False, lease_name="none-of-mine")
    cloud.machine("n8")
    register(kube, "n8")

    eventually(lambda: initialised(kube, "n8"), "n8 is initialised")


def test_an_unhandled_exception_in_a_thread_ends_the_daemon_with_1(
    kube: Kube, start: Callable[..., Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(RouteController, "reconcile", bug)
    daemon = start()
    daemon.thread.join(PATIENCE)

    assert daemon.code == 1
    assert lease_holder(kube) == ""


def test_leader_and_standby_are_ready_but_not_while_the_cloud_is_unavailable(
    cloud: FakeCloud, start: Callable[..., Daemon], control_plane: ControlPlane
) -> None:
    address = str(urlsplit(control_plane.endpoint).hostname)

    def answer(port: int, path: str) -> str:
        try:
            return HTTP.request("GET", f"https://{address}:{port}{path}").data.decode()
        except urllib3.exceptions.HTTPError:
            return "no answer"

    def ready(port: int) -> str:
        return answer(port, "/readyz")

    def leads(port: int) -> str:
        (line,) = (each for each in answer(port, "/metrics").splitlines() if each.startswith("leader_election"))
        return line.rpartition(" ")[2]

    start(serving=Serving(address, 18001, protected=False))
    # Ready it is before it leads, too.
    eventually(lambda: answer(18001, "/healthz") == "ok" and leads(18001) == "1.0", "the first leads")
    eventually(lambda: ready(18001) == "ok", "the leader is ready")
    start(serving=Serving(address, 18002, protected=False))
    eventually(lambda: ready(18002) == "ok", "the other stands by, ready")
    assert (leads(18001), leads(18002)) == ("1.0", "0.0")
    start(serving=Serving(address, 18003, protected=False), lease_namespace="nowhere")
    eventually(lambda: "leader-election lease is not accessible" in ready(18003), "one that can never lead")

    cloud.error = Unavailable("the cloud is down")

    eventually(lambda: "controller-route Unavailable: the cloud is down" in ready(18001), "the leader is in trouble")
    assert ready(18002) == "ok"


def test_a_leader_exports_when_it_read_machines_and_any_daemon_when_its_credential_expires(
    start: Callable[..., Daemon], control_plane: ControlPlane
) -> None:
    address = str(urlsplit(control_plane.endpoint).hostname)

    def exports(port: int, series: str) -> bool:
        try:
            return f"\n{series} " in HTTP.request("GET", f"https://{address}:{port}/metrics").data.decode()
        except urllib3.exceptions.HTTPError:
            return False

    read, expiry = (f"cloud_controller_{of}_timestamp_seconds" for of in ("machines_read", "credential_expiry"))
    start(serving=Serving(address, 18004, protected=False), credential_expires=date(2027, 1, 31))
    eventually(lambda: exports(18004, read), "the leader's controllers read machines")
    start(serving=Serving(address, 18005, protected=False))
    eventually(lambda: exports(18005, 'workqueue_depth{name="node"}'), "the other serves its metrics")

    assert exports(18004, expiry)
    assert not exports(18005, read)
    assert not exports(18005, expiry)


def test_an_invalid_cloud_token_is_one_error_line(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clouds, "descriptor", lambda _: descriptor_of(lambda _: FakeCloud()))
    document = yaml.safe_load(control_plane.kubeconfig(USER, [], timedelta(hours=1)))
    document["users"][0]["user"] = {"token": "not-to-be-shown"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))

    code = main(
        ["run", "--cloud=fake", f"--kubeconfig={tmp_path / 'kubeconfig'}", "--controllers=node", "--log-level=error"]
    )

    assert code == 1
    assert capsys.readouterr().err == "cloud-controller: GET /version: Unauthorized (HTTP 401)\n"


def test_beyond_loopback_the_api_server_authorizes_readers_of_metrics(
    kube: Kube, start: Callable[..., Daemon], control_plane: ControlPlane
) -> None:
    address = str(urlsplit(control_plane.endpoint).hostname)
    start(serving=Serving(address, 18003, protected=True))
    for account in ("prometheus", "stranger"):
        kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": account, "namespace": "default"}})
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    kube.create(CLUSTER_ROLES, {"metadata": {"name": "reads-metrics"}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": "prometheus", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads-metrics"}
    kube.create(CLUSTER_ROLE_BINDINGS, {"metadata": {"name": "reads-metrics"}, "roleRef": role, "subjects": [subject]})

    def status(path: str, account: str | None) -> int:
        headers = {"Authorization": f"Bearer {token(kube, account)}"} if account else {}
        try:
            return HTTP.request("GET", f"https://{address}:18003{path}", headers=headers).status
        except urllib3.exceptions.HTTPError:
            return 0

    eventually(lambda: status("/healthz", None) == 200, "it serves")
    # Who may read what is known to the API server a moment after it was written.
    eventually(lambda: status("/metrics", "prometheus") == 200, "prometheus may read")
    assert status("/metrics", "stranger") == 403
    assert status("/configz", "prometheus") == 403
    assert status("/metrics", None) == 401


def token(kube: Kube, account: str) -> str:
    """A fresh token of a service account."""
    made = kube.create(SERVICE_ACCOUNTS, {"spec": {}}, "default", name=account, subresource="token")
    return str(made["status"]["token"])
