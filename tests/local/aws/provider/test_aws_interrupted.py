"""Killed runs against the simulator of AWS: the next one finishes without duplicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pulumi_aws as aws
import pytest
from botocore.exceptions import ConnectionClosedError, HTTPClientError
from botocore.httpsession import URLLib3Session

from local.aws.provider.api import Api, AwsError
from local.aws.provider.provider import AwsProvider
from local.plugins.provider import CreateRequest, OutcomeUnknown, PartialFailure, ProviderError
from tests.local.aws.provider.aws_program import ALL, RIGHTS, program

pytestmark = pytest.mark.cli


def counted(left: dict[str, list[str]]) -> dict[str, int]:
    return {what: len(names) for what, names in left.items()}


@pytest.mark.nightly
def test_after_a_death_at_any_call_the_next_run_finishes_and_repeats_nothing(
    led: Any, cloud: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each mutating call is once the end of a run, before its answer arrives."""
    died: set[str] = set()
    attempt = Api._attempt

    def dying(api: Api, service: str, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        answer = attempt(api, service, operation, params)
        if operation.startswith(("describe_", "get_", "list_")) or operation in died:
            return answer
        died.add(operation)
        raise OutcomeUnknown("the run died")

    def finished(run: Callable[[], Any]) -> Any:
        died.clear()
        for _ in range(60):
            if (outcome := run()).ok:
                return outcome
        raise AssertionError(f"it ends for good: {died}")

    led.up(program())
    whole = counted(cloud.left())
    assert led.destroy().ok
    monkeypatch.setattr(Api, "_attempt", dying)

    made = finished(lambda: led.up(program()))
    assert made.ok and len(died) > 10 and counted(cloud.left()) == whole, made.errors

    changed = finished(lambda: led.up(program(kind="m5.xlarge")))
    assert changed.ok and died and counted(cloud.left()) == whole, changed.errors
    assert led.refresh().counts == led.up(program(kind="m5.xlarge")).counts == {"same": ALL}

    deleted = finished(led.destroy)
    assert deleted.ok and len(died) > 10 and not cloud.left(), deleted.errors
    assert not led.resources()


def test_an_incomplete_object_stays_in_the_state_and_the_next_up_completes_it(
    led: Any, cloud: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from local.aws.provider.network import Vpc

    def run() -> None:
        aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", enable_dns_hostnames=True)

    def broken(*_: Any) -> None:
        raise ProviderError("the API is down")

    with monkeypatch.context() as down:
        down.setattr(Vpc, "_set_flags", broken)
        failed = led.up(run)
    (vpc,) = cloud.left()["vpcs"]
    assert not failed.ok and led.resources()["net"].id == vpc

    assert led.up(run).ok
    answer = cloud.client("ec2").describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsHostnames")
    assert cloud.left()["vpcs"] == [vpc] and answer["EnableDnsHostnames"]["Value"]


def test_a_security_group_that_still_allows_all_egress_is_corrected_by_the_next_up(
    led: Any, cloud: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> None:
        aws.ec2.SecurityGroup("g", vpc_id=vpc)

    def without(api: Api, service: str, operation: str, **params: Any) -> dict[str, Any]:
        if operation == "revoke_security_group_egress":
            raise ProviderError("the API is down")
        return call(api, service, operation, **params)

    ec2, call = cloud.client("ec2"), Api.call
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    with monkeypatch.context() as down:
        down.setattr(Api, "call", without)
        assert not led.up(run).ok

    assert led.up(run).ok
    (group,) = ec2.describe_security_groups(GroupIds=[led.resources()["g"].id])["SecurityGroups"]
    assert group["IpPermissionsEgress"] == [] and len(cloud.left()["groups"]) == 2


def test_a_failed_cluster_is_kept_with_its_reason_until_it_is_deleted(
    led: Any, cloud: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(api: Api, service: str, operation: str, **params: Any) -> dict[str, Any]:
        answer = call(api, service, operation, **params)
        if operation == "describe_cluster":
            answer["cluster"] |= {"status": "FAILED", "health": {"issues": [{"message": "no address is free"}]}}
        return answer

    def run() -> None:
        aws.eks.Cluster("c", name="c", role_arn="arn:aws:iam::123456789012:role/eks", vpc_config={"subnet_ids": []})

    call = Api.call
    with monkeypatch.context() as down:
        down.setattr(Api, "call", failed)
        first, second = led.up(run), led.up(run)

    assert "no address is free" in first.errors[0] and "no address is free" in second.errors[0]
    assert cloud.left()["clusters"] == ["c"] and led.resources()["c"].id == "c"
    assert led.destroy().ok and "clusters" not in cloud.left()


def test_an_interrupted_run_stops_waiting_and_keeps_its_objects(cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def never_ready(api: Api, service: str, operation: str, **params: Any) -> dict[str, Any]:
        answer = call(api, service, operation, **params)
        if operation == "describe_cluster":
            answer["cluster"]["status"] = "CREATING"
        return answer

    provider, call = AwsProvider(cloud.config), Api.call
    monkeypatch.setattr(Api, "call", never_ready)
    urn = "urn:pulumi:dev::test::aws:eks/cluster:Cluster::c"
    given = {"name": "c", "roleArn": "arn:aws:iam::123456789012:role/eks", "vpcConfig": {"subnetIds": []}}
    inputs = provider.check(urn, {}, given).inputs

    def interrupt(line: str) -> None:
        assert "ACTIVE" in line
        provider.interrupt()

    with pytest.raises(PartialFailure, match="interrupted while waiting") as raised:
        provider.create(CreateRequest(urn=urn, inputs=inputs, preview=False, timeout=200, report=interrupt))
    assert raised.value.id == "c" and cloud.left()["clusters"] == ["c"]


def test_a_name_used_by_a_foreign_object_is_an_error_and_the_object_is_left_alone(led: Any, cloud: Any) -> None:
    iam = cloud.client("iam")
    iam.create_role(RoleName="theirs", AssumeRolePolicyDocument="{}")

    outcome = led.up(lambda: aws.iam.Role("r", name="theirs", assume_role_policy="{}"))

    assert not outcome.ok and "EntityAlreadyExists" in outcome.errors[0]
    assert "r" not in led.resources() and len(iam.list_roles()["Roles"]) == 1


@pytest.mark.parametrize(
    "error", [ConnectionClosedError(endpoint_url="http://127.0.0.1"), HTTPClientError(error="cut off")]
)
def test_an_object_whose_create_answer_was_lost_is_found_by_the_next_up(
    led: Any, cloud: Any, monkeypatch: pytest.MonkeyPatch, error: HTTPClientError
) -> None:
    def run() -> None:
        aws.ec2.Vpc("net", cidr_block="10.0.0.0/16")

    def deaf(session: Any, request: Any) -> Any:
        answer = send(session, request)
        if "Action=CreateVpc&" in str(request.body):
            raise error
        return answer

    send = URLLib3Session.send
    with monkeypatch.context() as lost:
        lost.setattr(URLLib3Session, "send", deaf)
        failed = led.up(run)

    assert not failed.ok and "the answer was lost" in failed.errors[0]
    assert "net" not in led.resources(), "the CLI forgets it"
    assert led.up(run).ok and cloud.left()["vpcs"] == [led.resources()["net"].id]


def test_a_failed_deletion_because_of_a_missing_part_does_not_forget_the_object(
    led: Any, cloud: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(api: Api, service: str, operation: str, **params: Any) -> dict[str, Any]:
        if operation == "detach_role_policy":
            raise AwsError("NoSuchEntity", "somebody else detached it a moment ago")
        return call(api, service, operation, **params)

    led.up(lambda: aws.iam.Role("r", name="r", assume_role_policy="{}", force_detach_policies=True))
    iam, call = cloud.client("iam"), Api.call
    policy = iam.create_policy(PolicyName="p", PolicyDocument=RIGHTS)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName="r", PolicyArn=policy)
    with monkeypatch.context() as raced:
        raced.setattr(Api, "call", without)
        assert not led.destroy().ok

    assert cloud.left()["roles"] == ["r"] and led.resources()["r"].id == "r"
    assert led.destroy().ok and "roles" not in cloud.left()


def test_a_throttled_call_is_repeated(led: Any, cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(api: Api, service: str, operation: str, params: Any) -> dict[str, Any]:
        calls.append(operation)
        if calls.count(operation) == 1:
            raise AwsError("RequestLimitExceeded", "Request limit exceeded.")
        return attempt(api, service, operation, params)

    calls: list[str] = []
    attempt = Api._attempt
    monkeypatch.setattr("local.aws.provider.api._PAUSES", (0,))
    monkeypatch.setattr(Api, "_attempt", busy)

    assert led.up(lambda: aws.ec2.Vpc("net", cidr_block="10.0.0.0/16")).ok
    assert calls.count("create_vpc") == 2 and len(cloud.left()["vpcs"]) == 1
