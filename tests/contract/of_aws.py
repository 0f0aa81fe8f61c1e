"""AWS against moto: network load balancers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

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
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.errors import CODES
from cloud_controller.clouds.aws.names import LOAD_BALANCER_TAG
from cloud_controller.kube import Object
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_TAG, SERVICE_UID_TAG
from tests.cloud_controller.clouds.aws.conftest import CLUSTER, IMAGE, AwsAccount, tag_list
from tests.cloud_controller.clouds.aws.services import TYPE, named
from tests.contract.aws_account import ec2, elb, elbv2, instances, snapshot
from tests.contract.harness import UID, Snapshot, by_code
from tests.contract.wire import Wire

OFFERS = frozenset({"load_balancers", "instances", "routes"})
MARKS = (pytest.mark.integration,)
_SERVICES = ("ec2", "elb", "elbv2", "service-quotas", "sts", "eks")
_READS = ("Describe", "Get", "List")
_LISTS = {
    ("elb", "DescribeLoadBalancers"): ("LoadBalancerDescriptions", "LoadBalancerName", "LoadBalancerNames"),
    ("elbv2", "DescribeLoadBalancers"): ("LoadBalancers", "LoadBalancerName", "Names"),
    ("elbv2", "DescribeTargetGroups"): ("TargetGroups", "TargetGroupName", "Names"),
}
"""Lists that lag: the key of their objects, of an object's name, and the parameter that makes it a read by name."""


def running(request: pytest.FixtureRequest) -> Iterator[AwsHarness]:
    """An empty account for each test, on moto's server that they share."""
    harness = AwsHarness(request.getfixturevalue("account"))
    try:
        yield harness
    finally:
        harness.release()


