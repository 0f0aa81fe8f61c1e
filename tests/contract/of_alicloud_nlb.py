"""Network load balancers of Alibaba Cloud against the stand-in, beside the machines and routes of `of_alicloud`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson
import pytest
import urllib3

from cloud_controller.cloud import Cloud
from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.clouds.alicloud.nlb.load_balancers import NetworkLoadBalancers
from cloud_controller.clouds.alicloud.patience import Patience
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_TAG, SERVICE_UID_TAG
from local.alicloud import machines
from local.alicloud.account import REGION
from local.alicloud.nlb_jobs import BALANCER, GROUP, LISTENER
from local.standin.standin import TOKEN
from tests.cloud_controller.clouds.alicloud.account import CONFIG, VPC, Account
from tests.contract.harness import UID, Snapshot
from tests.contract.of_alicloud import MARKS as MARKS
from tests.contract.of_alicloud import AliCloudHarness

OFFERS = frozenset({"load_balancers"})
_ZONES = {f"{REGION}-h": "192.168.1.0/24", f"{REGION}-k": "192.168.2.0/24"}
_RANDOM = frozenset({"id", "balancer", "ServerGroupId", "servers", "zones", "made", "groups"})
_TAG = "cloud-controller/load-balancer"
"""Of parts: the ID of their load balancer."""


def running(request: pytest.FixtureRequest) -> Iterator[AliCloudNlbHarness]:
    """An account of its own for each test, on a server that they share."""
    yield AliCloudNlbHarness(request.getfixturevalue("alicloud"), request.getfixturevalue("alicloud_url"))


class AliCloudNlbHarness(AliCloudHarness):
    """See `Harness`. Jobs are done when they are looked at for the first time."""

    load_balancer_class = "alibabacloud.com/nlb"
    changed_annotations: Mapping[str, str] = {
        f"{PREFIX}scheduler": "rr",
        f"{PREFIX}cps": "5",
        f"{PREFIX}cross-zone-enabled": "off",
    }
    replacing_annotations: Mapping[str, str] = {f"{PREFIX}ip-version": "DualStack"}
    _hidden: int | None = None

    def __init__(self, account: Account, url: str) -> None:
        super().__init__(account, url)
        account.standin.world.job_seconds = 0.0
        with account.standin.changing() as world:
            made = {zone: machines.add_vswitch(world, VPC, zone, cidr) for zone, cidr in _ZONES.items()}
        self.annotations = {f"{PREFIX}zone-maps": ",".join(f"{zone}:{vswitch}" for zone, vswitch in made.items())}

    def new_cloud(self) -> Cloud:
        made: Any = super().new_cloud()
        del made.load_balancers._kinds["clb"]
        nlb = NetworkLoadBalancers(made._client, CONFIG, Cache(), ConcurrentCalls(), sleep=lambda _: None)
        nlb._jobs.patience = Patience(seconds=0.0)
        made.load_balancers._kinds["nlb"] = nlb
        return made  # type: ignore[no-any-return]

    def ask(self, cloud: Cloud) -> None:
        assert cloud.load_balancers is not None
        cloud.load_balancers.read()

    def settle(self) -> None:
        """Also let the cloud forget tokens of load balancers that are gone, as it does after a day."""
        with self._account.standin.changing() as world:
            present = {each["id"] for each in world.store.all(BALANCER)}
            for key, kept in world.store.snapshot().get(TOKEN, {}).items():
                if kept["result"].get("LoadbalancerId", "") not in ("", *present):
                    world.store.remove(TOKEN, key)

    def snapshot(self) -> Snapshot:
        objects = {kind: self._account.objects(kind) for kind in (BALANCER, GROUP, LISTENER)}
        # Names are not unique: the cluster of the tags tells load balancers apart.
        names = {each["id"]: f"{each['name']} of {each['tags'].get(CLUSTER_TAG)}" for each in objects[BALANCER]}
        names |= {each["id"]: str(each["ServerGroupName"]) for each in objects[GROUP]}
        found: dict[str, object] = {}
        for kind, of_kind in objects.items():
            for each in of_kind:
                tags = {key: names.get(value, value) if key == _TAG else value for key, value in each["tags"].items()}
                content = {key: value for key, value in each.items() if key not in _RANDOM} | {"tags": tags}
                content["servers"] = sorted((s["ServerId"], s["Port"], s["Weight"]) for s in each.get("servers", ()))
                content["zones"] = sorted(zone["vswitch"] for zone in each.get("zones", ()))
                where = names.get(each.get("balancer") or each["tags"].get(_TAG, ""), "")
                group = names.get(each.get("ServerGroupId", ""), "")
                what = names.get(each["id"]) or f"{each['protocol']}/{each['port']}"
                text = orjson.dumps({**content, "group": group}, option=orjson.OPT_SORT_KEYS).decode()
                found[f"{kind}/{where}/{what}"] = text
        return found

    def put_foreign(self) -> Collection[str]:
        before, service = {*self.snapshot()}, {SERVICE_UID_TAG: UID, SERVICE_TAG: "default/web"}
        client = self._account.cloud()._client
        zones = [pair.split(":") for pair in self.annotations[f"{PREFIX}zone-maps"].split(",")]
        mappings = [{"ZoneId": zone, "VSwitchId": vswitch} for zone, vswitch in zones]
        foreign: Mapping[str, Mapping[str, str]] = {
            "c-1-default-web": {},
            "c-1-default-web-2": {CLUSTER_TAG: "c-10", **service},
            "c-1-default-web-3": {CLUSTER_TAG: "C-1", **service},
            "c-1-default-web-4": {CLUSTER_TAG: "c-1"},
            "c-1-default-web-5": service,
        }
        for name, tags in foreign.items():
            tag = {"Tag": [{"Key": key, "Value": value} for key, value in tags.items()]}
            asked = {"LoadBalancerName": name, "VpcId": VPC, "AddressType": "Internet", "ZoneMappings": mappings}
            lb_id = client.call("nlb", "CreateLoadBalancer", {**asked, **tag})["LoadbalancerId"]
            asked = {"ServerGroupName": f"group-of-{name}", "VpcId": VPC, "Protocol": "TCP"}
            group = client.call("nlb", "CreateServerGroup", {**asked, **tag})["ServerGroupId"]
            parts = {"LoadBalancerId": lb_id, "ServerGroupId": group}
            client.call("nlb", "CreateListener", {**parts, "ListenerPort": 8080, "ListenerProtocol": "TCP", **tag})
        self.settle()
        return self.snapshot().keys() - before

    def lists_lag(self) -> None:
        self._hidden = len(self._account.objects(BALANCER))

    def full(self) -> None:
        self._account.standin.world.quotas.load_balancers = 0

    def _shown(self, action: str, answer: urllib3.BaseHTTPResponse) -> urllib3.BaseHTTPResponse:
        """The answer; a list of load balancers without those that were made since lists lag."""
        if self._hidden is None or action != "ListLoadBalancers":
            return answer
        shown = {each["id"] for each in self._account.objects(BALANCER)[: self._hidden]}
        content = orjson.loads(answer.data)
        found = content["LoadBalancers"]
        content["LoadBalancers"] = [each for each in found if each["LoadBalancerId"] in shown]
        return urllib3.HTTPResponse(orjson.dumps(content), answer.headers, answer.status)
