"""Whatever cloud and API server do to it, the manager comes to the same end, and asks no more than it has to."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from cloud_controller.cloud import AccessDenied
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.clouds.mycloud.config import Config, render
from cloud_controller.controllers.nodes import condition
from cloud_controller.kube import EVENTS
from tests.crash import under_fault
from tests.crash.control_plane import kill_api_server
from tests.crash.daemon import PATIENCE
from tests.crash.environment import Environment, Json, Manager, until
from tests.crash.proxy import Refusal
from tests.crash.scenarios import HTTP, HTTPS, SPACE, Run, port
from tests.crash.trial import Scenario, difference, prepared
from tests.crash.under_fault import SHORT_SILENCE, SLOW, Outcome, endure, peace
from tests.sampling import mostly_nightly

pytestmark = [pytest.mark.control_plane, pytest.mark.timeout(300)]

FLAGS = ("--leader-elect=false", "--node-monitor-period=500ms")
ETCD_PAUSE = 6.0

STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}


def _changes(run: Run) -> None:
    """Something for every controller: a changed Service, one that goes, one that comes, a node that comes."""
    run.change_ports(HTTP, port(9443, 31944))
    run.delete_service(1)
    run.service(port(9090, 31090), port(5353, 31053, "UDP"))
    run.node()


def _two_services(run: Run) -> None:
    run.node()
    run.service(HTTP)
    run.service(HTTPS)


def _services_serve(run: Run) -> bool:
    return run.initialised(run.machines[0]) and run.serves(8080) and run.serves(8443, of=1) and run.members_are({0})


def _changes_are_made(run: Run) -> bool:
    return (
        run.serves(8080, 9443)
        and run.gone(1)
        and run.serves(9090, 5353, of=2)
        and run.initialised(run.machines[1])
        and run.members_are({0, 1})
    )


WORK = Scenario("a day's work", _two_services, _services_serve, _changes, _changes_are_made)

Fault = under_fault.Fault[Manager]


def cloud_fault(**fault: Any) -> Fault:
    """One of mycloud's own faults, on every call of users, until it is switched off."""

    def switched_on(manager: Manager) -> Generator[None, None, None]:
        cloud = manager.environment.cloud
        cloud.post("admin/faults", {"operation": "*", "count": None, **fault})
        try:
            yield
            yield
        finally:
            cloud.delete_path("admin/faults")

    return switched_on


def lists_lag(manager: Manager) -> Generator[None, None, None]:
    """What was made is not listed for two seconds."""
    cloud = manager.environment.cloud
    cloud.put("admin/consistency", {"lag_seconds": 2.0})
    try:
        yield
        yield
    finally:
        cloud.put("admin/consistency", {"lag_seconds": 0})


def conflicts(manager: Manager) -> Generator[None, None, None]:
    """The first write of each object is refused, as if another had been quicker."""
    refused: set[str] = set()
    body = json.dumps(STATUS | {"reason": "Conflict", "code": 409, "message": "the object has been modified"}).encode()

    def refuse(method: str, path: str) -> Refusal | None:
        target = path.partition("?")[0].removesuffix("/status")
        if method not in ("PUT", "PATCH", "DELETE") or "/events" in target or target in refused:
            return None
        refused.add(target)
        return Refusal(409, body)

    manager.kubernetes.refuse = refuse
    yield
    yield
    assert len(refused) >= 3, f"hardly anything was refused: {refused}"


def forgotten_versions(manager: Manager) -> Generator[None, None, None]:
    """Every watch breaks, and can't be resumed: the API server has forgotten where it was."""
    refused = Counter[str]()
    body = json.dumps(STATUS | {"reason": "Expired", "code": 410, "message": "too old resource version"}).encode()

    def refuse(method: str, path: str) -> Refusal | None:
        target = path.partition("?")[0]
        if method != "GET" or "watch=true" not in path or refused[target] >= 2:
            return None
        refused[target] += 1
        return Refusal(410, body)

    manager.kubernetes.refuse = refuse
    manager.kubernetes.cut()
    yield
    yield
    assert {"/api/v1/services", "/api/v1/nodes"} <= set(refused), refused


def silent_watches(manager: Manager) -> Generator[None, None, None]:
    """The watches that are open say nothing more, and stay open."""
    # Each is opened anew every few seconds.
    until(lambda: manager.kubernetes.silence_streams() >= 2, "there are watches to silence")
    yield
    yield


def restarted_api_server(manager: Manager) -> Generator[None, None, None]:
    """The API server is killed in the middle of the work; the site starts it again."""
    yield
    kill_api_server(manager.environment.control_plane)
    yield


def paused_etcd(manager: Manager) -> Generator[None, None, None]:
    """For some seconds nothing can be written, and nothing answers."""
    yield
    manager.environment.pause("etcd")
    try:
        time.sleep(ETCD_PAUSE)  # The fault itself, not a wait for something.
    finally:
        manager.environment.resume("etcd")
    yield


