"""tinycloud, the example of a cloud of another distribution: in memory, so that most mutants are of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller.cloud import (
    AccessDenied,
    Cloud,
    CloudError,
    Conflict,
    InvalidConfiguration,
    NotFound,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.kube import Object
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_TAG, SERVICE_UID_TAG, LoadBalancerModel
from tests.contract.harness import UID, Snapshot
from tests.contract.wire import Wire

if TYPE_CHECKING:
    from tinycloud.cloud import Tiny

OFFERS = frozenset({"load_balancers"})
MARKS: tuple[pytest.MarkDecorator, ...] = ()
_CLUSTER = "c-1"


def running(_: pytest.FixtureRequest) -> Iterator[TinyHarness]:
    """An empty account for each test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1] / "outside_cloud"))
        yield TinyHarness()


class TinyHarness:
    """See `Harness`. Machines are those of the cloud config: they are there or not."""

    stride = 1
    load_balancer_class: str | None = None
    has_udp = True
    annotations: Mapping[str, str] = {}
    changed_annotations: Mapping[str, str] = {}
    replacing_annotations: Mapping[str, str] = {"tiny.example.com/scheme": "internal"}
    over_the_network = False
    describes_unlisted = True
    throttled = "SlowDown"
    denied = "NotAllowed"
    error_codes: Mapping[str, type[CloudError]] = {
        "NoSuchLoadBalancer": NotFound,
        "NotAllowed": AccessDenied,
        "TooMany": QuotaExceeded,
        "Busy": Conflict,
        "SlowDown": Throttled,
        "Down": Unavailable,
        "Invalid": InvalidConfiguration,
        "SomethingNew": CloudError,
    }

    def __init__(self) -> None:
        from tinycloud.api import Account, NoAnswer, Refused
        from tinycloud.client import CODES

        self.error_table = CODES
        self.account = Account()
        self.machines: dict[str, str] = {}
        self.wire = Wire(NoAnswer, Refused)

    def new_cloud(self) -> Tiny:
        from tinycloud.client import Client
        from tinycloud.cloud import Tiny

        client = Client(self.account, sleep=lambda _: None)
        client.send = self.wire.send  # type: ignore[method-assign, assignment]
        return Tiny(_CLUSTER, self.machines, client)

    def disconnect(self) -> None:
        """There are no connections."""

    def settle(self) -> None:
        """Everything happens at once."""

    def ask(self, cloud: Cloud) -> None:
        assert cloud.load_balancers is not None
        cloud.load_balancers.read()

    def snapshot(self) -> Snapshot:
        random: Mapping[str, Any] = {"id": "", "ingress": (), "created_at": ""}
        return {
            f"load balancer/{lb.model.name}": str(replace(lb, **random)) for lb in self.account.load_balancers.values()
        }

    def node(self, name: str) -> Object:
        self.machines[name] = f"10.9.0.{len(self.machines) + 1}"
        return {
            "metadata": {"name": name},
            "spec": {"providerID": f"tiny://{name}"},
            "status": {"addresses": [{"type": "InternalIP", "address": self.machines[name]}]},
        }

    def terminate(self, node: Object) -> None:
        del self.machines[node["metadata"]["name"]]

    def put_foreign(self) -> Collection[str]:
        service = {SERVICE_UID_TAG: UID, SERVICE_TAG: "default/web"}
        foreign: dict[str, dict[str, str]] = {
            "untagged": {},
            f"{_CLUSTER}-default-web-2": {CLUSTER_TAG: f"{_CLUSTER}0", **service},
            f"{_CLUSTER}-default-web-3": {CLUSTER_TAG: _CLUSTER},
            f"{_CLUSTER}-default-web-4": service,
        }
        for name, tags in foreign.items():
            self.account.create_load_balancer(LoadBalancerModel(name, tags=tags), f"token of {name}")
        return [f"load balancer/{name}" for name in foreign]

    def foreign_nodes(self) -> Sequence[Object]:
        return [{"metadata": {"name": "another"}, "spec": {"providerID": "tiny://another"}, "status": {}}]

    def put_foreign_route(self) -> str:
        raise NotImplementedError("tinycloud has no routes")

    def forwards(self, node: Object, destination: str) -> bool:
        raise NotImplementedError("tinycloud has no routes")

    def lists_lag(self) -> None:
        self.account.unlisted = set()

    def small_pages(self) -> None:
        self.account.page = 2

    def full(self) -> None:
        self.account.quota = 0
