"""A running API of mycloud with a network and a cluster, but no data plane: tests move states on by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.clouds.mycloud.cloud import MyCloud
from cloud_controller.clouds.mycloud.config import Config
from cloud_controller.clouds.mycloud.permissions import globs
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.addresses import AddressBlock
from local.mycloud.models.balancing import LoadBalancerRecord
from local.mycloud.models.common import State
from local.mycloud.models.compute import Cluster, MachineRecord
from local.mycloud.store import Store

# The server itself is imported when it starts: most tests here do without, and would wait a second for it.
if TYPE_CHECKING:
    from fastapi import FastAPI

    from local.mycloud.context import Context

TOKEN = "the-token-of-this-test"

Json = dict[str, Any]


class _Kubeconfigs:
    def kubeconfig(self, cluster: Cluster, ttl: timedelta) -> str:
        return f"kubeconfig of {cluster.id} for {ttl.total_seconds():g} s"


@dataclass
class MyCloudSite:
    """The API, a client of it, and one cluster in one network."""

    endpoint: str
    context: Context
    client: Client
    network: Json
    subnet: Json
    cluster: Json
    calls_before: dict[str, int]
    token: str = field(default=TOKEN, repr=False)
    controllers_token: str = field(default="", repr=False)
    """What a daemon gets: it allows what the table of permissions says, so that every test holds the code to that."""

    def __post_init__(self) -> None:
        self.controllers_token = self.issue_token(operations=globs())

    @property
    def cloud(self) -> MyCloud:
        """The cluster as its controllers see it, from a fresh start."""
        return MyCloud(Config(self.endpoint, self.controllers_token, self.cluster["id"]))

    def new_cloud(self, **config: Any) -> MyCloud:
        """The same, with a cloud config that differs in this."""
        given = {"endpoint": self.endpoint, "token": self.controllers_token, "cluster_id": self.cluster["id"]}
        cloud = MyCloud(Config(**{**given, **config}))
        cloud._client._sleep = lambda _: None  # Pauses before a call is made again are the client's tests' business.
        return cloud

    def machine(self, name: str, *, tags: Json | None = None, state: State = State.RUNNING, **more: Any) -> Json:
        """A machine with the cluster's tag, in this state."""
        body = {
            "name": name,
            "subnet_id": self.subnet["id"],
            "cluster_id": self.cluster["id"],
            "type": "m1.small",
            "role": "worker",
            "tags": {CLUSTER_TAG: self.cluster["id"]} if tags is None else tags,
            **more,
        }
        machine = self.client.create("machines", body)
        self.set_machine_state(machine["id"], state)
        return self.client.get("machines", machine["id"])

    def simulate_machines(self, count: int, name_prefix: str = "node-", *, tags: Json | None = None) -> list[Json]:
        """Running machines with the cluster's tag, by the thousand; their names are PREFIX00000 and so on."""
        body = {
            "cluster_id": self.cluster["id"],
            "subnet_ids": [self.subnet["id"]],
            "count": count,
            "name_prefix": name_prefix,
            "tags": {CLUSTER_TAG: self.cluster["id"]} if tags is None else tags,
        }
        self.client.post("admin/machines", body)
        return [each for each in self.client.list("machines") if each["name"].startswith(name_prefix)]

    def set_machine_state(self, id: str, state: State) -> None:
        """What a boot or an end of the machine would come to."""
        with self.context.store.write() as session:
            machine = session.get(MachineRecord, id)
            machine.state = state
            session.save(machine)

    def age_machines(self) -> None:
        """Let every machine have been made long ago, so that also lists that lag show it."""
        with self.context.store.write() as session:
            for machine in session.query(MachineRecord):
                machine.created_at = "2026-01-01T00:00:00Z"
                session.save(machine)

    def forget_machine(self, id: str) -> None:
        """What an hour after its termination comes to."""
        with self.context.store.write() as session:
            session.remove(id)

    def settle(self) -> None:
        """What the data plane would do: open what is made or changed, remove what is deleted."""
        with self.context.store.write() as session:
            for lb in session.query(LoadBalancerRecord):
                if lb.state == State.DELETING:
                    session.remove(lb.id)
                elif lb.state in (State.CREATING, State.UPDATING):
                    lb.state, lb.observed = State.AVAILABLE, lb.generation
                    session.save(lb)

    def set_load_balancer_state(self, id: str, state: str, reason: str | None = None) -> None:
        """What the data plane would report of a load balancer that it can, or can't, open."""
        with self.context.store.write() as session:
            lb = session.get(LoadBalancerRecord, id)
            lb.state, lb.state_reason = State(state), reason
            session.save(lb)

    def load_balancers(self) -> list[Json]:
        """All load balancers of the account."""
        return self.client.list("load_balancers")

    def fault(
        self, operation: str, kind: str, count: int | None = 1, retry_after: float = 0, **more: float | str
    ) -> None:
        """Make calls of `METHOD PATH` (a glob) fail or wait: `count` of them, or all until `clear_faults`.

        `more`: `probability`, `after`, `seconds` (latency), `status` and `code` (error), as `docs/mycloud-api.md` says.
        """
        body = {"operation": operation, "kind": kind, "count": count, "retry_after": retry_after, **more}
        self.client.post("admin/faults", body)

    def clear_faults(self) -> None:
        """Let every call through again."""
        self.client.delete_path("admin/faults")

    def set_quotas(self, **limits: int) -> None:
        """Set these limits (`routes_per_table`, `load_balancers`, `listeners_per_load_balancer`, `volumes`)."""
        self.client.put("admin/quotas", limits)

    def set_lag(self, seconds: float) -> None:
        """Let lists show what is made only so many seconds later."""
        self.client.put("admin/consistency", {"lag_seconds": seconds})

    def issue_token(self, ttl_seconds: int = 3600, operations: Sequence[str] | None = None) -> str:
        """A further token, which may do what these globs over `METHOD PATH` allow, or all that users call."""
        asked = {"ttl_seconds": ttl_seconds, "operations": None if operations is None else [*operations]}
        return str(self.client.post("admin/tokens", asked)["token"])

    def calls(self, operation: str) -> int:
        """How often `METHOD /v1/route/template` was called since the site was made."""
        return self.context.calls.all().get(operation, 0) - self.calls_before.get(operation, 0)

    def writes(self) -> int:
        """How many calls may have changed something, other than the tests' own faults."""
        harmless = ("GET ", "POST /v1/access:check")
        operations = (op for op in self.context.calls.all() if not op.startswith(harmless) and "/admin/" not in op)
        return sum(self.calls(op) for op in operations)