@pytest.fixture
def manager(environment: Environment) -> Iterator[Manager]:
    """One of a test's own, with proxies of its own."""
    with environment.manager("faults", *FLAGS, prelude=SHORT_SILENCE) as made:
        yield made
    environment.wait_healed()


def work_under(manager: Manager, fault: Fault) -> Outcome:
    """A day's work."""
    return under_fault.work_under(manager, lambda: Run(manager.environment), WORK, fault)


@pytest.fixture(scope="module")
def in_peace(environment: Environment) -> Outcome:
    """The work without any fault."""
    with environment.manager("peace", *FLAGS, prelude=SHORT_SILENCE) as manager:
        return work_under(manager, peace)


@pytest.mark.parametrize(
    "fault",
    mostly_nightly(
        [
            pytest.param(lists_lag, id="lists are two seconds behind"),
            pytest.param(cloud_fault(kind="error", probability=0.3), id="three of ten calls fail"),
            pytest.param(
                cloud_fault(kind="throttle", probability=0.5, retry_after=1), id="half of the calls are throttled"
            ),
            pytest.param(cloud_fault(kind="latency", seconds=5), id="each call takes five seconds"),
            pytest.param(conflicts, id="each object's first write conflicts"),
            pytest.param(forgotten_versions, id="watches can't be resumed"),
            pytest.param(silent_watches, id="watches fall silent"),
            pytest.param(restarted_api_server, id="the API server is killed"),
            pytest.param(paused_etcd, id="etcd pauses"),
        ],
        always=2,
    ),
)
def test_it_comes_to_the_same_end_at_a_bounded_price_though(
    fault: Fault, manager: Manager, in_peace: Outcome, record_property: Callable[[str, object], None]
) -> None:
    endure(manager, lambda: Run(manager.environment), WORK, fault, in_peace, record_property)


def test_an_expired_token_stops_it_only_until_the_file_has_a_new_one(manager: Manager, in_peace: Outcome) -> None:
    cloud = manager.environment.cloud
    file = manager.directory / "token"
    first = cloud.post("admin/tokens", {"ttl_seconds": 3600})["token"]
    file.write_text(first)
    config = Config(manager.cloud.url, "unused", manager.environment.cluster["id"])
    manager.cloud_config.write_text(render(config).replace("token = unused", f"token-file = {file}"))

    def expiry(manager: Manager) -> Generator[None, None, None]:
        # Not by a short time to live, of which nobody knows whether all is prepared within it.
        path = manager.environment.site.folder.database
        with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as database:
            database.execute("UPDATE access_tokens SET expires_at = ?", (time.time(),))
        assert is_refused(Client(manager.environment.site.endpoint, first))
        yield
        until(lambda: any(call.status == 401 for call in manager.recorder.calls()), "a call is refused")
        file.write_text(cloud.post("admin/tokens", {"ttl_seconds": 3600})["token"])
        yield

    assert not difference(in_peace.state, work_under(manager, expiry).state)


def test_what_goes_beyond_a_quota_is_told_and_done_once_there_is_room(manager: Manager) -> None:
    cloud = manager.environment.cloud
    before = cloud.get_path("quotas")["quotas"]
    manager.start()
    with prepared(manager, Run(manager.environment), WORK) as run:
        began = time.monotonic()
        cloud.put("admin/quotas", {"load_balancers": 2, "routes_per_table": 1})
        try:
            service = run.service(port(9090, 31090))
            machine = run.node()
            until(lambda: "QuotaExceeded" in told(run, service) or "quota" in told(run, service), "the Service says so")
            until(lambda: route_condition(run, machine) == "True", "the node says that it has no route")
            assert not run.serves(9090, of=2)
            assert len(manager.recorder.writes(began)) <= 20
        finally:
            cloud.put("admin/quotas", {key: before[key] for key in ("load_balancers", "routes_per_table")})

        until(lambda: run.serves(9090, of=2), "the load balancer is there", SLOW)
        until(lambda: route_condition(run, machine) == "False", "the route is there", SLOW)


def is_refused(client: Client) -> bool:
    """Whether the client's token is not accepted any more."""
    try:
        client.get_path("zones")
    except AccessDenied:
        return True
    return False


def told(run: Run, name: str) -> str:
    """The Service's events."""
    events = run.kube.list(EVENTS, SPACE).items
    return "\n".join(
        f"{each['reason']}: {each['message']}" for each in events if each["involvedObject"]["name"] == name
    )


def route_condition(run: Run, machine: Json) -> str | None:
    """The status of the node's condition NetworkUnavailable."""
    node = run.get_node(machine)
    found = None if node is None else condition(node, "NetworkUnavailable")
    return None if found is None else str(found["status"])
