"""The pure parts of a cluster on AWS: ranges of subnets, processors of instance types, texts that machines run."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any

import pulumi
import pytest

from components.clouds.aws import vendor_manager
from components.clouds.aws.network import subnet_cidrs
from components.clouds.aws.nodes import architecture
from components.clouds.aws.settings import ZONE_LETTERS
from components.clouds.aws.user_data import machine
from components.clouds.common.user_data import kubeadm_control_plane, kubeadm_worker, node_labels
from components.cluster import Cluster
from components.controller_manager import CloudControllerManager

JOIN = {
    "region": "eu-central-1",
    "kubernetes_version": "1.34",
    "endpoint": "api.example.com",
    "pod_cidr": "100.64.0.0/16",
    "service_cidr": "172.20.0.0/16",
    "certificate_authority": "Q0E=",
}


def cluster(zones: Sequence[str] = ("us-west-2a", "us-west-2b"), **more: Any) -> Cluster:
    settings: Any = {"control_plane": "eks", "nodes": "eks", "kubernetes_version": "1.34", **more}
    return Cluster("c", {"cloud": "aws", "zones": zones, "settings": settings})


OF_VENDOR = {
    "oidc_provider": "arn:aws:iam::123456789012:oidc-provider/oidc.example/id/1",
    "cluster_id": "c",
    "cluster_name": "c",
    "controllers": ["service"],
    "ccm": "vendor",
}
"""The role of AWS's own CCM, which the manager then is not told to run."""


def manager(**more: Any) -> Any:
    network = {"cluster_name": "c", "cluster_cidr": "10.0.0.0/16", "cloud_config": "[Global]"}
    return {"cloud": "aws", "controllers": ["service"], "machines": 0, **network, **more}


@pytest.mark.parametrize("prefix", range(16, 21))
def test_the_subnets_of_all_zones_lie_in_the_vpc_and_do_not_overlap(prefix: int) -> None:
    vpc = IPv4Network(f"10.0.0.0/{prefix}")

    cidrs = subnet_cidrs(str(vpc), [f"us-east-1{letter}" for letter in ZONE_LETTERS])

    ranges = [IPv4Network(cidr) for pair in cidrs.values() for cidr in pair]
    assert len(ranges) == 2 * len(ZONE_LETTERS)
    assert all(each.subnet_of(vpc) and each.prefixlen <= 28 for each in ranges)
    assert not any(a.overlaps(b) for index, a in enumerate(ranges) for b in ranges[:index])


def test_a_zone_that_is_added_leaves_the_others_ranges_alone() -> None:
    two, three = (
        subnet_cidrs("10.0.0.0/16", [f"us-east-1{letter}" for letter in letters]) for letters in ("bd", "abcd")
    )

    assert two.items() <= three.items()


@pytest.mark.parametrize(
    "machine_type", ["m7g.large", "c7gn.xlarge", "t4g.small", "r8gd.2xlarge", "im4gn.large", "a1.large"]
)
def test_instance_types_with_graviton_processors_are_arm64(machine_type: str) -> None:
    assert architecture(machine_type) == "arm64"


@pytest.mark.parametrize(
    "machine_type", ["m7i.large", "g4dn.xlarge", "g6e.xlarge", "gr6.4xlarge", "c5a.large", "u7i-6tb.112xlarge"]
)
def test_instance_types_with_other_processors_are_x86_64(machine_type: str) -> None:
    assert architecture(machine_type) == "x86_64"


def test_labels_are_written_as_the_kubelets_flag_accepts_them() -> None:
    assert node_labels({"team": "shop", "a.b/c": ""}) == "a.b/c=,team=shop"


def test_the_start_of_workers_is_as_released_because_another_text_replaces_all_workers_of_every_stack() -> None:
    """If it has to change: new digest, and the first line of CHANGELOG's "Before you upgrade" says so."""
    text = kubeadm_worker(machine(), "shop", JOIN, {"team": "it's"})

    digest = hashlib.sha256(text.encode()).hexdigest()
    assert digest == "56ae824ad075ea7b85530e8d8727ab238b73f5e721ce755965c226a08f0fbf82"


