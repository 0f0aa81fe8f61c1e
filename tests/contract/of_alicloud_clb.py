"""Classic load balancers of Alibaba Cloud against the stand-in, beside the machines and routes of `of_alicloud`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import orjson
import pytest
import urllib3

from cloud_controller.cloud import Cloud
from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_TAG, SERVICE_UID_TAG
from local.alicloud.clb_balancers import CLB, EXTENSION, GROUP, LISTENER
from local.standin.standin import TOKEN
from tests.cloud_controller.clouds.alicloud.account import Account
from tests.contract.harness import UID, Snapshot
from tests.contract.of_alicloud import MARKS as MARKS
from tests.contract.of_alicloud import AliCloudHarness

OFFERS = frozenset({"load_balancers"})
_RANDOM = frozenset({"id", "balancer", "listener", "VServerGroupId", "DomainExtensionId", "address", "made", "settles"})


def running(request: pytest.FixtureRequest) -> Iterator[AliCloudClbHarness]:
    """An account of its own for each test, on a server that they share."""
    yield AliCloudClbHarness(request.getfixturevalue("alicloud"), request.getfixturevalue("alicloud_url"))


class AliCloudClbHarness(AliCloudHarness):
    """See `Harness`."""

    changed_annotations: Mapping[str, str] = {f"{PREFIX}scheduler": "rr", f"{PREFIX}delete-protection": "off"}
    _hidden: int | None = None

    def __init__(self, account: Account, url: str) -> None:
        super().__init__(account, url)
        self.replacing_annotations = {f"{PREFIX}address-type": "intranet", f"{PREFIX}vswitch-id": account.vswitch}

    def ask(self, cloud: Cloud) -> None:
        assert cloud.load_balancers is not None
        cloud.load_balancers.read()

    def settle(self) -> None:
        """Also let the cloud forget tokens of load balancers that are gone, as it does after a day."""
        with self._account.standin.changing() as world:
            present = {each["id"] for each in world.store.all(CLB)}
            for key, kept in world.store.snapshot().get(TOKEN, {}).items():
                if kept["result"].get("LoadBalancerId") not in present:
                    world.store.remove(TOKEN, key)

    def snapshot(self) -> Snapshot:
        objects = {kind: self._account.objects(kind) for kind in (CLB, GROUP, LISTENER, EXTENSION)}
        names = {each["id"]: each["name"] for each in (*objects[CLB], *objects[GROUP])}
        found: dict[str, object] = {}
        for kind, of_kind in objects.items():
            for each in of_kind:
                where = names.get(each.get("balancer", ""), "")
                what = each.get("name") or each.get("Domain") or f"{each['protocol']}/{each['port']}"
                content = {key: value for key, value in each.items() if key not in _RANDOM}
                group = names.get(each.get("VServerGroupId", ""), "")
                text = orjson.dumps({**content, "group": group}, option=orjson.OPT_SORT_KEYS).decode()
                found[f"{kind}/{where}/{what}"] = text
        return found

    def put_foreign(self) -> Collection[str]:
        before, service = {*self.snapshot()}, {SERVICE_UID_TAG: UID, SERVICE_TAG: "default/web"}
        client = self._account.cloud()._client
        foreign: Mapping[str, Mapping[str, str]] = {
            "k8s-default-web": {},
            "k8s-default-web-2": {CLUSTER_TAG: "c-10", **service},
            "k8s-default-web-3": {CLUSTER_TAG: "C-1", **service},
            "k8s-default-web-4": {CLUSTER_TAG: "c-1"},
            "k8s-default-web-5": service,
        }
        for name, tags in foreign.items():
            tag = {"Tag": [{"Key": key, "Value": value} for key, value in tags.items()]}
            asked = {"LoadBalancerName": name, "InstanceChargeType": "PayByCLCU", "AddressType": "internet"}
            lb = {"LoadBalancerId": client.call("slb", "CreateLoadBalancer", {**asked, **tag})["LoadBalancerId"]}
            group = client.call("slb", "CreateVServerGroup", {**lb, "VServerGroupName": "tcp-8080", **tag})
            asked = {**lb, "ListenerPort": "8080", "Bandwidth": "-1", "VServerGroupId": group["VServerGroupId"]}
            client.call("slb", "CreateLoadBalancerTCPListener", {**asked, **tag})
        return self.snapshot().keys() - before

    def lists_lag(self) -> None:
        self._hidden = len(self._account.objects(CLB))

    def full(self) -> None:
        self._account.standin.world.quotas.load_balancers = 0

    def _shown(self, action: str, answer: urllib3.BaseHTTPResponse) -> urllib3.BaseHTTPResponse:
        """The answer; a list of load balancers without those that were made since lists lag."""
        if self._hidden is None or action != "DescribeLoadBalancers":
            return answer
        shown = {each["id"] for each in self._account.objects(CLB)[: self._hidden]}
        content = orjson.loads(answer.data)
        found = content["LoadBalancers"]["LoadBalancer"]
        content["LoadBalancers"]["LoadBalancer"] = [each for each in found if each["LoadBalancerId"] in shown]
        return urllib3.HTTPResponse(orjson.dumps(content), answer.headers, answer.status)
