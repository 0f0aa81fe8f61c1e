"""Dry runs in EC2: each change is tried on the cluster's own objects, its refusal is found, and nothing is changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from cloud_controller.cloud import CcmPods, CloudError, DryRun
from cloud_controller.clouds.aws import cloud as aws_cloud
from cloud_controller.clouds.aws import dry_run
from cloud_controller.clouds.aws.cloud import Aws
from cloud_controller.clouds.aws.permissions import CONTROLLERS, RIGHTS
from cloud_controller.fence import read_only
from cloud_controller.load_balancers.model import CLUSTER_TAG as OWNER_TAG
from cloud_controller.load_balancers.model import SERVICE_UID_TAG
from tests.cloud_controller.clouds.aws.conftest import CLUSTER_TAG, tag_list

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.aws.conftest import AwsAccount

CHANGES = {
    operation
    for right in RIGHTS
    if right.service == "ec2"
    for operation in right.operations
    if not operation.startswith("Describe")
}
PODS = CcmPods({}, ())


@pytest.fixture(autouse=True)
def _of_the_ccm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The credentials are the CCM's."""
    monkeypatch.setattr(aws_cloud, "other_than_ccm", lambda *_: None)


@pytest.fixture
def _dry(monkeypatch: pytest.MonkeyPatch, account: AwsAccount) -> None:  # noqa: ARG001 - it starts moto
    """moto honours DryRun for routes too."""
    from local.aws.differences import DRY_RUNS

    for (owner, method), instead in DRY_RUNS.items():
        monkeypatch.setattr(owner, method, instead)


def with_load_balancer(account: AwsAccount) -> str:
    """A load balancer's group, in use, and a machine that takes routes; the group's ID."""
    group = account.ec2.create_security_group(
        GroupName="front",
        Description="of a Service",
        VpcId=account.vpc_id,
        TagSpecifications=[
            {
                "ResourceType": "security-group",
                "Tags": tag_list({CLUSTER_TAG: "owned", OWNER_TAG: "prod-1", SERVICE_UID_TAG: "uid"}),
            }
        ],
    )["GroupId"]
    account.ec2.create_network_interface(SubnetId=account.public_subnets[0], Groups=[group])
    _, open_ = account.launch(2)
    account.ec2.modify_instance_attribute(InstanceId=open_["InstanceId"], SourceDestCheck={"Value": False})
    return str(group)


def everything(account: AwsAccount) -> list[Any]:
    """All that the operations could change."""
    ec2 = account.ec2
    return [
        ec2.describe_route_tables()["RouteTables"],
        ec2.describe_security_groups()["SecurityGroups"],
        [
            {key: instance[key] for key in ("InstanceId", "SourceDestCheck", "Tags", "State")}
            for reservation in ec2.describe_instances()["Reservations"]
            for instance in reservation["Instances"]
        ],
        ec2.describe_tags()["Tags"],
    ]


def doctor(account: AwsAccount) -> tuple[Aws, list[dict[str, list[str]]]]:
    """The cloud as doctor opens it, and the parameters of each request to EC2 that it sends."""
    cloud, sent = Aws(account.config()), list[dict[str, list[str]]]()
    cloud.fence_writes(read_only)
    events = cloud._api._client("ec2", "CreateRoute").meta.events
    events.register("before-send.ec2", lambda request, **_: sent.append(parse_qs(request.body)))
    return cloud, sent


def refusing(monkeypatch: pytest.MonkeyPatch, operation: str, error: str) -> None:
    """moto answers this operation with this error code."""
    from moto.ec2.exceptions import EC2ClientError
    from moto.ec2.responses import EC2Response

    def refuse(_: Any) -> None:
        raise EC2ClientError(error, "You are not authorized to perform this operation.")

    from botocore import xform_name

    monkeypatch.setattr(EC2Response, xform_name(operation), refuse, raising=False)


# ------------------------------------------------------------------------------------------------------ what is tried


@pytest.mark.usefixtures("_dry")
def test_each_change_is_tried_on_the_clusters_own_objects(account: AwsAccount) -> None:
    group = with_load_balancer(account)
    cloud, sent = doctor(account)

    cloud.dry_run(CONTROLLERS, PODS)

    asked = {each["Action"][0]: each for each in sent}
    assert {asked[each]["RouteTableId"][0] for each in ("CreateRoute", "DeleteRoute")} == {account.route_table_id}
    tagged = account.ec2.describe_instances(Filters=[{"Name": "tag-key", "Values": [CLUSTER_TAG]}])["Reservations"]
    machines = {instance["InstanceId"] for each in tagged for instance in each["Instances"]}
    assert {asked[each]["InstanceId"][0] for each in ("CreateRoute", "ModifyInstanceAttribute")} <= machines
    assert asked["CreateSecurityGroup"]["VpcId"] == [account.vpc_id]
    assert asked["CreateSecurityGroup"]["TagSpecification.1.Tag.1.Key"] == [CLUSTER_TAG]
    for operation in ("AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress", "DeleteSecurityGroup"):
        assert asked[operation]["GroupId"] == [group]
    assert asked["CreateTags"]["ResourceId.1"] == [group]


