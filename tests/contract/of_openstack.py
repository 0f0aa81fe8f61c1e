"""OpenStack at the real services: each test has a project of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

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
    Overtaken,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.clouds.openstack.client import operation_of
from cloud_controller.clouds.openstack.errors import CODES
from cloud_controller.kube import Object
from local.openstack.project import Project
from tests.cloud_controller.clouds.openstack.site import Site
from tests.contract.harness import Snapshot
from tests.contract.wire import Wire

OFFERS = frozenset({"instances", "routes"})
MARKS = (pytest.mark.integration, pytest.mark.nightly)
_MAX_ROUTES = 30
"""Neutron's default for a router."""


def running(request: pytest.FixtureRequest) -> Iterator[OpenStackHarness]:
    """A project of its own for each test."""
    yield OpenStackHarness(request.getfixturevalue("openstack"))


class OpenStackHarness:
    """See `Harness`. Error codes are HTTP statuses with the service's words."""

    stride = 2
    load_balancer_class: str | None = None
    has_udp = True
    annotations: Mapping[str, str] = {}
    changed_annotations: Mapping[str, str] = {}
    replacing_annotations: Mapping[str, str] = {}
    over_the_network = True
    describes_unlisted = True
    throttled = "429"
    denied = "403 Policy does not allow this request to be performed."
    error_codes: Mapping[str, type[CloudError]] = {
        "400 Bad request": InvalidConfiguration,
        "400 RoutesExhausted: The number of routes exceeds the maximum 30.": QuotaExceeded,
        "401 The request you have made requires authentication.": AccessDenied,
        "403 Policy does not allow this request to be performed.": AccessDenied,
        "403 Listener Limit Reached": QuotaExceeded,
        "403 Maximum number of ports exceeded": QuotaExceeded,
        "403 Quota has been met for resources: Load Balancer": QuotaExceeded,
        "404 Instance could not be found.": NotFound,
        "406 Version 2.47 is not supported by the API.": InvalidConfiguration,
        "409 IpAddressInUse: Unable to complete operation for network.": Conflict,
        "409 OverQuota: Quota exceeded for resources: ['floatingip'].": QuotaExceeded,
        "410 The resource is gone": NotFound,
        "412 RevisionNumberConstraintFailed: Constrained to 2, but current revision is 3": Overtaken,
        "413 Request is too large": InvalidConfiguration,
        "409 The limit of retries is 3, and the load balancer has reached none": Conflict,
        "413 The limit has been exceeded": QuotaExceeded,
        "413 Maximum number of volumes reached": QuotaExceeded,
        "415 Unsupported media type": InvalidConfiguration,
        "422 Unprocessable entity": InvalidConfiguration,
        "429": Throttled,
        "500": Unavailable,
        "502": Unavailable,
        "503": Unavailable,
        "504": Unavailable,
    }
    error_table = CODES

    def __init__(self, site: Site) -> None:
        self._site = site
        self._config: dict[str, Any] = {}
        self._is_small = False
        self._shown: frozenset[str] | None = None
        self._names: dict[str, str] = {}
        """Of servers by ID."""
        self._hops: dict[str, str] = {}
        """Names of servers by address."""
        self._pools: list[urllib3.PoolManager] = []
        self.wire = Wire(lambda: urllib3.exceptions.ProtocolError("Connection aborted."), _refusal)

    def new_cloud(self) -> Cloud:
        cloud = self._site.cloud(router_id=self._site.router, **self._config)
        client = cloud._client
        pool, listed = client._http._pool, client.list
        request = pool.request

        def sent(method: str, url: str, **more: Any) -> Any:
            path = urlsplit(url).path
            write = method != "GET" and not path.endswith("/auth/tokens")
            answer = self.wire.send(operation_of(method, "", path), write, lambda: request(method, url, **more))
            return self._without_hidden(path, answer) if answer.status < 300 else answer

        def small(service: str, path: str, key: str, **query: Any) -> list[Object]:
            return listed(service, path, key, **query, **({"limit": 2} if self._is_small else {}))

        pool.request = sent  # type: ignore[method-assign, assignment]
        client.list = small  # type: ignore[method-assign]
        self._pools.append(pool)
        return cloud

    def disconnect(self) -> None:
        for pool in self._pools:
            pool.clear()

    def settle(self) -> None:
        """Nothing that Nova and Neutron do here goes on in the background."""

    def ask(self, cloud: Cloud) -> None:
        cloud.instances.list()

    def snapshot(self) -> Snapshot:
        api = self._site.project.api
        found: dict[str, object] = {}
        for each in api.get("compute", "servers/detail")["servers"]:
            found[f"machines/{each['name']}"] = each["status"]
        for each in api.get("network", f"routers/{self._site.router}")["router"]["routes"]:
            found[f"routes/{each['destination']}"] = self._hops.get(each["nexthop"], each["nexthop"])
        for each in api.get("network", "ports")["ports"]:
            pairs = tuple(sorted(pair["ip_address"] for pair in each["allowed_address_pairs"]))
            if each["device_id"] in self._names:
                found[f"pairs/{self._names[each['device_id']]}"] = pairs
        return found

    def node(self, name: str) -> Object:
        return self._node(self._site.project, name)

    def twins(self) -> Sequence[Object]:
        return [self.node("Twin-1.a"), self.node("twin_1 A")]

    def terminate(self, node: Object) -> None:
        self._site.project.end_server(node["spec"]["providerID"].rpartition("/")[2])

    def put_foreign(self) -> Collection[str]:
        raise NotImplementedError("the load balancers are tested apart")

    def foreign_nodes(self) -> Sequence[Object]:
        # Every server of the project is the cluster's.
        other = Project(self._site.peer)
        network = other.network("nodes", "10.1.0.0/16")
        server, (port,) = other.server("foreign", network)
        return [_node_of("foreign", server, port)]

    def put_foreign_route(self) -> str:
        self._add_routes([("100.97.0.0/24", "10.1.255.1")])
        return "100.97.0.0/24"

    def forwards(self, node: Object, destination: str) -> bool:
        return destination in self.snapshot()[f"pairs/{node['metadata']['name']}"]  # type: ignore[operator]

    def lists_lag(self) -> None:
        servers = self._site.project.api.get("compute", "servers")["servers"]
        self._shown = frozenset(each["id"] for each in servers)

    def small_pages(self) -> None:
        self._is_small = True

    def full(self) -> None:
        self._add_routes([(f"100.98.{number}.0/24", "10.1.255.1") for number in range(_MAX_ROUTES)])

    def _add_routes(self, hops: Sequence[tuple[str, str]]) -> None:
        entries = [{"destination": destination, "nexthop": hop} for destination, hop in hops]
        self._site.project.api.put(
            "network", f"routers/{self._site.router}/add_extraroutes", {"router": {"routes": entries}}
        )

    def _node(self, project: Project, name: str) -> Object:
        server, (port,) = project.server(name, self._site.nodes)
        self._names[server] = name
        self._hops |= {ip["ip_address"]: name for ip in port["fixed_ips"]}
        return _node_of(project.host_name(server).lower(), server, port)

    def _without_hidden(self, path: str, answer: urllib3.BaseHTTPResponse) -> urllib3.BaseHTTPResponse:
        """The answer; a list of servers without those that were made since lists lag."""
        if self._shown is None or not path.endswith("/servers/detail"):
            return answer
        content = orjson.loads(answer.data)
        content["servers"] = [each for each in content["servers"] if each["id"] in self._shown]
        return urllib3.HTTPResponse(orjson.dumps(content), answer.headers, answer.status)


def _node_of(name: str, server: str, port: Object) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"providerID": f"openstack:///{server}"},
        "status": {"addresses": [{"type": "InternalIP", "address": port["fixed_ips"][0]["ip_address"]}]},
    }


def _refusal(code: str, retry_after: float) -> urllib3.HTTPResponse:
    fenced_http._current.get()()  # As where the request's bytes would leave.
    status, _, words = code.partition(" ")
    body = orjson.dumps({"faultstring": words})
    return urllib3.HTTPResponse(body, {"Retry-After": str(int(retry_after or 1))}, int(status))