@pytest.mark.integration
@pytest.mark.parametrize("render", [kubeadm_worker, lambda *args: kubeadm_control_plane(*args, first=True)])
def test_user_data_is_a_valid_bash_script(render: Any) -> None:
    bash = shutil.which("bash")
    assert bash

    text = render(machine(), "it's", JOIN, {"a": "b; rm -rf /"})

    checked = subprocess.run([bash, "-n"], input=text, capture_output=True, text=True, check=False, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "LABELS='a=b; rm -rf /'\n" in text  # a value is never code


@pytest.mark.parametrize(
    ("make", "path", "hint"),
    [
        (lambda: cluster(["us-west-2a"]), "zones", "at least two zones"),
        (lambda: cluster(["us-west-2a", "us-west-2-lax-1a"]), "zones[1]", "a zone of a region"),
        (lambda: cluster(vpc_cidr="10.0.0.0/24"), "settings.vpc_cidr", "/16 to /20"),
        (lambda: cluster(pod_cidr="10.0.64.0/18"), "settings.pod_cidr", "outside"),
        (lambda: cluster(service_cidr="192.168.0.0/25"), "settings.service_cidr", "from /12 to /24"),
        (lambda: cluster(service_cidr="10.0.0.0/20"), "settings.service_cidr", "overlaps the range of the VPC"),
        (lambda: cluster(pod_cidr="172.20.0.0/16"), "settings.service_cidr", "overlaps the range of the pods"),
        (lambda: Cluster("c", {"cloud": "aws", "zones": ["us-west-2a"]}), "settings", "is missing"),
        (lambda: CloudControllerManager("m", manager(controllers=["volume"])), "controllers", "EBS CSI"),
        (
            lambda: CloudControllerManager("m", manager(vendor_version="v1.34.0", controllers=["volume"])),
            "controllers",
            "AWS's controller manager has no 'volume'",
        ),
        (lambda: cluster(ccm="vendor", doctor=True), "settings.ccm", "the only CCM that doctor examines"),
        (
            lambda: CloudControllerManager("m", manager(identity=OF_VENDOR, doctor_schedule="0 * * * *")),
            "identity.ccm",
            "the only CCM that doctor examines",
        ),
    ],
)
def test_a_wrong_input_is_refused_by_its_name(make: Any, path: str, hint: str, run_program: Any) -> None:
    with pytest.raises(pulumi.InputPropertyError) as caught:
        run_program(make)

    assert caught.value.property_path == path
    assert hint in caught.value.reason


# --------------------------------------------------------------------------------------------- the vendor's manager


def test_the_vendors_manager_gets_only_the_rights_of_its_controllers() -> None:
    def actions(*controllers: str) -> set[str]:
        return {action for each in vendor_manager.statements(controllers) for action in each["Action"]}

    # Elastic Load Balancing looks at these in its caller's name.
    looked_at = {"ec2:DescribeVpcs", "ec2:DescribeInternetGateways", "ec2:GetSecurityGroupsForVpc"}
    assert looked_at <= actions("service")
    assert not any(action.startswith(("elasticloadbalancing:", "iam:")) for action in actions("node", "route"))


def test_the_vendors_manager_may_change_in_kubernetes_only_what_its_controllers_change() -> None:
    def granted(*controllers: str) -> dict[str, set[str]]:
        made = vendor_manager.make("v1", controllers, cluster_name="c", cluster_cidr="10.0.0.0/16", config_file="f")
        return {rule.resources[0]: {*rule.verbs} for rule in made.rules.cluster}

    assert granted("service")["nodes"] == {"get", "list", "watch"}
    assert "services" not in granted("node", "route")
    assert "delete" in granted("node", "node-lifecycle")["nodes"]
    assert granted("route")["nodes/status"] == {"patch"}
