"""The stand-in's account with one cluster's network, for tests: without sockets, or behind a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from cloud_controller.cloud import Fence, Instance, InstanceRef
from cloud_controller.clouds.alicloud.cloud import AliCloud
from cloud_controller.clouds.alicloud.config import AccessKey, Config
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.alicloud import machines
from local.alicloud.account import ACCESS_KEY, REGION, SECRET
from local.alicloud.cloud import AliCloud as StandIn
from local.http_messages import Request

VPC, ZONE = "vpc-cluster", f"{REGION}-h"
PRODUCTS = ("ecs", "vpc", "slb", "nlb", "sts", "quotas")
CONFIG = Config("c-1", REGION, VPC, access_key=AccessKey(ACCESS_KEY, SECRET))


class Account:
    """One cluster's network in a fresh account."""

    def __init__(self) -> None:
        self.standin = StandIn()
        with self.standin.changing() as world:
            machines.add_vpc(world, VPC)
            self.vswitch = machines.add_vswitch(world, VPC, ZONE, "192.168.0.0/24")
        (self.table,) = (each["id"] for each in self.objects(machines.ROUTE_TABLE))

    def cloud(self, **config: Any) -> AliCloud:
        """The cloud as a new process sees it; its requests need no socket, and its pauses no time."""
        made = AliCloud(replace(CONFIG, **{"endpoints": dict.fromkeys(PRODUCTS, "http://stand-in"), **config}))
        made._client._http = StandInHttp(self.standin)  # type: ignore[assignment]
        made._client._sleep = lambda _: None
        return made

    def machine(self, name: str, tags: Mapping[str, str] | None = None, **more: Any) -> str:
        """The id of a new machine, of the cluster unless `tags` say otherwise."""
        with self.standin.changing() as world:
            found = {CLUSTER_TAG: "c-1"} if tags is None else tags
            return machines.add_instance(world, self.vswitch, name=name, tags=found, **more)

    def release(self, machine: str) -> None:
        """End a machine."""
        with self.standin.changing() as world:
            machines.remove_instance(world, machine)

    def add_table(self) -> str:
        """The id of another route table of the network."""
        with self.standin.changing() as world:
            return machines.add_route_table(world, VPC)

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """Everything of a kind (`machines.ROUTE`)."""
        with self.standin.changing() as world:
            return world.store.all(kind)

    def calls(self) -> dict[str, int]:
        """The calls since the last call of this, by `product.Action`."""
        made = dict(self.standin.calls)
        self.standin.calls.clear()
        return made


class StandInHttp:
    """In the place of `Http`: hands requests to the stand-in in this process."""

    def __init__(self, standin: StandIn) -> None:
        self._standin = standin

    def send(
        self,
        method: str,
        endpoint: str,
        target: str,
        *,
        what: str,  # noqa: ARG002
        headers: Mapping[str, str],
        body: bytes | None = None,
        fence: Fence,
    ) -> Any:
        fence()
        path, _, query = target.partition("?")
        lower = {"host": endpoint.partition("://")[2], **{name.lower(): value for name, value in headers.items()}}
        answer = self._standin.answer(Request(method, path, query, lower, body or b""))
        return SimpleNamespace(status=answer.status, data=answer.body, headers=answer.headers)


def describe(cloud: AliCloud, name: str, provider_id: str | None = None) -> Instance | None:
    """The machine of the node with this name."""
    ref = InstanceRef(name, provider_id)
    return cloud.instances.describe([ref])[ref]
