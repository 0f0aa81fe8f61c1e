"""AWS as moto never is: it refuses calls, lags behind, or loses an answer; and a process that dies of a call.

Each stands between a controller and AWS: `Running(account, cluster, wrap=Refusing(...))`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from cloud_controller.cloud import Unavailable
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.cloud import Aws
from cloud_controller.clouds.aws.errors import translated
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.in_the_account import subnets_of
from tests.sampling import EVERY_CALL

Call = Callable[..., dict[str, Any]]
Refusal = tuple[str, str]
"""AWS's code and message."""

STEP = 1 if EVERY_CALL else 8
"""Crash tests try every call with CRASH_POINTS=all (`make crash-test`), else every eighth."""


class Died(BaseException):
    """The process is gone; nothing of it may catch this."""


class Between:
    """Passes each call on to AWS."""

    def __call__(self, cloud: Aws) -> None:
        self.stand_before(cloud._api)

    def stand_before(self, api: Api) -> None:
        """The same for a client alone."""
        real = api.call

        def call(service: str, operation: str, /, **params: Any) -> dict[str, Any]:
            return self.call(real, service, operation, params)

        api.call = call  # type: ignore[method-assign]

    def call(self, real: Call, service: str, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        return real(service, operation, **params)


class Refusing(Between):
    """AWS, where `refuses` answers a refusal for a call."""

    def __init__(self, refuses: Callable[[str, dict[str, Any]], Refusal | None]) -> None:
        self.refuses = refuses

    @classmethod
    def of(cls, operation: str, code: str, message: str = "no") -> Refusing:
        """AWS, where every call of this operation is refused."""
        return cls(lambda called, _: (code, message) if called == operation else None)

    def end(self) -> None:
        """It refuses nothing from here on."""
        self.refuses = lambda _operation, _params: None

    def call(self, real: Call, service: str, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        refusal = self.refuses(operation, params)
        if refusal is not None:
            code, message = refusal
            error = ClientError({"Error": {"Code": code, "Message": message}}, operation)
            raise translated(error, service, operation) from error
        return real(service, operation, **params)


def security_groups_in_use() -> Refusing:
    """AWS, where they are in use as for minutes after their load balancer has gone."""
    return Refusing.of("DeleteSecurityGroup", "DependencyViolation", "resource has a dependent object")


class DeletionProtection(Refusing):
    """AWS, where a load balancer with deletion protection is not deleted."""

    def __init__(self, account: AwsAccount) -> None:
        super().__init__(self._protected)
        self._account = account

    def _protected(self, operation: str, params: dict[str, Any]) -> Refusal | None:
        if operation != "DeleteLoadBalancer" or "LoadBalancerArn" not in params:
            return None
        found = self._account.elbv2.describe_load_balancer_attributes(LoadBalancerArn=params["LoadBalancerArn"])
        if {"Key": "deletion_protection.enabled", "Value": "true"} not in found["Attributes"]:
            return None
        why = f"Load balancer '{params['LoadBalancerArn']}' cannot be deleted because deletion protection is enabled"
        return "OperationNotPermitted", why


class LeavingZones(Refusing):
    """AWS, where the removal of a subnet is not complete until `free`, and nothing of its zone is taken before."""

    def __init__(self, account: AwsAccount) -> None:
        super().__init__(self._taken)
        self._account = account
        self._zones = {each["SubnetId"]: each["AvailabilityZone"] for each in account.ec2.describe_subnets()["Subnets"]}
        self._leaving: set[str] = set()

    def free(self) -> None:
        """AWS has finished."""
        self._leaving.clear()

    def _taken(self, operation: str, params: dict[str, Any]) -> Refusal | None:
        if operation == "SetSubnets":
            present, wanted = subnets_of(self._account), {*params["Subnets"]}
            if taken := {self._zones[each] for each in wanted - present} & self._leaving:
                why = "You cannot specify an additional subnet from an Availability Zone that is already associated"
                return "InvalidConfigurationRequest", f"{why} with the load balancer: {taken.pop()}"
            self._leaving.update(self._zones[each] for each in present - wanted)
        return None


class Faults(Between):
    """After `left` changing calls, that one's answer never comes (`dies`: nor any)."""

    def __init__(self, left: int, *, dies: bool) -> None:
        self.left = left
        self.dies = dies
        self.happened = False
        self._lock = threading.Lock()

    def call(self, real: Call, service: str, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        if self.happened and self.dies:
            raise Died
        answer = real(service, operation, **params)
        if not operation.startswith("Describe"):
            with self._lock:  # Several are under way at once.
                self.left -= 1
                last = self.left == 0
            if last:
                self.happened = True
                raise Died if self.dies else Unavailable(f"no answer from {operation}")
        return answer


class Behind(Between):
    """AWS, whose lists do not show yet what was made, though it is there by its name."""

    behind = True

    def call(self, real: Call, service: str, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = real(service, operation, **params)
        lists = {"DescribeLoadBalancers": "LoadBalancers", "DescribeTargetGroups": "TargetGroups"}
        if self.behind and service == "elbv2" and operation in lists and "Names" not in params:
            answer[lists[operation]] = []
        return answer
