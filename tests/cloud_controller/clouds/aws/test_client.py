"""How AWS's APIs are called: what is repeated, what an error comes to, who is told, where it goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.credentials import Credentials, ReadOnlyCredentials

from cloud_controller.cloud_errors import (
    AccessDenied,
    CloudError,
    InvalidConfiguration,
    NotFound,
    Unavailable,
)
from cloud_controller.clouds.aws import client
from cloud_controller.clouds.aws.client import Api, error_code
from cloud_controller.clouds.aws.config import Config, ServiceOverride
from cloud_controller.clouds.common.rate_limiter import RateLimiter
from cloud_controller.fence import WriteRefused, read_only
from cloud_controller.retries import NeverReached
from tests.cloud_controller.clouds.aws.scripted_aws import (
    REGION,
    Answer,
    ScriptedAws,
    ec2_answer,
    ec2_error,
    elb_error,
    scripted,
)

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.aws.conftest import AwsAccount

NO_INSTANCES = ec2_answer("<reservationSet/>")


@pytest.fixture
def aws() -> Iterator[ScriptedAws]:
    with scripted() as endpoint:
        yield endpoint


# ---------------------------------------------------------------------------------------------------------- answers


# ----------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("service", "operation", "refusal"),
    [
        ("ec2", "DescribeVpcs", ec2_error("AuthFailure", 401)),
        ("elbv2", "DescribeLoadBalancers", elb_error("AuthFailure", 401)),
    ],
)
def test_an_error_keeps_its_code_and_says_what_was_asked(
    aws: ScriptedAws, service: str, operation: str, refusal: Answer
) -> None:
    aws.answers = [refusal]

    with pytest.raises(AccessDenied, match=f"AWS: {service} {operation}: AuthFailure: no") as told:
        aws.api().call(service, operation)

    assert error_code(told.value) == "AuthFailure"


def test_a_refusal_is_told_without_ec2s_encoded_thousands(aws: ScriptedAws) -> None:
    message = "You are not authorized. Encoded authorization failure message: " + "x" * 2000
    aws.answers = [ec2_error("UnauthorizedOperation", 403, message)]

    with pytest.raises(AccessDenied, match=r"ec2 CreateRoute: UnauthorizedOperation: You are not authorized\.$"):
        aws.api().call("ec2", "CreateRoute", RouteTableId="rtb-1")


def test_an_argument_that_boto3_refuses_is_bad_input(account: AwsAccount) -> None:
    with pytest.raises(InvalidConfiguration, match="ec2 DescribeInstances"):
        account.api().call("ec2", "DescribeInstances", InstanceIds="i-1")


# ---------------------------------------------------------------------------------------------------------- retries


@pytest.mark.parametrize("refusal", [ec2_error("InternalError", 500), Answer(0), Answer(502, "<!doctype html><title>")])
def test_a_read_that_fails_is_asked_again(aws: ScriptedAws, refusal: Answer) -> None:
    aws.answers = [refusal, NO_INSTANCES]

    assert aws.api().call("ec2", "DescribeInstances")["Reservations"] == []


@pytest.mark.parametrize("refusal", [ec2_error("InternalError", 500), Answer(0), Answer(502, "<!doctype html><title>")])
def test_a_creation_that_may_have_been_done_is_not_made_again(aws: ScriptedAws, refusal: Answer) -> None:
    aws.answers = [refusal]

    with pytest.raises(Unavailable):
        aws.api().call("ec2", "CreateSecurityGroup", GroupName="n", Description="d")

    assert len(aws.requests) == 1


def test_a_creation_that_the_caller_knows_to_be_repeatable_is_made_again(aws: ScriptedAws) -> None:
    aws.answers = [ec2_error("InternalError", 500), ec2_answer("<groupId>sg-1</groupId>")]

    answer = aws.api().call("ec2", "CreateSecurityGroup", idempotent=True, GroupName="n", Description="d")

    assert answer["GroupId"] == "sg-1"


@pytest.mark.parametrize("first", [[], [Answer(0)], [ec2_error("RequestLimitExceeded", 503)]])
def test_what_a_deletion_finds_gone_is_told_whichever_try_it_is(aws: ScriptedAws, first: list[Answer]) -> None:
    aws.answers = [*first, ec2_error("InvalidGroup.NotFound")]

    with pytest.raises(NotFound):
        aws.api().call("ec2", "DeleteSecurityGroup", GroupId="sg-1")


def test_where_one_caller_is_throttled_the_next_one_waits_too(
    aws: ScriptedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "RateLimiter", lambda: RateLimiter(clock=lambda: 0.0))
    aws.answers = [ec2_error("RequestLimitExceeded", 503), NO_INSTANCES]
    api = aws.api()
    api.call("ec2", "DescribeInstances")
    waited = len(aws.sleeps)

    api.call("ec2", "DescribeInstances")

    assert len(aws.sleeps) > waited


def test_other_operations_do_not_wait_for_one_that_is_throttled(aws: ScriptedAws) -> None:
    aws.answers = [ec2_error("RequestLimitExceeded", 503), NO_INSTANCES, ec2_answer("<vpcSet/>")]
    api = aws.api()
    api.call("ec2", "DescribeInstances")
    waited = len(aws.sleeps)

    api.call("ec2", "DescribeVpcs")

    assert len(aws.sleeps) == waited


def test_who_cannot_be_reached_is_told_with_the_endpoints_own_words() -> None:
    override = ServiceOverride("ec2", "http://127.0.0.1:1", REGION, REGION)
    api = Api(Config("c", region=REGION, overrides=(override,)), sleep=lambda _: None)

    with pytest.raises(NeverReached, match=r"ec2 DescribeInstances: could not connect .*127\.0\.0\.1:1"):
        api.call("ec2", "DescribeInstances")


def test_an_answer_without_its_list_is_not_an_empty_page(aws: ScriptedAws) -> None:
    aws.answers = [ec2_answer("<html/>")]

    with pytest.raises(Unavailable, match="ec2 DescribeInstances: the response has no Reservations"):
        list(aws.api().pages("ec2", "DescribeInstances", "Reservations"))


@pytest.mark.parametrize("page", ["<html><body>404</body></html>", "<html>", '{"message": "no route"}', ""])
@pytest.mark.parametrize(
    ("service", "operation"),
    [("ec2", "DescribeInstances"), ("elbv2", "DescribeLoadBalancers"), ("elb", "DescribeTags")],
)
def test_not_found_is_only_what_aws_says_itself(aws: ScriptedAws, page: str, service: str, operation: str) -> None:
    aws.answers = [Answer(404, page)]

    with pytest.raises(CloudError) as error:
        aws.api().call(service, operation)

    assert not isinstance(error.value, NotFound)


# ------------------------------------------------------------------------------------------- region and credentials


def test_requests_are_signed_for_the_overrides_region(aws: ScriptedAws) -> None:
    aws.answers = [NO_INSTANCES]
    override = ServiceOverride("ec2", aws.endpoint, REGION, "eu-west-9", "private-ec2")

    aws.api(overrides=(override,)).call("ec2", "DescribeInstances")

    assert "/eu-west-9/private-ec2/aws4_request" in aws.headers[0]["authorization"]


def test_an_override_of_another_region_is_not_ours(aws: ScriptedAws) -> None:
    other = ServiceOverride("ec2", "http://127.0.0.1:1", "us-east-1", "us-east-1")
    ours = ServiceOverride("ec2", aws.endpoint, REGION, REGION)
    aws.answers = [NO_INSTANCES]

    aws.api(overrides=(other, ours)).call("ec2", "DescribeInstances")

    assert len(aws.requests) == 1


@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_the_region_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "ap-south-1")

    assert Api(Config("c")).region == "ap-south-1"
    assert Api(Config("c", region="eu-central-1")).region == "eu-central-1"


def test_the_metadata_service_tells_region_and_credentials_where_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch, aws: ScriptedAws
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", aws.endpoint)
    monkeypatch.setenv("AWS_METADATA_SERVICE_TIMEOUT", "60")  # botocore gives it a second.
    role = "/latest/meta-data/iam/security-credentials/"
    aws.metadata = {
        "/latest/meta-data/placement/availability-zone/": f"{REGION}a",
        role: "nodes",
        f"{role}nodes": json.dumps(
            {
                "AccessKeyId": "ASIANODE",
                "SecretAccessKey": "s",
                "Token": "t",
                "Expiration": "2999-01-01T00:00:00Z",
                "Code": "Success",
            }
        ),
    }
    aws.answers = [NO_INSTANCES]

    aws.api(region=None).call("ec2", "DescribeInstances")

    assert "Credential=ASIANODE/" in aws.headers[0]["authorization"]
    assert f"/{REGION}/ec2/" in aws.headers[0]["authorization"]


def test_the_metadata_service_is_not_asked_where_all_is_configured(
    monkeypatch: pytest.MonkeyPatch, aws: ScriptedAws
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", aws.endpoint)
    aws.answers = [NO_INSTANCES]

    aws.api().call("ec2", "DescribeInstances")

    assert aws.metadata_asked == []


def test_no_region_anywhere_is_told() -> None:
    with pytest.raises(InvalidConfiguration, match=r"\[Global\] Region: missing"):
        assert Api(Config("c")).region


def test_no_credentials_are_told_as_such(monkeypatch: pytest.MonkeyPatch, aws: ScriptedAws) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(AccessDenied, match="ec2 DescribeInstances: no credentials"):
        aws.api().call("ec2", "DescribeInstances")

    assert aws.requests == []


@pytest.mark.parametrize(
    ("environment", "error", "told"),
    [
        ({"AWS_SECRET_ACCESS_KEY": ""}, AccessDenied, "no credentials .*missing: AWS_SECRET_ACCESS_KEY"),
        ({"AWS_PROFILE": "nobody"}, AccessDenied, "no credentials .*nobody"),
        ({"AWS_REGION": "eu central"}, InvalidConfiguration, r"\[Global\] Region: .*'eu central'"),
    ],
    ids=["half-a-pair-of-keys", "no-such-profile", "no-such-form-of-region"],
)
def test_what_boto3_can_not_begin_with_is_told(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], error: type[CloudError], told: str
) -> None:
    monkeypatch.setenv("AWS_REGION", REGION)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(error, match=told):
        Api(Config("c")).call("ec2", "DescribeInstances")


def test_a_role_is_assumed_before_the_first_call_on_behalf_of_its_source(aws: ScriptedAws) -> None:
    assumed = (
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId>"
        "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2999-01-01T00:00:00Z"
        "</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )
    aws.answers = [Answer(200, assumed), NO_INSTANCES]
    role, source = "arn:aws:iam::123456789012:role/ccm", "arn:aws:eks:eu-central-1:210987654321:cluster/c"
    api = aws.api(role_arn=role, source_arn=source)

    api.call("ec2", "DescribeInstances")
    api.call("ec2", "DescribeInstances")

    assert [request["Action"] for request in aws.requests] == ["AssumeRole", "DescribeInstances", "DescribeInstances"]
    assert aws.requests[0]["RoleArn"] == role
    assert aws.headers[0]["x-amz-source-arn"] == source
    assert aws.headers[0]["x-amz-source-account"] == "210987654321"
    assert "Credential=ASIAROLE/" in aws.headers[1]["authorization"]


def test_a_pods_web_identity_is_used_where_it_has_one(
    monkeypatch: pytest.MonkeyPatch, aws: ScriptedAws, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("a-token-of-the-service-account")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/irsa")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    assumed = (
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
        "<AccessKeyId>ASIAIRSA</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
        "<Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
        "</AssumeRoleWithWebIdentityResponse>"
    )
    aws.answers = [ec2_error("InternalError", 500), Answer(200, assumed), NO_INSTANCES]

    aws.api().call("ec2", "DescribeInstances")

    # Asked for at the override's endpoint, and again as any other call.
    assert len(aws.sleeps) == 1
    assert aws.requests[1]["WebIdentityToken"] == "a-token-of-the-service-account"
    assert "Credential=ASIAIRSA/" in aws.headers[2]["authorization"]


def test_a_web_identity_that_is_not_there_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, aws: ScriptedAws, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/irsa")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nonexistent/token")

    with pytest.raises(AccessDenied, match=r"no credentials .*/nonexistent/token"):
        aws.api().call("ec2", "DescribeInstances")

    assert "/nonexistent/token" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("refused", [ec2_error("RequestExpired"), ec2_error("AuthFailure", 401)])
def test_credentials_that_are_not_taken_any_more_are_read_anew(
    refused: Answer, monkeypatch: pytest.MonkeyPatch, aws: ScriptedAws, tmp_path: Path
) -> None:
    monkeypatch.setattr(client, "_CREDENTIALS_AGE", 0.0)
    api = _with_credentials_of(tmp_path / "credentials", "FIRST", monkeypatch, aws)
    aws.answers = [NO_INSTANCES, refused, NO_INSTANCES]
    api.call("ec2", "DescribeInstances")

    _write_credentials(tmp_path / "credentials", "SECOND")
    with pytest.raises(AccessDenied):
        api.call("ec2", "DescribeInstances")
    api.call("ec2", "DescribeInstances")

    assert _keys(aws) == ["FIRST", "FIRST", "SECOND"]


def test_new_credentials_are_not_read_anew_for_each_call_that_is_refused(
    monkeypatch: pytest.MonkeyPatch, aws: ScriptedAws, tmp_path: Path
) -> None:
    monkeypatch.setattr(client, "_CREDENTIALS_AGE", 600.0)
    api = _with_credentials_of(tmp_path / "credentials", "FIRST", monkeypatch, aws)
    aws.answers = [ec2_error("AuthFailure", 401)]

    for key in ("SECOND", "THIRD"):
        with pytest.raises(AccessDenied):
            api.call("ec2", "DescribeInstances")
        _write_credentials(tmp_path / "credentials", key)

    assert _keys(aws) == ["FIRST", "FIRST"]


def _with_credentials_of(file: Path, key: str, monkeypatch: pytest.MonkeyPatch, aws: ScriptedAws) -> Api:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    _write_credentials(file, key)
    return aws.api()


def _write_credentials(file: Path, key: str) -> None:
    file.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = a-secret-of-nobody\n")


def _keys(aws: ScriptedAws) -> list[str]:
    """The access keys that signed the requests."""
    return [each["authorization"].partition("Credential=")[2].partition("/")[0] for each in aws.headers]


def test_a_client_does_not_show_its_credentials(account: AwsAccount) -> None:
    api = account.api()
    api.call("sts", "GetCallerIdentity")

    assert "secret" not in repr(api)


# ---------------------------------------------------------------------------------------------------------- the fence


def test_the_fence_is_asked_once_the_credentials_are_there(aws: ScriptedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    fetch = Credentials.get_frozen_credentials

    def fetching(self: Credentials) -> ReadOnlyCredentials:
        order.append("credentials")
        return fetch(self)

    monkeypatch.setattr(Credentials, "get_frozen_credentials", fetching)
    aws.answers = [ec2_answer()]
    api = aws.api()
    api.fence = lambda: order.append("fence")

    api.call("ec2", "DeleteRoute", RouteTableId="rtb-1", DestinationCidrBlock="10.0.0.0/24")

    assert order[-1] == "fence"
    assert "credentials" not in order[order.index("fence") :]


def test_a_request_refused_after_its_headers_never_gets_its_body_sent(aws: ScriptedAws) -> None:
    answers = iter([None, WriteRefused("the lease is lost")])
    aws.answers = [ec2_answer()]
    api = aws.api()

    def fence() -> None:
        if (error := next(answers)) is not None:
            raise error

    api.fence = fence

    with pytest.raises(WriteRefused, match="the lease is lost"):
        api.call("ec2", "DeleteRoute", RouteTableId="rtb-1", DestinationCidrBlock="10.0.0.0/24")

    assert not any(aws.requests)
    assert aws.sleeps == []


def test_a_dry_run_changes_nothing_and_passes_the_fence(aws: ScriptedAws) -> None:
    aws.answers = [ec2_error("DryRunOperation", 412)]
    api = aws.api()
    api.fence = read_only

    with pytest.raises(CloudError, match="DryRunOperation"):
        api.call("ec2", "DeleteRoute", RouteTableId="rtb-1", DryRun=True)

    assert [request["DryRun"] for request in aws.requests] == ["true"]


@pytest.mark.parametrize(
    ("service", "operation", "params"),
    [
        ("ec2", "DeleteRoute", {"RouteTableId": "rtb-1"}),
        ("ec2", "DeleteRoute", {"RouteTableId": "rtb-1", "DryRun": False}),
        ("ec2", "CreateSecurityGroup", {"GroupName": "a&DryRun=true", "Description": "DryRun=true"}),
        ("elb", "DeleteLoadBalancer", {"LoadBalancerName": "a&DryRun=true"}),
    ],
)
def test_whatever_is_no_dry_run_does_not_pass_it(
    aws: ScriptedAws, service: str, operation: str, params: dict[str, Any]
) -> None:
    api = aws.api()
    api.fence = read_only

    with pytest.raises(WriteRefused):
        api.call(service, operation, **params)

    assert aws.requests == []
