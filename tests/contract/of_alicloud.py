"""Alibaba Cloud against its stand-in: the protocol over HTTP, every request and answer checked against the SDK."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
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
from cloud_controller.clouds.alicloud.cloud import AliCloud
from cloud_controller.clouds.alicloud.errors import CODES
from cloud_controller.clouds.alicloud.requests import is_read
from cloud_controller.kube import Object
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.alicloud import machines
from local.alicloud.account import REGION
from tests.cloud_controller.clouds.alicloud.account import CONFIG, PRODUCTS, Account
from tests.contract.harness import Snapshot, by_code
from tests.contract.wire import Wire

OFFERS = frozenset({"instances", "routes"})
MARKS = (pytest.mark.integration,)


def running(request: pytest.FixtureRequest) -> Iterator[AliCloudHarness]:
    """An account of its own for each test, on a server that they share."""
    yield AliCloudHarness(request.getfixturevalue("alicloud"), request.getfixturevalue("alicloud_url"))


class AliCloudHarness:
    """See `Harness`."""

    stride = 1
    load_balancer_class: str | None = None
    has_udp = True
    annotations: Mapping[str, str] = {}
    changed_annotations: Mapping[str, str] = {}
    replacing_annotations: Mapping[str, str] = {}
    over_the_network = True
    describes_unlisted = False
    throttled = "Throttling.User"
    denied = "Forbidden.RAM"
    error_codes: Mapping[str, type[CloudError]] = by_code(
        {
            Throttled: (
                "Throttling Throttling.User Throttling.Api Throttling.Resource Rejected.Throttling ApiFlowControl"
                " TooManyRequests QpsLimitExceeded"
            ),
            AccessDenied: (
                "Forbidden Forbidden.RAM Forbidden.SubUser NoPermission NoPermission.SLR UnauthorizedOperation"
                " NotAuthorized AccessDenied InvalidAccessKeyId.NotFound InvalidAccessKeyId.Inactive"
                " InvalidAccessKeySecret InactiveAccessKey InvalidSecurityToken.Expired MissingSecurityToken"
                " MalformedSecurityToken SignatureDoesNotMatch IncompleteSignature InvalidTimeStamp.Expired"
                " SignatureNonceUsed AuthenticationFail.OIDCToken.Expired EntityNotExist.Role"
                " InvalidParameter.OIDCProviderArn OIDCToken.Invalid"
            ),
            Unavailable: (
                "InternalError ServiceUnavailable UnknownError SystemBusy OperationFailed.SystemBusy RequestTimeout"
                " BackendServer.error LastTokenProcessing IdempotentProcessing OperationFailed.LastTokenProcessing"
            ),
            InvalidConfiguration: (
                "VSwitchAvailableIpNotExist VSwitchNotExist SecurityGroupNotExist CertificateNotExist"
                " ResourceGroupNotExist EipNotExist InvalidParameter InvalidParameter.Bandwidth InvalidCIDRBlock"
                " IllegalParam.ZoneMappings MissingParam.RouteTableId MissingParameter MalformedParameter"
                " UnsupportedRegion NotSupportedRegion Mismatch.VpcId ParamError MandatoryParameter"
                " InvalidAction.NotFound InvalidApi.NotFound InvalidProduct.NotFound InvalidRegionId.NotFound"
            ),
            NotFound: (
                "InvalidLoadBalancerId.NotFound InvalidInstanceId.NotFound InvalidRouteTableId.NotFound"
                " ResourceNotFound.serverGroup ResourceNotFound.loadBalancer RspoolVipExist.NotExist"
                " InvalidVpcId.NotExist VPC_ROUTE_ENTRY_NOT_EXIST VPC_ROUTER_NOT_FOUND"
            ),
            QuotaExceeded: (
                "QuotaExceeded QuotaExceeded.RouteEntry QuotaExceeded.LoadBalancersNum ResourceQuotaExceeded.listener"
                " LimitExceeded TooManyRequest RuleExceedLimit VPC_ROUTE_ENTRY_QUOTA OperationDenied.NoStock"
                " InsufficientCapacity NotEnoughBalance Account.Arrearage"
            ),
            Conflict: (
                "OperationConflict Conflict.Lock TaskConflict OperationFailed.ListenerStatusNotSupport"
                " ListenerStatusNotSupport IncorrectStatus IncorrectStatus.loadBalancer IncorrectVpcStatus"
                " IncorrectRouteEntryStatus InvalidStatus.RouteEntry ResourceInConfiguring"
                " ResourceInConfiguring.loadBalancer BackendServer.configuring ServiceIsConfiguring ServiceIsStopping"
                " ServiceIsStarting ResourceInUse.serverGroup DependencyViolation.RouteEntry"
                " OperationDenied.DeleteProtectionIsOn DeleteProtectionIsOn DeletionProtectionEnabled"
                " InvalidCIDRBlock.Duplicate VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE VPC_ROUTE_ENTRY_STATUS_ERROR"
                " ResourceAlreadyExist.listener ResourceAlreadyAssociated.serverGroup IdempotentParameterMismatch"
                " IdempotenceParamNotMatch"
            ),
            CloudError: "SomethingNew",
        }
    )
    error_table = CODES

    def __init__(self, account: Account, url: str) -> None:
        self._account = account
        self._url = url
        self._is_small = False
        self._hidden_from: int | None = None
        self._pools: list[urllib3.PoolManager] = []
        self.wire = Wire(lambda: urllib3.exceptions.ProtocolError("Connection aborted."), _refusal)

    def new_cloud(self) -> Cloud:
        cloud = AliCloud(replace(CONFIG, endpoints=dict.fromkeys(PRODUCTS, self._url)))
        client = cloud._client
        client._sleep = lambda _: None
        pool, call = client._http._pool, client.call
        request = pool.request

        def sent(method: str, url: str, **more: Any) -> Any:
            action = more["headers"]["x-acs-action"]
            answer = self.wire.send(action, not is_read(action), lambda: request(method, url, **more))
            return self._shown(action, answer) if answer.status < 300 else answer

        def small(product: str, action: str, parameters: Mapping[str, Any], **more: Any) -> dict[str, Any]:
            sizes = dict.fromkeys({"MaxResult", "MaxResults", "PageSize"} & parameters.keys(), 2)
            return call(product, action, {**parameters, **sizes} if self._is_small else parameters, **more)

        pool.request = sent  # type: ignore[method-assign, assignment]
        client.call = small  # type: ignore[method-assign]
        self._pools.append(pool)
        return cloud

    def disconnect(self) -> None:
        for pool in self._pools:
            pool.clear()

    def settle(self) -> None:
        with self._account.standin.changing():
            pass

    def ask(self, cloud: Cloud) -> None:
        cloud.instances.list()

    def snapshot(self) -> Snapshot:
        found: dict[str, object] = {}
        for each in self._account.objects(machines.INSTANCE):
            found[f"machines/{each['name']}"] = (each["status"], tuple(sorted(each["tags"].items())))
        for each in self._account.objects(machines.ROUTE):
            found[f"routes/{each['table']}/{each['cidr']}"] = each["hop"]
        for each in self._account.objects(machines.ENI):
            found[f"interfaces of {each['instance']}"] = each["source_check"]
        return found

    def node(self, name: str) -> Object:
        return self._node(self._account.machine(name), name)

    def twins(self) -> Sequence[Object]:
        return [self.node("twinZ"), self.node("TwinZ")]

    def terminate(self, node: Object) -> None:
        self._account.release(node["spec"]["providerID"].partition(".")[2])

    def put_foreign(self) -> Collection[str]:
        raise NotImplementedError("the cloud has no load balancers yet")

    def foreign_nodes(self) -> Sequence[Object]:
        tags: Sequence[dict[str, str]] = ({}, {CLUSTER_TAG: "another"}, {"ack.aliyun.com": "another"})
        names = [f"foreign-{number}" for number in range(len(tags))]
        return [self._node(self._account.machine(name, each), name) for name, each in zip(names, tags, strict=True)]

    def put_foreign_route(self) -> str:
        machine, destination = self._account.machine("untagged", {}), "100.97.0.0/24"
        entry = {"RouteTableId": self._account.table, "DstCidrBlock": destination, "NextHop": machine}
        self._account.cloud()._client.call(
            "vpc", "CreateRouteEntries", {"RouteEntries": [{**entry, "NextHopType": "Instance"}]}
        )
        return destination

    def forwards(self, node: Object, destination: str) -> bool:
        del destination
        machine = node["spec"]["providerID"].partition(".")[2]
        return self.snapshot()[f"interfaces of {machine}"] is False

    def lists_lag(self) -> None:
        self._hidden_from = len(self._account.objects(machines.INSTANCE))

    def small_pages(self) -> None:
        self._is_small = True

    def full(self) -> None:
        self._account.standin.world.quotas.custom_routes = 0

    def _node(self, machine: str, name: str) -> Object:
        (found,) = (each for each in self._account.objects(machines.ENI) if each["instance"] == machine)
        return {
            "metadata": {"name": name.lower()},
            "spec": {"providerID": f"{REGION}.{machine}"},
            "status": {"addresses": [{"type": "InternalIP", "address": found["addresses"][0]}]},
        }

    def _shown(self, action: str, answer: urllib3.BaseHTTPResponse) -> urllib3.BaseHTTPResponse:
        """The answer; a list of machines without those that were made since lists lag."""
        if self._hidden_from is None or action != "DescribeInstances":
            return answer
        shown = {each["id"] for each in self._account.objects(machines.INSTANCE)[: self._hidden_from]}
        content = orjson.loads(answer.data)
        found = content["Instances"]["Instance"]
        content["Instances"]["Instance"] = [each for each in found if each["InstanceId"] in shown]
        return urllib3.HTTPResponse(orjson.dumps(content), answer.headers, answer.status)


def _refusal(code: str, retry_after: float) -> urllib3.HTTPResponse:
    fenced_http._current.get()()  # As where the request's bytes would leave.
    status = {"ServiceUnavailable": 503, "InternalError": 500}.get(code, 400)
    body = orjson.dumps({"Code": code, "Message": "refused by the test", "RequestId": "R-0"})
    return urllib3.HTTPResponse(body, {"x-acs-retry-after": str(int(retry_after * 1000))}, status)
