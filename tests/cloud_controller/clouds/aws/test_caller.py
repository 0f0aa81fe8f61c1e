"""Doctor knows whether its credentials are the CCM's: only then do dry runs show the CCM's rights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from cloud_controller.cloud import CcmPods
from cloud_controller.clouds.aws.caller import other_than_ccm
from tests.cloud_controller.clouds.aws.scripted_aws import Answer, ScriptedAws, ec2_answer, scripted

ROLE = "arn:aws:iam::123456789012:role/path/ccm"
OF_ROLE = "arn:aws:sts::123456789012:assumed-role/ccm/session"
OF_MACHINE = "arn:aws:sts::123456789012:assumed-role/control-plane/i-0a"
IRSA = {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}
MACHINES = ("aws:///eu-central-1a/i-0a", "aws:///eu-central-1b/i-0b")


@pytest.fixture
def aws() -> Iterator[ScriptedAws]:
    with scripted() as running:
        yield running


def caller(arn: str) -> Answer:
    result = f"<GetCallerIdentityResult><Arn>{arn}</Arn></GetCallerIdentityResult>"
    return Answer(200, f"<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>")


def instances(*profiles: tuple[str, str]) -> Answer:
    """DescribeInstances: IDs, each with its profile's ARN; "" for none."""
    items = "".join(
        f"<item><instanceId>{machine}</instanceId>"
        + (f"<iamInstanceProfile><arn>{arn}</arn></iamInstanceProfile>" if arn else "")
        + "</item>"
        for machine, arn in profiles
    )
    return ec2_answer(f"<reservationSet><item><instancesSet>{items}</instancesSet></item></reservationSet>")


def other(aws: ScriptedAws, answers: Sequence[Answer], pods: CcmPods | None) -> str | None:
    aws.answers = [*answers]
    return other_than_ccm(aws.api(), pods)


# -------------------------------------------------------------------------------------------------- the pods' own role


def test_a_session_of_the_pods_role_is_the_ccms(aws: ScriptedAws) -> None:
    assert other(aws, [caller(OF_ROLE)], CcmPods(IRSA, ())) is None


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:sts::123456789012:assumed-role/ccm-doctor/session",
        "arn:aws:sts::210987654321:assumed-role/ccm/session",
        "arn:aws:iam::123456789012:user/ccm",
        "arn:aws:iam::123456789012:root",
        OF_MACHINE,
    ],
    ids=["doctors-own-role", "another-account", "user", "root", "machine"],
)
def test_whoever_else_calls_is_named_with_the_ccms_role(aws: ScriptedAws, arn: str) -> None:
    assert other(aws, [caller(arn)], CcmPods(IRSA, MACHINES)) == f"doctor calls AWS as {arn}, and the CCM as {ROLE}"


def test_the_role_of_the_cloud_config_is_the_ccms_wherever_it_runs(aws: ScriptedAws) -> None:
    assumed = (
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId>"
        "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2999-01-01T00:00:00Z"
        "</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )
    aws.answers = [Answer(200, assumed), caller(OF_ROLE)]

    assert other_than_ccm(aws.api(role_arn=ROLE), None) is None


# ------------------------------------------------------------------------------------------------- the machine's role


def test_on_machines_with_one_instance_profile_doctor_has_the_ccms_role(aws: ScriptedAws) -> None:
    same = instances(("i-0a", "arn:p"), ("i-0b", "arn:p"))

    assert other(aws, [caller(OF_MACHINE), same], CcmPods({"AWS_REGION": "eu-central-1"}, MACHINES)) is None
    assert {aws.requests[1][f"Filter.1.Value.{number}"] for number in (1, 2)} == {"i-0a", "i-0b"}


@pytest.mark.parametrize(
    "found",
    [
        instances(("i-0a", "arn:p"), ("i-0b", "arn:other")),
        instances(("i-0a", ""), ("i-0b", "")),
        instances(("i-0b", "arn:p")),
    ],
    ids=["other-profile", "no-profiles", "unknown-machine"],
)
def test_machines_that_may_have_other_roles_show_nothing(aws: ScriptedAws, found: Answer) -> None:
    why = other(aws, [caller(OF_MACHINE), found], CcmPods({}, MACHINES))

    assert why == f"doctor calls AWS as {OF_MACHINE}, and the CCM has its machine's role"


def test_somebody_elsewhere_has_not_the_machines_role(aws: ScriptedAws) -> None:
    arn = "arn:aws:iam::123456789012:user/admin"

    assert other(aws, [caller(arn)], CcmPods({}, MACHINES)) is not None


@pytest.mark.parametrize("machines", [(), ("",), ("aws:///eu-central-1a/fargate-10.0.0.1", MACHINES[0])])
def test_without_the_machine_of_every_pod_its_role_is_unknown(aws: ScriptedAws, machines: tuple[str, ...]) -> None:
    same = instances(("i-0a", "arn:p"))

    assert other(aws, [caller(OF_MACHINE), same], CcmPods({}, machines)) is not None


# ----------------------------------------------------------------------------------------------- what cannot be seen


@pytest.mark.parametrize(
    "name", ["AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"]
)
def test_credentials_that_the_pods_do_not_show_may_be_others(aws: ScriptedAws, name: str) -> None:
    why = other(aws, [caller(OF_ROLE)], CcmPods({**IRSA, name: None}, MACHINES))

    assert why == f"doctor calls AWS as {OF_ROLE}, and the CCM has credentials that its pods do not show ({name})"


@pytest.mark.parametrize("name", sorted(IRSA))
def test_a_role_that_another_object_names_is_not_shown(aws: ScriptedAws, name: str) -> None:
    why = other(aws, [caller(OF_MACHINE), instances(("i-0a", "arn:p"))], CcmPods({**IRSA, name: None}, MACHINES[:1]))

    assert why == f"doctor calls AWS as {OF_MACHINE}, and the CCM has credentials that its pods do not show ({name})"


def test_a_role_without_a_token_for_it_is_not_the_pods(aws: ScriptedAws) -> None:
    same = instances(("i-0a", "arn:p"))

    assert other(aws, [caller(OF_MACHINE), same], CcmPods({"AWS_ROLE_ARN": ROLE}, MACHINES[:1])) is None


def test_a_ccm_outside_the_cluster_does_not_show_its_credentials(aws: ScriptedAws) -> None:
    why = other(aws, [caller(OF_MACHINE)], None)

    assert why == f"doctor calls AWS as {OF_MACHINE}, and no pod shows which credentials the CCM has"
