"""AWS as the controllers see it: what it offers, who it is, and how its clusters are reached."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from cloud_controller import clouds
from cloud_controller.cloud import AccessDenied, Cloud, NotFound
from cloud_controller.clouds.aws import access
from cloud_controller.clouds.aws.cloud import Aws
from cloud_controller.clouds.aws.config import render
from cloud_controller.controller_names import not_offered
from tests.cloud_controller.clouds.aws.scripted_aws import elb_error, scripted

if TYPE_CHECKING:
    from tests.cloud_controller.calls import Calls
    from tests.cloud_controller.clouds.aws.conftest import AwsAccount

EKS_ROLE = "arn:aws:iam::123456789012:role/eks"


def cloud_of(account: AwsAccount) -> Aws:
    return Aws(account.config())


def test_it_is_made_from_its_config_by_name(account: AwsAccount) -> None:
    cloud: Cloud = clouds.load("aws", render(account.config()))

    assert (cloud.provider_name, cloud.cluster_id) == ("aws", "prod-1")


def test_volumes_are_aws_own_drivers_and_all_else_is_offered(account: AwsAccount) -> None:
    assert not_offered(cloud_of(account)) == {"volume"}


def test_nothing_is_asked_before_something_is_wanted(account: AwsAccount, calls: Calls) -> None:
    cloud = cloud_of(account)
    cloud.observe_calls(calls)

    assert cloud.instances
    assert cloud.routes
    assert cloud.load_balancers
    assert calls.made == []


def test_access_is_checked_by_one_call(account: AwsAccount, calls: Calls) -> None:
    cloud = cloud_of(account)
    cloud.observe_calls(calls)

    cloud.check_access(["node", "route", "service"])

    assert calls.made == ["sts GetCallerIdentity"]


def test_credentials_that_aws_does_not_know_are_told() -> None:
    with scripted([elb_error("InvalidClientTokenId", 403, "The security token is invalid")]) as aws:
        cloud = Aws(aws.api().config)

        with pytest.raises(AccessDenied, match="sts GetCallerIdentity: InvalidClientTokenId"):
            cloud.check_access(["node"])


# ------------------------------------------------------------------------------------------------------ cluster access


def test_a_cluster_of_eks_is_reached_by_its_endpoint_with_a_token(account: AwsAccount) -> None:
    api = account.api()
    subnets = {"subnetIds": account.private_subnets}
    api.call("eks", "CreateCluster", name="prod-1", roleArn=EKS_ROLE, resourcesVpcConfig=subnets)
    cluster = api.call("eks", "DescribeCluster", name="prod-1")["cluster"]

    kubeconfig = yaml.safe_load(cloud_of(account).cluster_access())

    assert kubeconfig["clusters"][0]["cluster"] == {
        "server": cluster["endpoint"],
        "certificate-authority-data": cluster["certificateAuthority"]["data"],
    }
    (context,) = kubeconfig["contexts"]
    assert kubeconfig["current-context"] == context["name"]
    assert kubeconfig["users"][0]["user"]["token"].startswith("k8s-aws-v1.")


def test_a_token_is_a_signed_question_who_the_caller_is_for_this_cluster_alone(account: AwsAccount) -> None:
    encoded = access.token(account.api(), "prod-1").removeprefix("k8s-aws-v1.")
    parts = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}

    assert f"{parts.scheme}://{parts.netloc}" == account.endpoint
    assert query["Action"] == "GetCallerIdentity"
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert query["X-Amz-Expires"] == "60"
    assert "/eu-central-1/sts/aws4_request" in query["X-Amz-Credential"]


def test_a_cluster_that_is_not_eks_is_not_found(account: AwsAccount) -> None:
    with pytest.raises(NotFound, match="eks DescribeCluster"):
        cloud_of(account).cluster_access()
