"""A site of AWS starts, survives kills, rejects callers without a key, and reports what is left in it."""

from __future__ import annotations

import base64
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import UNSIGNED
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from local import processes
from local.api_process import API
from local.aws import account
from local.aws.folder import WEBHOOK_PORT
from local.aws.site import AwsSite
from local.errors import SiteError
from local.http_client import request
from tests.local.aws.conftest import REGION, client
from tests.strangers import listening_on_a_free_block
from tests.waiting import eventually

pytestmark = pytest.mark.integration


@pytest.fixture
def vpc(aws_site: AwsSite) -> Iterator[str]:
    """A VPC in the account, deleted afterwards."""
    ec2 = client(aws_site, "ec2")
    made = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    yield made
    for subnet in ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [made]}])["Subnets"]:
        ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    ec2.delete_vpc(VpcId=made)


def vpcs(site: AwsSite) -> set[str]:
    return {each["VpcId"] for each in client(site, "ec2").describe_vpcs()["Vpcs"]}


def code_of(raised: pytest.ExceptionInfo[ClientError]) -> str:
    return str(raised.value.response["Error"]["Code"])


def test_an_object_is_listed_until_it_is_deleted(aws_site: AwsSite, vpc: str) -> None:
    assert f"VPC {vpc}" in aws_site.left()


def test_a_rule_for_a_security_group_returns_its_description(aws_site: AwsSite, vpc: str) -> None:
    ec2 = client(aws_site, "ec2")
    group = ec2.create_security_group(GroupName="nodes", Description="Nodes", VpcId=vpc)["GroupId"]
    pair = {"GroupId": group, "Description": "From nodes"}
    ec2.authorize_security_group_ingress(
        GroupId=group, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [pair]}]
    )

    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])["SecurityGroupRules"]

    ec2.delete_security_group(GroupId=group)
    assert [rule["Description"] for rule in rules if not rule["IsEgress"]] == ["From nodes"]


def test_answered_changes_survive_a_kill(aws_site: AwsSite, vpc: str) -> None:
    process = processes.find(aws_site.folder.process_record(API))
    assert process is not None
    process.signal(signal.SIGKILL)
    assert process.wait(10)
    assert aws_site.status()["up"] is False

    aws_site.up()

    assert vpc in vpcs(aws_site)


@pytest.mark.parametrize("service", ["ec2", "eks", "elbv2", "elb", "autoscaling", "iam", "sts"])
def test_a_guessed_secret_is_refused_by_every_service(aws_site: AwsSite, service: str) -> None:
    operation = {
        "ec2": "describe_vpcs",
        "eks": "list_clusters",
        "elbv2": "describe_load_balancers",
        "elb": "describe_load_balancers",
        "autoscaling": "describe_auto_scaling_groups",
        "iam": "list_roles",
        "sts": "get_caller_identity",
    }[service]

    with pytest.raises(ClientError) as raised:
        getattr(client(aws_site, service, (aws_site.credentials[0], "guessed")), operation)()

    assert code_of(raised) == "SignatureDoesNotMatch"


def test_an_unknown_key_is_refused_by_the_site(aws_site: AwsSite) -> None:
    with pytest.raises(ClientError) as raised:
        client(aws_site, "ec2", ("AKIAEXAMPLEEXAMPLE12", "x")).describe_vpcs()

    assert code_of(raised) == "InvalidClientTokenId"


@pytest.mark.parametrize("path", ["/", "/?Action=DescribeVpcs&Version=2016-11-15", "/clusters"])
def test_an_unsigned_call_is_refused(aws_site: AwsSite, vpc: str, path: str) -> None:
    assert request("POST", aws_site.endpoint + path, seconds=30).status == 403

    assert vpc in vpcs(aws_site)


@pytest.mark.parametrize("path", ["/moto-api/reset", "/%6Doto-api/reset", "/latest/meta-data/"])
def test_motos_own_api_is_disabled(aws_site: AwsSite, vpc: str, path: str) -> None:
    signed = AWSRequest("POST", aws_site.endpoint + path)
    SigV4Auth(Credentials(*aws_site.credentials), "eks", REGION).add_auth(signed)

    assert request("POST", str(signed.url), headers=dict(signed.headers), seconds=30).status == 403

    assert vpc in vpcs(aws_site)


