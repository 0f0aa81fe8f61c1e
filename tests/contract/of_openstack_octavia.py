"""Octavia's load balancers at the real services, beside the machines and routes of `of_openstack`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson
import pytest

from cloud_controller.clouds.openstack.octavia.options import Networks
from cloud_controller.clouds.openstack.octavia.refusals import PREFIX
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_TAG, SERVICE_UID_TAG
from tests.cloud_controller.clouds.openstack.octavia.account import OctaviaAccount
from tests.contract.harness import UID, Snapshot
from tests.contract.of_openstack import OpenStackHarness

OFFERS = frozenset({"load_balancers"})
MARKS = (pytest.mark.integration, pytest.mark.nightly, pytest.mark.timeout(1200))
"""A life of a load balancer is some forty changes, each of which Octavia and a loaded machine take a second for."""
_SHOWN = {
    "listeners": ("protocol", "protocol_port", "connection_limit", "allowed_cidrs", "insert_headers", "tags"),
    "pools": ("name", "protocol", "lb_algorithm", "session_persistence", "tags"),
    "healthmonitors": ("type", "delay", "timeout", "max_retries", "max_retries_down", "url_path"),
    "members": ("address", "protocol_port", "name", "weight", "monitor_port"),
}


def running(request: pytest.FixtureRequest) -> Iterator[OctaviaHarness]:
    """A project of its own for each test."""
    site, networks = map(request.getfixturevalue, ("openstack", "openstack_networks"))
    yield OctaviaHarness(OctaviaAccount(site, networks))


class OctaviaHarness(OpenStackHarness):
    """See `Harness`. Octavia takes half a second for each change, so that interruptions after all would take hours."""

    stride = 12
    changed_annotations: Mapping[str, str] = {
        f"{PREFIX}connection-limit": "2000",
        f"{PREFIX}lb-method": "LEAST_CONNECTIONS",
        f"{PREFIX}enable-health-monitor": "true",
        f"{PREFIX}floating-subnet-tags": "silver",
    }

    def __init__(self, account: OctaviaAccount) -> None:
        shared = account.networks
        account.site.nodes, account.site.router = (shared.nodes, [shared.subnet]), shared.router
        super().__init__(account.site)
        self.wire.is_busy = _is_immutable
        self._account = account
        networks = Networks(shared.public, floating_subnet_tags="gold", subnet_id=shared.subnet["id"])
        self._config = {"load_balancers": account.options(networks=networks)}
        self.replacing_annotations: Mapping[str, str] = {f"{PREFIX}subnet-id": shared.other["id"]}

    def settle(self) -> None:
        self._account.settle()

    def snapshot(self) -> Snapshot:
        found: dict[str, object] = {}
        names, ports = {}, {}
        for lb in self._account.load_balancers():
            tags = sorted(lb["tags"])
            cluster = next((tag for tag in tags if tag.startswith(f"{CLUSTER_TAG}=")), "")
            names[lb["id"]] = name = f"{lb['name']} of {cluster}"
            ports[lb["vip_port_id"]] = name
            # A replacement's token holds the ID of what it replaced.
            shown = [tag.partition("-after-")[0] for tag in tags]
            found[f"load_balancers/{name}"] = _text([shown, lb["vip_subnet_id"], lb["provisioning_status"] == "ERROR"])
        pools = {each["id"]: each for each in self._account.parts("pools")}
        for each in self._account.parts("listeners"):
            where = f"{names[each['loadbalancers'][0]['id']]}/{each['protocol']}/{each['protocol_port']}"
            pool = pools.get(each["default_pool_id"], {}).get("name")
            found[f"listeners/{where}"] = _text([_plain("listeners", each), pool])
        monitors = {each["id"]: each for each in self._account.parts("healthmonitors")}
        for each in pools.values():
            members = [_plain("members", member) for member in self._account.members(each)]
            monitor = monitors.get(each.get("healthmonitor_id") or "")
            content = [_plain("pools", each), members, monitor and _plain("healthmonitors", monitor)]
            found[f"pools/{names[each['loadbalancers'][0]['id']]}/{each['name']}"] = _text(content)
        for each in self._account.floating_ips():
            found[f"floating_ips/{ports.get(each['port_id'], each['id'])}"] = each["description"]
        return found

    def put_foreign(self) -> Collection[str]:
        before, service = {*self.snapshot()}, {SERVICE_UID_TAG: UID, SERVICE_TAG: "default/web"}
        foreign: Mapping[str, Mapping[str, str]] = {
            "c-1-default-web": {},
            "c-1-default-web-2": {CLUSTER_TAG: "c-10", **service},
            "c-1-default-web-3": {CLUSTER_TAG: "C-1", **service},
            "c-1-default-web-4": {CLUSTER_TAG: "c-1"},
            "c-1-default-web-5": service,
        }
        for name, tags in foreign.items():
            texts = [f"{key}={value}" for key, value in tags.items()]
            listener = {"protocol": "TCP", "protocol_port": 8080, "tags": texts}
            listener |= {"default_pool": {"name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "tags": texts}}
            body = {
                "name": name,
                "vip_subnet_id": self._account.networks.subnet["id"],
                "tags": texts,
                "listeners": [listener],
            }
            self._account.api.post("load-balancer", "lbaas/loadbalancers", {"loadbalancer": body})
            self.settle()
        return self.snapshot().keys() - before

    def lists_lag(self) -> None:
        """They do not: Octavia's lists and reads are of one database, and creations have no token of its API's."""

    def full(self) -> None:
        project = self._site.project.id
        self._site.peer.admin.put("load-balancer", f"lbaas/quotas/{project}", {"quota": {"loadbalancer": 0}})


def _is_immutable(answer: Any) -> bool:
    return bool(answer.status == 409 and b"immutable" in answer.data)


def _plain(kind: str, view: Mapping[str, Any]) -> dict[str, Any]:
    return {name: view[name] for name in _SHOWN[kind]}


def _text(content: object) -> str:
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode()