class AwsHarness:
    """See `Harness`. boto3's clients are slow to make: all processes share them, each with its own fence."""

    stride = 2
    load_balancer_class: str | None = None
    has_udp = True
    annotations: Mapping[str, str] = {TYPE: "nlb"}
    changed_annotations: Mapping[str, str] = named(
        connection_idle_timeout=600,
        healthcheck_healthy_threshold=5,
        target_group_attributes="deregistration_delay.timeout_seconds=30",
        cross_zone_load_balancing_enabled=True,
        additional_resource_tags="team=web",
        load_balancer_source_ranges="10.0.0.0/8",
    )
    replacing_annotations: Mapping[str, str] = named(scheme="internal")
    over_the_network = True
    describes_unlisted = True
    throttled = "Throttling"
    denied = "AccessDenied"
    error_codes: Mapping[str, type[CloudError]] = by_code(
        {
            Throttled: (
                "Throttling DependencyThrottle EC2ThrottledException RequestLimitExceeded RequestThrottled SlowDown"
                " ThrottledException TooManyRequestsException"
            ),
            AccessDenied: (
                "AccessDenied UnauthorizedOperation NotAuthorized AuthFailure Blocked OptInRequired PendingVerification"
                " ExpiredToken RequestExpired InvalidClientTokenId InvalidIdentityToken IDPRejectedClaim"
                " SignatureDoesNotMatch IncompleteSignature MissingAuthenticationToken UnrecognizedClientException"
                " InvalidAccessKeyId RegionDisabledException"
            ),
            Unavailable: (
                "ServiceUnavailable InternalError InternalFailure Unavailable HealthUnavailable IDPCommunicationError"
            ),
            InvalidConfiguration: (
                "ALPNPolicyNotFound AllocationIdNotFound AvailabilityZoneNotSupported CertificateNotFound"
                " DuplicateTagKeys SSLPolicyNotFound SubnetNotFound InvalidParameterValue InvalidInstanceID.Malformed"
                " InvalidInstance InvalidConfigurationRequest InvalidSecurityGroup InvalidSubnet InvalidScheme"
                " MissingParameter MalformedQueryString UnknownParameter UnsupportedOperation UnsupportedProtocol"
                " ValidationError IncompatibleProtocols"
            ),
            NotFound: (
                "InvalidInstanceID.NotFound InvalidGroup.NotFound InvalidRoute.NotFound LoadBalancerNotFound"
                " TargetGroupNotFound ListenerNotFound PolicyNotFound NoSuchResourceException"
            ),
            QuotaExceeded: (
                "RouteLimitExceeded RulesPerSecurityGroupLimitExceeded TargetGroupAssociationLimit TooManyLoadBalancers"
                " TooManyPolicies TooManyTags InsufficientFreeAddressesInSubnet QuotaExceededException"
                " TooManyUniqueTargetGroupsPerLoadBalancer"
            ),
            Conflict: (
                "DuplicateLoadBalancerName DuplicateListener DuplicatePolicyName InvalidPermission.Duplicate"
                " InvalidGroup.Duplicate RouteAlreadyExists DependencyViolation ResourceInUse InvalidGroup.InUse"
                " IncorrectInstanceState InvalidState InvalidTarget OperationNotPermitted PriorRequestNotComplete"
            ),
            CloudError: "SomethingNew",
        }
    )
    error_table = CODES

    def __init__(self, account: AwsAccount) -> None:
        self._account = account
        self._small_pages = False
        self._listed: set[str] | None = None
        self.wire = Wire(lambda: ConnectionClosedError(endpoint_url=account.endpoint), _refusal)
        self._fencing = account.new_cloud()._api
        self._clients = {service: self._fencing._client(service, "") for service in _SERVICES}
        for client in self._clients.values():
            session = client._endpoint.http_session
            session.send = self._sending(type(session).send.__get__(session))
            client.meta.events.unregister("before-send", self._fencing._fence_request)
            client.meta.events.register("before-send", _note_operation)

    def release(self) -> None:
        """Leave the clients as they were before."""
        for client in self._clients.values():
            del client._endpoint.http_session.send
            client.meta.events.unregister("before-send", self._fencing._fence_request)
            client.meta.events.unregister("before-send", _note_operation)

    def _sending(self, send: Any) -> Any:
        def sent(request: Any) -> Any:
            operation = request.operation
            return self.wire.send(operation, not operation.startswith(_READS), lambda: send(request))

        return sent

    def new_cloud(self) -> Cloud:
        cloud = self._account.new_cloud()
        api = cloud._api
        api._sleep = lambda _: None
        api._clients = {**self._clients}  # Where its credentials are refused, it makes new ones.
        self.disconnect()
        for client in self._clients.values():
            client.meta.events.unregister("before-send", self._fencing._fence_request)
            client.meta.events.register_first("before-send", api._fence_request)
        self._fencing = api
        self._alter_lists(api)
        return cloud

    def _alter_lists(self, api: Api) -> None:
        real = api.call

        def call(service: str, operation: str, /, **params: Any) -> dict[str, Any]:
            key, name, by_name = _LISTS.get((service, operation), ("", "", ""))
            if self._small_pages and operation == "DescribeLoadBalancers" and by_name not in params:
                params["PageSize"] = 2
            if self._small_pages and "MaxResults" in params:
                params["MaxResults"] = 2
            answer = real(service, operation, **params)
            if self._listed is None:
                return answer
            if key in answer and by_name not in params:
                answer[key] = [each for each in answer[key] if each[name] in self._listed]
            elif operation == "DescribeInstances" and "InstanceIds" not in params:
                for each in answer["Reservations"]:
                    each["Instances"] = [one for one in each["Instances"] if one["InstanceId"] in self._listed]
            return answer

        api.call = call  # type: ignore[method-assign]

    def disconnect(self) -> None:
        for client in self._clients.values():
            client._endpoint.http_session._manager.clear()

    def settle(self) -> None:
        """moto has finished whatever it answered."""

    def ask(self, cloud: Cloud) -> None:
        cloud.instances.list()

    def snapshot(self) -> Snapshot:
        return snapshot()

    def node(self, name: str) -> Object:
        del name  # AWS names machines.
        return _node(self._account.launch()[0])

    def twins(self) -> Sequence[Object]:
        one, ec2 = self._account.launch()[0], self._account.ec2
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]  # In another network, one may have its address.
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/16")["Subnet"]["SubnetId"]
        tags: Any = [{"ResourceType": "instance", "Tags": one["Tags"]}]
        address = one["PrivateIpAddress"]
        made = ec2.run_instances(
            ImageId=IMAGE, MinCount=1, MaxCount=1, SubnetId=subnet, PrivateIpAddress=address, TagSpecifications=tags
        )
        return [_node(each) for each in (one, *self._account.instances([made["Instances"][0]["InstanceId"]]))]

    def terminate(self, node: Object) -> None:
        self._account.ec2.terminate_instances(InstanceIds=[_id(node)])

    def put_foreign(self) -> Collection[str]:
        ec2, elbv2, elb = self._account.ec2, self._account.elbv2, self._account.elb
        service = {SERVICE_UID_TAG: UID, SERVICE_TAG: "default/web"}
        foreign: dict[str, dict[str, str]] = {
            "untagged": {},
            "another-cluster": {CLUSTER_TAG: f"{CLUSTER}0", **service, LOAD_BALANCER_TAG: "k8s-web"},
            "no-service": {CLUSTER_TAG: CLUSTER},
            "no-cluster": {**service, LOAD_BALANCER_TAG: "k8s-web"},
        }
        keys: list[str] = []
        for what, tags in foreign.items():
            name = f"k8s-default-{what}"
            listed: Any = tag_list(tags)
            more: Any = {"Tags": listed} if listed else {}
            kind: Any = {"Name": name, "Type": "network", "Scheme": "internet-facing"}
            elbv2.create_load_balancer(**kind, Subnets=[self._account.public_subnets[0]], **more)
            elbv2.create_target_group(Name=name, Protocol="TCP", Port=80, VpcId=self._account.vpc_id, **more)
            group = ec2.create_security_group(GroupName=name, Description="foreign", VpcId=self._account.vpc_id)
            if listed:
                ec2.create_tags(Resources=[group["GroupId"]], Tags=listed)
            elb.create_load_balancer(
                LoadBalancerName=f"k8s-{what}",
                Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 30080}],
                Subnets=[self._account.public_subnets[0]],
                **more,
            )
            keys += [f"network/{name}", f"target group/{name}", f"security group/{name}", f"classic/k8s-{what}"]
        return keys

    def foreign_nodes(self) -> Sequence[Object]:
        tags: Sequence[dict[str, str]] = ({}, {f"kubernetes.io/cluster/{CLUSTER}0": "owned"})
        return [_node(self._account.launch(tags=each)[0]) for each in tags]

    def put_foreign_route(self) -> str:
        machine, destination = self._account.launch(tags={})[0]["InstanceId"], "100.97.0.0/24"
        table = self._account.route_table_id
        self._account.ec2.create_route(RouteTableId=table, DestinationCidrBlock=destination, InstanceId=machine)
        return destination

    def forwards(self, node: Object, destination: str) -> bool:
        del destination
        return ec2().get_instance_by_id(_id(node)).source_dest_check is False

    def lists_lag(self) -> None:
        named = (elb().load_balancers, elbv2().load_balancers, elbv2().target_groups)
        self._listed = {each.name for kind in named for each in kind.values()} | instances()

    def small_pages(self) -> None:
        self._small_pages = True

    def full(self) -> None:
        self.wire.full = {"CreateLoadBalancer": "TooManyLoadBalancers", "CreateRoute": "RouteLimitExceeded"}


def _note_operation(request: Any, event_name: str, **_: Any) -> None:
    request.operation = event_name.rpartition(".")[2]


def _refusal(code: str, _: float) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "refused by the test"}}, "")


def _node(machine: Any) -> Object:
    machine_id, zone = machine["InstanceId"], machine["Placement"]["AvailabilityZone"]
    return {
        "metadata": {"name": machine["PrivateDnsName"]},
        "spec": {"providerID": f"aws:///{zone}/{machine_id}"},
        "status": {"addresses": [{"type": "InternalIP", "address": machine["PrivateIpAddress"]}]},
    }


def _id(node: Object) -> str:
    return str(node["spec"]["providerID"]).rpartition("/")[2]