def session_of(site: AwsSite, role: str, service: str, *, seconds: int = 900, token: str | None = None) -> Any:
    """A client with an assumed role; `token` replaces the session's own."""
    arn = client(site, "iam").get_role(RoleName=role)["Role"]["Arn"]
    asked = {"RoleArn": arn, "RoleSessionName": "pod", "DurationSeconds": seconds}
    lax = Config(parameter_validation=False)  # the SDK would not send a session that has already expired
    sts = boto3.session.Session(*site.credentials).client("sts", REGION, endpoint_url=site.endpoint, config=lax)
    given = sts.assume_role(**asked)["Credentials"]
    return boto3.session.Session(
        given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"] if token is None else token
    ).client(service, region_name=REGION, endpoint_url=site.endpoint)  # type: ignore[call-overload]


@pytest.fixture
def role(aws_site: AwsSite) -> Iterator[str]:
    """A role that may describe what is in EC2, deleted afterwards."""
    iam, document = client(aws_site, "iam"), {"Version": "2012-10-17"}
    statement = {"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}
    iam.create_role(RoleName="reader", AssumeRolePolicyDocument="{}")
    iam.put_role_policy(
        RoleName="reader", PolicyName="read", PolicyDocument=json.dumps({**document, "Statement": statement})
    )
    yield "reader"
    iam.delete_role_policy(RoleName="reader", PolicyName="read")
    iam.delete_role(RoleName="reader")


def test_a_session_of_a_role_is_identified_by_its_own_key(aws_site: AwsSite, role: str) -> None:
    arn = session_of(aws_site, role, "sts").get_caller_identity()["Arn"]

    assert arn.endswith("assumed-role/reader/pod")


@pytest.mark.parametrize("token", ["", "guessed"])
def test_a_session_without_its_token_is_refused(aws_site: AwsSite, role: str, token: str) -> None:
    with pytest.raises(ClientError) as raised:
        session_of(aws_site, role, "ec2", token=token).describe_vpcs()

    assert code_of(raised) == "InvalidClientTokenId"


def test_an_expired_session_is_refused(aws_site: AwsSite, role: str) -> None:
    with pytest.raises(ClientError) as raised:
        session_of(aws_site, role, "ec2", seconds=-1).describe_vpcs()

    assert code_of(raised) == "ExpiredToken"


def test_a_session_may_call_only_what_its_roles_policies_name(aws_site: AwsSite, role: str) -> None:
    ec2 = session_of(aws_site, role, "ec2")

    assert ec2.describe_vpcs()["Vpcs"]
    with pytest.raises(ClientError) as raised:
        ec2.create_vpc(CidrBlock="10.2.0.0/16")

    assert code_of(raised) == "UnauthorizedOperation"
    assert "not authorized to perform: ec2:CreateVpc" in str(raised.value)


def test_a_session_of_a_role_outside_the_account_has_no_rights(aws_site: AwsSite) -> None:
    asked = {"RoleArn": "arn:aws:iam::999999999999:role/elsewhere", "RoleSessionName": "pod"}
    given = client(aws_site, "sts").assume_role(**asked)["Credentials"]
    keys = (given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
    ec2 = boto3.session.Session(*keys).client("ec2", region_name=REGION, endpoint_url=aws_site.endpoint)

    with pytest.raises(ClientError) as raised:
        ec2.describe_vpcs()

    assert code_of(raised) == "UnauthorizedOperation"


@pytest.mark.parametrize("issuer", ["https://else", "https://elsé/<a>&"])
def test_a_token_of_an_unknown_issuer_cannot_assume_a_role(aws_site: AwsSite, issuer: str) -> None:
    claims = base64.urlsafe_b64encode(
        json.dumps({"iss": issuer, "sub": "me", "aud": "sts.amazonaws.com", "exp": 1e10}, ensure_ascii=False).encode()
    )
    unsigned = boto3.session.Session().client(
        "sts", region_name=REGION, endpoint_url=aws_site.endpoint, config=Config(signature_version=UNSIGNED)
    )

    with pytest.raises(ClientError) as raised:
        unsigned.assume_role_with_web_identity(
            RoleArn="arn:aws:iam::123456789012:role/any",
            RoleSessionName="me",
            WebIdentityToken=f"e30.{claims.decode()}.e30",
        )

    assert code_of(raised) == "InvalidIdentityToken"
    assert issuer in raised.value.response["Error"]["Message"]


def test_an_instance_refresh_replaces_the_machines_of_the_older_template(aws_site: AwsSite) -> None:
    ec2, scaling = client(aws_site, "ec2"), client(aws_site, "autoscaling")

    def data(text: str) -> dict[str, str]:
        user_data = base64.b64encode(text.encode()).decode()
        return {"ImageId": "ami-12345678", "InstanceType": "m7i.large", "UserData": user_data}

    def machines() -> list[str]:
        (group,) = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=["r"])["AutoScalingGroups"]
        return [machine["InstanceId"] for machine in group["Instances"]]

    def told(machine: str) -> str:
        answer = ec2.describe_instance_attribute(InstanceId=machine, Attribute="userData")
        return base64.b64decode(answer["UserData"]["Value"]).decode()

    template = {"LaunchTemplateName": "refreshed"}
    ec2.create_launch_template(**template, LaunchTemplateData=data("first"))
    zones = [f"{REGION}a"]
    sizes = {"MinSize": 3, "MaxSize": 3}
    scaling.create_auto_scaling_group(
        AutoScalingGroupName="r", **sizes, AvailabilityZones=zones, LaunchTemplate={**template, "Version": "1"}
    )
    before = machines()
    ec2.create_launch_template_version(**template, LaunchTemplateData=data("second"))
    scaling.update_auto_scaling_group(AutoScalingGroupName="r", LaunchTemplate={**template, "Version": "2"})

    scaling.start_instance_refresh(AutoScalingGroupName="r")

    eventually(lambda: not {*machines()} & {*before}, "every machine is replaced")
    after = machines()
    texts = [told(machine) for machine in after]
    scaling.delete_auto_scaling_group(AutoScalingGroupName="r", ForceDelete=True)
    ec2.delete_launch_template(**template)
    assert (len(after), texts) == (3, ["second"] * 3)


def test_an_instance_refresh_of_a_missing_group_is_an_error(aws_site: AwsSite) -> None:
    with pytest.raises(ClientError) as raised:
        client(aws_site, "autoscaling").start_instance_refresh(AutoScalingGroupName="nobody")

    assert code_of(raised) == "ValidationError"


def test_the_engine_gets_the_sites_key_and_none_of_the_users_credentials(aws_site: AwsSite) -> None:
    environment = aws_site.environment({"AWS_PROFILE": "production", "AWS_SESSION_TOKEN": "x", "PATH": "/bin"})

    assert (environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]) == aws_site.credentials
    assert environment["AWS_ENDPOINT_URL"] == aws_site.endpoint
    assert "AWS_PROFILE" not in environment
    assert "AWS_SESSION_TOKEN" not in environment