@pytest.mark.usefixtures("_dry")
def test_only_what_the_controllers_change_is_tried(account: AwsAccount) -> None:
    account.launch()
    cloud, sent = doctor(account)

    found = cloud.dry_run(["node", "route"], PODS)

    assert found == DryRun(["CreateRoute", "DeleteRoute", "ModifyInstanceAttribute"], [], [])
    assert cloud.dry_run(["node"], PODS) == DryRun([], [], [])
    assert not any("SecurityGroup" in each["Action"][0] for each in sent)


@pytest.mark.usefixtures("_dry")
def test_what_has_no_object_yet_is_not_tried_and_named(account: AwsAccount) -> None:
    cloud, _ = doctor(account)

    found = cloud.dry_run(CONTROLLERS, PODS)

    untried = [each.partition(" could not be tried")[0] for each in found.unknown]
    assert untried == [
        "CreateRoute",
        "ModifyInstanceAttribute",
        "CreateTags",
        "DeleteSecurityGroup",
        dry_run._UNTRIABLE,
    ]
    # The nodes' group is always there.
    assert {"AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"} <= {*found.allowed}


# ----------------------------------------------------------------------------------------------------- what it shows


@pytest.mark.usefixtures("_dry")
@pytest.mark.parametrize("operation", sorted(CHANGES))
def test_a_refused_change_is_lacking(account: AwsAccount, monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    with_load_balancer(account)
    refusing(monkeypatch, operation, "UnauthorizedOperation")

    found = doctor(account)[0].dry_run(CONTROLLERS, PODS)

    (lacking,) = found.lacking
    assert lacking.startswith(f"AWS: ec2 {operation}: UnauthorizedOperation: You are not authorized")
    assert {*found.allowed} == CHANGES - {operation}


@pytest.mark.usefixtures("_dry")
def test_any_other_error_shows_neither_a_right_nor_the_lack_of_one(
    account: AwsAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_load_balancer(account)
    refusing(monkeypatch, "CreateRoute", "RouteAlreadyExists")

    found = doctor(account)[0].dry_run(["route"], PODS)

    assert found.lacking == []
    assert "CreateRoute" not in found.allowed
    (unknown,) = found.unknown
    assert "a dry run of CreateRoute showed nothing: AWS: ec2 CreateRoute: RouteAlreadyExists" in unknown


@pytest.mark.usefixtures("_dry")
@pytest.mark.parametrize("code", ["Unavailable", "AuthFailure"])
def test_a_cloud_that_does_not_answer_or_know_the_caller_is_an_error(
    account: AwsAccount, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    account.launch()
    refusing(monkeypatch, "CreateRoute", code)
    cloud, _ = doctor(account)
    monkeypatch.setattr(cloud._api, "_sleep", lambda _: None)

    with pytest.raises(CloudError, match=code):
        cloud.dry_run(["route"], PODS)


def test_with_other_credentials_than_the_ccms_nothing_is_tried(
    account: AwsAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.launch()
    monkeypatch.setattr(aws_cloud, "other_than_ccm", lambda *_: "doctor has a role of its own")
    cloud, sent = doctor(account)

    found = cloud.dry_run(CONTROLLERS, PODS)

    assert found == DryRun(unknown=["no change could be tried: doctor has a role of its own"])
    assert sent == []


# ------------------------------------------------------------------------------------------------ nothing is changed


@pytest.mark.usefixtures("_dry")
def test_every_change_that_is_sent_is_a_dry_run_and_nothing_is_changed(account: AwsAccount) -> None:
    with_load_balancer(account)
    before = everything(account)
    cloud, sent = doctor(account)

    cloud.dry_run(CONTROLLERS, PODS)

    changes = [each for each in sent if not each["Action"][0].startswith("Describe")]
    assert {each["Action"][0] for each in changes} == CHANGES
    assert all(each["DryRun"] == ["true"] for each in changes)
    assert everything(account) == before


def test_an_endpoint_that_ignores_dry_runs_is_left_as_it_was(
    account: AwsAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moto.ec2.responses._base_response import EC2BaseResponse

    monkeypatch.setattr(EC2BaseResponse, "error_on_dryrun", lambda _: None)
    with_load_balancer(account)
    before = everything(account)

    found = doctor(account)[0].dry_run(CONTROLLERS, PODS)

    assert found.allowed == []
    assert everything(account) == before


def test_there_is_one_call_and_it_has_dry_run() -> None:
    def calls() -> Iterator[ast.Call]:
        for node in ast.walk(ast.parse(Path(dry_run.__file__).read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("api."):
                yield node

    (call,) = calls()
    assert ast.unparse(call) == "api.call('ec2', operation, idempotent=True, DryRun=True, **params)"


def test_parameters_cannot_switch_dry_run_off(account: AwsAccount) -> None:
    with pytest.raises(TypeError, match="DryRun"):
        dry_run._answer(account.api(), "DeleteRoute", {"DryRun": False})