@dataclass(frozen=True)
class _Server:
    """The HTTP server, kept for the whole session because making the application is slow; sites share it in turn."""

    app: FastAPI
    endpoint: str
    first: Context


@pytest.fixture(scope="session")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Server]:
    from local.http_server import config, serving
    from local.mycloud.api import create_app
    from local.mycloud.context import Context

    store = Store(tmp_path_factory.mktemp("mycloud") / "first.db")
    first = Context(AddressBlock(80), store, TOKEN, _Kubeconfigs(), first_port=1024)
    app = create_app(first)
    with closing(store), serving(config(app, "127.80.0.1")) as endpoint:
        yield _Server(app, endpoint, first)


@contextmanager
def _running_site(server: _Server, database: Path) -> Iterator[MyCloudSite]:
    store = Store(database)
    context = replace(server.first, store=store)
    server.app.state.context = context
    context.faults.clear()
    context.consistency.lag_seconds = 0
    before = context.calls.all()
    try:
        client = Client(server.endpoint, TOKEN)
        network = client.create("networks", {"name": "n"})
        subnet = client.create("subnets", {"name": "s", "network_id": network["id"], "zone": "zone-b"})
        cluster = client.create("clusters", {"name": "c", "network_id": network["id"]})
        yield MyCloudSite(server.endpoint, context, client, network, subnet, cluster, before)
    finally:
        store.close()


@pytest.fixture
def site(_server: _Server, tmp_path: Path) -> Iterator[MyCloudSite]:
    """A site of its own for each test."""
    with _running_site(_server, tmp_path / "mycloud.db") as site:
        yield site


@pytest.fixture
def new_site(_server: _Server, tmp_path: Path) -> Callable[[], AbstractContextManager[MyCloudSite]]:
    """Site after site, for tests that live through many lives: only one at a time."""
    numbers = itertools.count()
    return lambda: _running_site(_server, tmp_path / f"mycloud-{next(numbers)}.db")
