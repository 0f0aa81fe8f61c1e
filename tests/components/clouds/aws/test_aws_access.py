"""How CloudController reaches a cluster on AWS: the cloud config, and a kubeconfig where AWS itself gives no access."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from pulumi.dynamic.config import Config

from cloud_controller.cloud import AccessDenied, InvalidConfiguration, NotFound
from cloud_controller.clouds.aws.config import SERVICES, parse
from components.clouds.aws.access import cloud_config, kubeconfig

REGION = "eu-central-1"


def config(**aws: Any) -> Config:
    """As the engine hands it to a dynamic provider: objects as JSON text."""
    return Config({"cloud-controller:aws": json.dumps({"region": REGION, **aws})}, "cloud-controller")


@pytest.fixture(autouse=True)
def _nobodys_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobodys")


def test_the_cloud_config_names_cluster_vpc_and_region() -> None:
    found = parse(cloud_config(config(), "prod", "vpc-0123"))

    assert (found.cluster_id, found.vpc_id, found.region, found.overrides) == ("prod", "vpc-0123", REGION, ())


def test_a_simulator_stands_in_for_every_service() -> None:
    found = parse(cloud_config(config(endpoint="http://127.0.0.1:5000"), "prod", "vpc-0123"))

    assert {each.service for each in found.overrides} == set(SERVICES)
    assert {each.url for each in found.overrides} == {"http://127.0.0.1:5000"}


def test_a_stack_without_a_region_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="no region"):
        cloud_config(Config({}, "cloud-controller"), "prod", "vpc-0123")


def test_a_cluster_on_eks_needs_no_kept_kubeconfig() -> None:
    assert kubeconfig(config(controlPlane="eks"), "prod") is None


@mock_aws
def test_a_control_plane_on_ec2_is_reached_by_the_kubeconfig_that_the_program_kept() -> None:
    client = boto3.client("ssm", region_name=REGION)
    client.put_parameter(Name="/cloud-controller/staging/kubeconfig", Type="SecureString", Value="kind: Config")

    assert kubeconfig(config(controlPlane="ec2"), "staging") == "kind: Config"


@mock_aws
def test_a_missing_kubeconfig_parameter_raises_not_found() -> None:
    with pytest.raises(NotFound, match="/cloud-controller/staging/kubeconfig"):
        kubeconfig(config(controlPlane="ec2"), "staging")


@pytest.fixture
def _earlier_session() -> Iterator[None]:
    """Somebody in this process has had credentials before."""
    boto3.setup_default_session(aws_access_key_id="earlier", aws_secret_access_key="earlier")
    yield
    boto3.DEFAULT_SESSION = None


@pytest.mark.usefixtures("_earlier_session")
def test_missing_aws_credentials_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")

    with pytest.raises(AccessDenied, match="credentials"):
        kubeconfig(config(controlPlane="ec2"), "staging")
