"""Processes that plan and carry out what a Service needs on AWS, and die after any of their changing calls."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Mapping
from typing import Any

from botocore.exceptions import ClientError

from cloud_controller.cloud import Conflict, InvalidConfiguration
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.concurrent_calls import ConcurrentCalls
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.load_balancer import AwsLoadBalancers
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.diff import diff
from cloud_controller.load_balancers.model import ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.operations import Operation, carry_out
from tests.cloud_controller.clouds.aws.conftest import CLUSTER, AwsAccount, Calls

_READS = re.compile("(Describe|Get|List).*")
_MOST_VISITS = 6


class Died(BaseException):
    """The process is gone; nothing of it may catch this."""


class DyingApi(Api):
    """Ends its process after so many changing calls, each of which was carried out. None: it lives.

    While it `holds`, security groups are in use, as they are for minutes after their load balancer is gone.
    """

    left: int | None = None
    holds = False
    refused_instances: Collection[str] = ()
    """A call with one of these is refused whole, as AWS does with instances that are gone, and moto never."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._counting = threading.Lock()

    def call(self, service: str, operation: str, /, *, idempotent: bool | None = None, **params: Any) -> dict[str, Any]:
        if self.left is not None and self.left <= 0:
            raise Died
        if self.holds and operation == "DeleteSecurityGroup":
            error = {"Error": {"Code": "DependencyViolation", "Message": "resource has a dependent object"}}
            raise Conflict("still in use") from ClientError(error, operation)  # type: ignore[arg-type]
        if any(each["InstanceId"] in self.refused_instances for each in params.get("Instances", ())):
            invalid = {"Error": {"Code": "InvalidInstance", "Message": "could not find EC2 instance"}}
            raise InvalidConfiguration(operation, "no") from ClientError(invalid, operation)  # type: ignore[arg-type]
        answer = super().call(service, operation, idempotent=idempotent, **params)
        if self.left is not None and not _READS.fullmatch(operation):
            with self._counting:  # Several are under way at once.
                self.left -= 1
                last = self.left == 0
            if last:
                raise Died
        return answer


class Process:
    """One process from its start: it remembers nothing of those before."""

    def __init__(self, account: AwsAccount, *, dies_after: int | None = None, **config: Any) -> None:
        self.calls = Calls()
        self.api = DyingApi(account.config(**config))
        self.api.left = dies_after
        self.api.observer = self.calls
        surroundings = VpcState(self.api, self.api.config.cluster_tag, account.vpc_id)
        self.load_balancers = AwsLoadBalancers(self.api, self.api.config, surroundings, ConcurrentCalls())

    def observed(self, service: Object) -> list[ObservedLoadBalancer]:
        """The load balancers of the Service, whole or in part."""
        owner = owner_of(service)
        found = self.load_balancers.read({owner.uid})
        return [lb for lb in found if lb.owner is not None and lb.owner.uid == owner.uid]

    def operations(self, service: Object, backends: Backends, *, wanted: bool = True) -> list[Operation]:
        """What the plan of a visit to the Service would do."""
        model = self.load_balancers.build(service, backends).model if wanted else None
        owner = owner_of(service)
        plan = diff(model, self.observed(service), CATALOGUE, target="service", client_token=owner.client_token)
        return [action.operation for action in plan.actions if action.operation is not None]  # type: ignore[misc]

    def visit(self, service: Object, backends: Backends, *, wanted: bool = True) -> int:
        """Carry out what a visit plans; how much that was."""
        operations = self.operations(service, backends, wanted=wanted)
        for operation in operations:
            carry_out(self.load_balancers, operation)
        return len(operations)

    def converge(self, service: Object, backends: Backends, *, wanted: bool = True) -> None:
        """Visit the Service until nothing is left to do."""
        for _ in range(_MOST_VISITS):
            if not self.visit(service, backends, wanted=wanted):
                return
        raise AssertionError(f"still to do: {self.operations(service, backends, wanted=wanted)}")


def owner_of(service: Object) -> Owner:
    """The Service as an owner."""
    metadata = service["metadata"]
    return Owner(CLUSTER, metadata["uid"], metadata["namespace"], metadata["name"])


def world(account: AwsAccount) -> Mapping[str, Any]:
    """Everything that is there of load balancing, without what AWS chose at random, comparable between accounts."""
    names = {
        group["GroupId"]: group["GroupName"]
        for group in account.ec2.describe_security_groups()["SecurityGroups"]
        if group.get("VpcId") == account.vpc_id
    }
    groups = account.ec2.describe_security_groups(GroupIds=[*names])["SecurityGroups"]
    return {
        "groups": {
            group["GroupName"]: _rules(group["IpPermissions"], names)
            for group in groups
            if group["GroupName"] != "default"
        },
        "classic": {
            lb["LoadBalancerName"]: {
                "groups": sorted(names[group] for group in lb["SecurityGroups"]),
                "subnets": sorted(lb["Subnets"]),
                "listeners": sorted(str(each) for each in lb["ListenerDescriptions"]),
                "backends": sorted(str(each) for each in lb["BackendServerDescriptions"]),
                "check": lb["HealthCheck"],
                "instances": sorted({each["InstanceId"] for each in lb["Instances"]}),
            }
            for lb in account.elb.describe_load_balancers()["LoadBalancerDescriptions"]
        },
        "network": {
            lb["LoadBalancerName"]: sorted(names[group] for group in lb.get("SecurityGroups", ()))
            for lb in account.elbv2.describe_load_balancers()["LoadBalancers"]
        },
        "target groups": sorted(
            group["TargetGroupName"] for group in account.elbv2.describe_target_groups()["TargetGroups"]
        ),
    }


def _rules(permissions: Any, names: Mapping[str, str]) -> list[str]:
    return sorted(
        f"{each['IpProtocol']} {each.get('FromPort')}-{each.get('ToPort')} {source}"
        for each in permissions
        for source in (
            *(entry["CidrIp"] for entry in each.get("IpRanges", ())),
            *(names[entry["GroupId"]] for entry in each.get("UserIdGroupPairs", ())),
        )
    )
