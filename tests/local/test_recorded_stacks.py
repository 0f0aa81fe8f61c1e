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
from local.stack_file import NAMESPACE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def _nobodys_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_DEBUG_COMMANDS", "true")  # for --event-log
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


def previewed(stack: str, folder: Path, *options: str) -> Sequence[dict[str, Any]]:
    """The events of the preview, which must succeed."""
    log = folder / "events"
    assert main(["preview", "--stack", stack, "--state", str(folder), "--event-log", str(log), *options]) == 0
    return [json.loads(line) for line in log.read_text().splitlines()]


def findings(events: Sequence[dict[str, Any]]) -> set[tuple[str, str]]:
    """What the policies say: the rules, with their levels."""
    found = [event["policyEvent"] for event in events if "policyEvent" in event]
    return {(each["policyName"], each["enforcementLevel"]) for each in found}


OF_SHAPE = {
    "alicloud-prod": "alicloud:cs/managedKubernetes:ManagedKubernetes",
    "alicloud-staging": "alicloud:ecs/instance:Instance",
    "aws-prod": "aws:eks/addon:Addon",
    "aws-staging": "aws:autoscaling/group:Group",
    "openstack-prod": "openstack:identity/applicationCredential:ApplicationCredential",
}
"""A type of each stack that another has not."""


@pytest.mark.parametrize("stack", OF_SHAPE)
def test_a_stack_of_a_cloud_without_a_site_is_previewed_without_an_account(stack: str, tmp_path: Path) -> None:
    events = previewed(stack, tmp_path)

    # The day in the stack file passes.
    assert findings(events) <= {("ccm-credential-set-expiry", "advisory")}
    assert {OF_SHAPE[stack], "kubernetes:core/v1:Service"} <= created(events)
    assert not (tmp_path / "site.json").exists()


def test_only_a_preview_can_do_without_the_cloud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--stack", "aws-prod", "--state", str(tmp_path)]) == 2

    assert "is for a cloud that no site here stands in for" in capsys.readouterr().err


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
    tmp_path: Path,
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

    events = previewed("shop", tmp_path, "--config-file", file)

    # Its load balancers may be deleted with it: the stack is not protected.
    assert findings(events) == {("lb-service-protect-from-deletion", "advisory")}
    types = created(events)
    assert {type_ for type_ in types if type_.startswith("aws:")} == {
        "aws:iam/policy:Policy",
        "aws:iam/role:Role",
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    }
    assert {"cloudcontroller:index:Cluster", "kubernetes:apps/v1:Deployment", "kubernetes:core/v1:Service"} <= types


def test_a_new_cluster_in_an_existing_network_is_previewed_without_an_account(tmp_path: Path) -> None:
    text = yaml.safe_load((PROJECT / "stacks" / "Pulumi.aws-prod.yaml").read_text())["config"]
    config = {key.removeprefix(f"{NAMESPACE}:"): value for key, value in text.items()}
    network = {"vpcId": "vpc-1", "subnets": {f"eu-central-1{zone}": f"subnet-{zone}" for zone in "abc"}}
    changed = {"vpcCidr": "10.8.0.0/22", "nodeSubnets": None, "internalEndpoints": None}
    file = stack_file(tmp_path, config, network=network, **changed)

    events = previewed("shop", tmp_path, "--config-file", file)

    assert findings(events) == set()
    types = created(events)
    assert "aws:eks/cluster:Cluster" in types
    assert not types & {"aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet", "aws:ec2/routeTable:RouteTable"}