def test_a_proxy_from_the_users_environment_is_not_used_for_the_sites_api(
    aws_site: AwsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = {"http_proxy": "http://127.0.0.1:9", "no_proxy": "example.com"}
    for name, value in aws_site.environment(nobody).items():
        monkeypatch.setenv(name, value)

    assert boto3.session.Session(region_name=REGION).client("sts").get_caller_identity()["Account"]
    assert os.environ["no_proxy"].startswith("example.com,")
    monkeypatch.delenv("no_proxy")
    monkeypatch.delenv("NO_PROXY")
    account.client.cache_clear()
    assert aws_site.status()["machines"] == []


def test_the_sites_secret_files_are_readable_only_by_the_user(aws_site: AwsSite) -> None:
    files = [each for each in aws_site.folder.cloud.rglob("*") if each.is_file() and each.parent.name != "logs"]

    assert {each.name for each in files} >= {"credentials.json", "moto.pickle", "webhook.key"}
    assert not [each for each in files if each.stat().st_mode & 0o077 and each.suffix in (".json", ".pickle", ".key")]


def test_an_account_that_does_not_answer_is_not_reported_as_empty(tmp_path: Path) -> None:
    site = AwsSite(tmp_path, "test", REGION)
    site.up()
    assert str(site.nothing_left()).startswith("the account is empty")

    api = processes.find(site.folder.process_record(API))
    assert api is not None
    api.signal(signal.SIGSTOP)
    with pytest.raises(SiteError, match="does not answer, so what is left is unknown"):
        site.left()
    site.down(keep_data=True)

    assert site.left() == []
    assert site.nothing_left() is None
    site.down()


def test_a_block_with_a_port_in_use_is_skipped(tmp_path: Path) -> None:
    site = AwsSite(tmp_path, "test", REGION)
    stranger, strangers = listening_on_a_free_block(site, WEBHOOK_PORT)
    with stranger:
        site.up()
        taken = site.block
        site.down()

    assert taken != strangers
