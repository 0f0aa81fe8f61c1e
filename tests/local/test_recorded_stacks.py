"""Stacks of a recorded cloud: `make preview` shows them whole, checked by their policies, without an account."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.__main__ import PROJECT, main
from local.engine import cli
from local.stack_file import NAMESPACE

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def _nobodys_account(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALICLOUD_ACCESS_KEY")
    for name in (*keys, "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OS_CLOUD", "OS_PASSWORD", "OS_APPLICATION_CREDENTIAL_SECRET"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _own_umask() -> Iterator[None]:
    """The command line changes the umask of its process, which is the other tests' too."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def previewed(stack: str, state: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Sequence[dict[str, Any]]:
    """The events of the preview, which must succeed."""
    assert main(["preview", "--stack", stack, "--state", str(state), "--json", *options]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def findings(events: Sequence[dict[str, Any]]) -> set[tuple[str, str]]:
    """What the policies say: the rules, with their levels."""
    found = [event["policyEvent"] for event in events if "policyEvent" in event]
    return {(each["policyName"], each["enforcementLevel"]) for each in found}


# The cluster's OIDC provider, of which trust policies are made, and the vSwitches' ids, which an annotation names.
TRUST_UNKNOWN = {("iam-role-limit-trust", "not-evaluated")}
ZONES_UNKNOWN = {("lb-service-fit-annotations", "not-evaluated"), ("lb-service-share-without-clash", "not-evaluated")}


@pytest.mark.parametrize("stack", ["aws-prod", "aws-staging"])
def test_a_stack_on_aws_is_previewed_without_an_account(
    stack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = previewed(stack, tmp_path, capsys)

    steps = [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]
    assert findings(events) == (TRUST_UNKNOWN if stack == "aws-prod" else set())
    assert {step["op"] for step in steps} == {"create"}
    types = {step["type"] for step in steps}
    assert {"aws:ec2/vpc:Vpc", "kubernetes:core/v1:Service"} <= types
    assert ("aws:eks/addon:Addon" in types) == (stack == "aws-prod")
    assert not (tmp_path / "site.json").exists()


@pytest.mark.parametrize(
    ("stack", "of_shape"),
    [
        ("alicloud-prod", "alicloud:cs/managedKubernetes:ManagedKubernetes"),
        ("alicloud-staging", "alicloud:ecs/instance:Instance"),
    ],
)
def test_a_stack_on_alibaba_cloud_is_previewed_without_an_account(
    stack: str, of_shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = previewed(stack, tmp_path, capsys)

    steps = [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]
    assert findings(events) == (ZONES_UNKNOWN if stack == "alicloud-staging" else set())
    assert {step["op"] for step in steps} == {"create"}
    assert {"alicloud:vpc/network:Network", of_shape, "kubernetes:core/v1:Service"} <= {step["type"] for step in steps}
    assert not (tmp_path / "site.json").exists()


def test_a_stack_on_openstack_is_previewed_without_an_account(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = previewed("openstack-prod", tmp_path, capsys)

    steps = [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]
    # The day in the stack file passes.
    assert findings(events) <= {("ccm-credential-set-expiry", "advisory")}
    assert {step["op"] for step in steps} == {"create"}
    of_shape = {"openstack:compute/instance:Instance", "openstack:identity/applicationCredential:ApplicationCredential"}
    assert {"openstack:networking/network:Network", "kubernetes:core/v1:Service", *of_shape} <= {
        step["type"] for step in steps
    }
    assert not (tmp_path / "site.json").exists()


def created(events: Sequence[dict[str, Any]]) -> set[str]:
    """The types of the resources that would be created."""
    steps = [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]
    return {step["type"] for step in steps if step["op"] == "create"}


def stack_file(folder: Path, config: dict[str, Any], **of_aws: Any) -> str:
    """A stack file with these keys, and these of its section `aws`."""
    section = {**config["aws"], **of_aws}
    file = folder / "Pulumi.shop.yaml"
    keys = {**config, "clusterName": "shop", "aws": {k: v for k, v in section.items() if v is not None}}
    file.write_text(yaml.safe_dump({"config": {f"{NAMESPACE}:{key}": value for key, value in keys.items()}}))
    return str(file)


def test_a_stack_on_an_existing_cluster_is_previewed_without_its_kubeconfig(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {
        "cloud": "aws",
        "cluster": "existing",
        "existing": {"clusterId": "theirs", "networkId": "vpc-1", "podCidr": "10.0.0.0/16"},
        "kubeconfig": {"secure": "v1:AAAA:AAAA"},
        "aws": {"region": "eu-central-1", "kubernetesVersion": "1.36", "ccmImage": "registry.example/ccm:v1.0.0"},
        "workloads": True,
        "sourceRanges": ["192.0.2.0/24"],
    }
    provider = "arn:aws:iam::123456789012:oidc-provider/oidc.example"
    file = stack_file(tmp_path, config, existing={"oidcProvider": provider})

    events = previewed("shop", tmp_path / "state", capsys, "--config-file", file)

    # Its load balancers may be deleted with it: the stack is not protected.
    assert findings(events) == {("lb-service-protect-from-deletion", "advisory")}
    types = created(events)
    assert {type_ for type_ in types if type_.startswith("aws:")} == {
        "aws:iam/policy:Policy",
        "aws:iam/role:Role",
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    }
    assert {"cloudcontroller:index:Cluster", "kubernetes:apps/v1:Deployment", "kubernetes:core/v1:Service"} <= types


def test_a_new_cluster_in_an_existing_network_is_previewed_without_an_account(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = yaml.safe_load((PROJECT / "stacks" / "Pulumi.aws-prod.yaml").read_text())["config"]
    config = {key.removeprefix(f"{NAMESPACE}:"): value for key, value in text.items()}
    network = {"vpcId": "vpc-1", "subnets": {f"eu-central-1{zone}": f"subnet-{zone}" for zone in "abc"}}
    changed = {"vpcCidr": "10.8.0.0/22", "nodeSubnets": None, "internalEndpoints": None}
    file = stack_file(tmp_path, config, network=network, **changed)

    events = previewed("shop", tmp_path / "state", capsys, "--config-file", file)

    assert findings(events) == TRUST_UNKNOWN
    types = created(events)
    assert "aws:eks/cluster:Cluster" in types
    assert not types & {"aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet", "aws:ec2/routeTable:RouteTable"}


@pytest.mark.parametrize("stack", ["aws-prod", "alicloud-prod", "alicloud-staging", "openstack-prod"])
def test_a_preview_of_what_was_recorded_shows_no_change(
    stack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--stack", stack, "--state", str(tmp_path)]) == 0
    capsys.readouterr()

    events = previewed(stack, tmp_path, capsys)

    steps = [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]
    assert {step["op"] for step in steps} == {"same"}


def test_an_interrupted_recorded_run_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Sequence[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)

    assert main(["up", "--stack", "aws-prod", "--state", str(tmp_path)]) == 1
    assert "interrupted; run `up` again to continue" in capsys.readouterr().err
