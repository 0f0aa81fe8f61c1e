"""mycloud against its simulator: the real API on loopback, without a data plane."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson
import pytest
import urllib3

from cloud_controller import fenced_http
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
from cloud_controller.clouds.mycloud.client import CODES
from cloud_controller.clouds.mycloud.provider_ids import machine_id, provider_id
from cloud_controller.kube import Object
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_TAG, SERVICE_UID_TAG
from local.mycloud.models.common import State
from local.mycloud.models.volumes import Volume
from tests.cloud_controller.clouds.conftest import MyCloudSite
from tests.cloud_controller.clouds.mycloud.services import MAX_QPS, SCHEME
from tests.contract.harness import UID, Snapshot
from tests.contract.wire import Wire

OFFERS = frozenset({"load_balancers", "instances", "routes", "volumes"})
MARKS = (pytest.mark.integration,)
_RANDOM = frozenset({"id", "created_at", "address", "generation", "observed_generation", "state_reason"})
_HOUR = 3600.0


def running(request: pytest.FixtureRequest) -> Iterator[MyCloudHarness]:
    """A site of its own for each test, on a server that they share."""
    yield MyCloudHarness(request.getfixturevalue("site"))


class MyCloudHarness:
    """See `Harness`."""

    stride = 1
    load_balancer_class: str | None = None
    has_udp = True
    annotations: Mapping[str, str] = {}
    changed_annotations: Mapping[str, str] = {MAX_QPS: "5"}
    replacing_annotations: Mapping[str, str] = {SCHEME: "internal"}
    over_the_network = True
    describes_unlisted = True
    throttled = "Throttled"
    denied = "PermissionDenied"
    error_codes: Mapping[str, type[CloudError]] = {
        "InvalidParameter": InvalidConfiguration,
        "Unauthorized": AccessDenied,
        "PermissionDenied": AccessDenied,
        "QuotaExceeded": QuotaExceeded,
        "NotFound": NotFound,
        "Conflict": Conflict,
        "IdempotencyConflict": Conflict,
        "Throttled": Throttled,
        "Unavailable": Unavailable,
        "Internal": CloudError,
    }
    error_table = CODES

    def __init__(self, site: MyCloudSite) -> None:
        self._site = site
        self._page: int | None = None
        self._pools: list[urllib3.PoolManager] = []
        self.wire = Wire(lambda: urllib3.exceptions.ProtocolError("Connection aborted."), _refusal)

    def new_cloud(self) -> Cloud:
        cloud = self._site.new_cloud()
        client = cloud._client
        if self._page is not None:
            client._page = self._page
        self._pools.append(client._http._pool)
        request = client._http._pool.request

        def sent(method: str, url: str, **more: Any) -> Any:
            operation = f"{method} {url.removeprefix(client.endpoint).partition('?')[0]}"
            return self.wire.send(operation, method != "GET", lambda: request(method, url, **more))

        client._http._pool.request = sent  # type: ignore[method-assign, assignment]
        return cloud

    def disconnect(self) -> None:
        for pool in self._pools:
            pool.clear()

    def settle(self) -> None:
        self._site.settle()
        with self._site.context.store.write() as session:
            for volume in session.query(Volume):
                if volume.state == State.DELETING:
                    session.remove(volume.id)
                elif volume.state == State.CREATING:
                    volume.state = State.AVAILABLE
                    session.save(volume)

    def ask(self, cloud: Cloud) -> None:
        cloud.instances.list()

    def snapshot(self) -> Snapshot:
        client, table = self._site.client, self._site.client.get("networks", self._site.network["id"])["route_table_id"]
        found: dict[str, object] = {}
        for kind in ("load_balancers", "machines", "volumes", f"route_tables/{table}/routes"):
            for each in client.list(kind):
                name = each.get("name") or each["destination_cidr"]
                content = {key: value for key, value in each.items() if key not in _RANDOM}
                found[f"{kind}/{name}"] = orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode()
        return found

    def node(self, name: str) -> Object:
        return _node(self._site.machine(name.lower().replace(".", "-")))  # Names are DNS labels.

    def twins(self) -> Sequence[Object]:
        client, zone = self._site.client, self._site.subnet["zone"]
        network = client.create("networks", {"name": "other"})["id"]  # Within a network, names are unique.
        subnet = client.create("subnets", {"name": "other", "network_id": network, "zone": zone})["id"]
        cluster = client.create("clusters", {"name": "other", "network_id": network})["id"]
        elsewhere = self._site.machine("twin", subnet_id=subnet, cluster_id=cluster)
        return [self.node("twin"), _node(elsewhere)]

    def terminate(self, node: Object) -> None:
        self._site.set_machine_state(_id(node), State.TERMINATED)

    def put_foreign(self) -> Collection[str]:
        ours, name = self._site.cluster["id"], f"{self._site.cluster['id']}-default-web"
        service = {SERVICE_UID_TAG: UID, SERVICE_TAG: "default/web"}
        foreign = {
            name: {},
            f"{name}-2": {CLUSTER_TAG: f"{ours}0", **service},
            f"{name}-3": {CLUSTER_TAG: ours.upper(), **service},
            f"{name}-4": {CLUSTER_TAG: ours},
            f"{name}-5": service,
        }
        for each, tags in foreign.items():
            body = {"name": f"{each}-foreign", "network_id": self._site.network["id"], "tags": tags}
            self._site.client.create("load_balancers", body)
        self._site.settle()
        return [f"load_balancers/{each}-foreign" for each in foreign]

    def foreign_nodes(self) -> Sequence[Object]:
        tags: Sequence[dict[str, str]] = ({}, {CLUSTER_TAG: "another"})
        return [_node(self._site.machine(f"foreign-{number}", tags=each)) for number, each in enumerate(tags)]

    def put_foreign_route(self) -> str:
        machine = self._site.machine("untagged", tags={})
        table = self._site.client.get("networks", self._site.network["id"])["route_table_id"]
        route = {"destination_cidr": "100.97.0.0/24", "next_hop_machine_id": machine["id"]}
        self._site.client.post(f"route_tables/{table}/routes:batch_create", {"routes": [route]})
        return str(route["destination_cidr"])

    def forwards(self, node: Object, destination: str) -> bool:
        del node, destination  # Its machines have no check of what they send.
        return True

    @property
    def zone(self) -> str:
        return str(self._site.subnet["zone"])

    def put_foreign_volumes(self) -> Sequence[str]:
        tags: Sequence[dict[str, str]] = ({}, {CLUSTER_TAG: "another"})
        bodies = [
            {"name": f"foreign-{number}", "zone": self.zone, "size_gib": 1, "tags": each}
            for number, each in enumerate(tags)
        ]
        return [self._site.client.create("volumes", body)["id"] for body in bodies]

    def lists_lag(self) -> None:
        self._site.set_lag(_HOUR)

    def small_pages(self) -> None:
        self._page = 2

    def full(self) -> None:
        self._site.set_quotas(load_balancers=0, routes_per_table=0, volumes=0)


def _refusal(code: str, retry_after: float) -> urllib3.HTTPResponse:
    fenced_http._current.get()()  # As where the request's bytes would leave.
    status = {"Throttled": 429, "Unavailable": 503, "Internal": 500}.get(code, 400)
    body = orjson.dumps({"error": {"code": code, "message": "refused by the test"}})
    return urllib3.HTTPResponse(body, {"Retry-After": str(retry_after)}, status)


def _node(machine: dict[str, Any]) -> Object:
    return {
        "metadata": {"name": machine["name"]},
        "spec": {"providerID": provider_id(machine)},
        "status": {"addresses": [{"type": "InternalIP", "address": machine["private_ips"][0]}]},
    }


def _id(node: Object) -> str:
    found = machine_id(node["spec"]["providerID"])
    assert found is not None
    return found
