"""A cluster of EKS has a real control plane, its instances are nodes, and both end with their objects."""

from __future__ import annotations

import base64
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from cloud_controller.kube import NODES, ForbiddenError, Kube, UnauthorizedError, name
from local import processes
from local.aws.get_token import token
from local.aws.site import AwsSite
from local.waiting import wait_until
from tests.local.aws.conftest import REGION, client

pytestmark = pytest.mark.control_plane

PATIENCE = 180.0
"""Seconds that a condition may take: some need a control plane's start, on a busy machine."""

USER_DATA = "/etc/eks/bootstrap.sh c1 --kubelet-extra-args '--node-labels=pool=w --register-with-taints=a=b:NoSchedule'"


@dataclass
class Cluster:
    """Cluster `c1` with a scaling group `workers`."""

    site: AwsSite

    def client(self, service: str) -> Any:
        return client(self.site, service)

    def described(self) -> dict[str, Any]:
        cluster: dict[str, Any] = self.client("eks").describe_cluster(name="c1")["cluster"]
        return cluster

    def kube(self, key: tuple[str, str] | None = None, bearer: str | None = None) -> Kube:
        """The cluster, as the owner of this key of AWS (default: the site's)."""
        cluster = self.described()
        bearer = bearer or token("c1", self.site.endpoint, REGION, *(key or self.site.credentials))
        server = {
            "server": cluster["endpoint"],
            "certificate-authority-data": cluster["certificateAuthority"]["data"],
        }
        return Kube.from_kubeconfig(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c1", "cluster": server}],
                    "users": [{"name": "me", "user": {"token": bearer}}],
                    "contexts": [{"name": "c1", "context": {"cluster": "c1", "user": "me"}}],
                    "current-context": "c1",
                }
            )
        )

    def nodes(self) -> list[dict[str, Any]]:
        kube = self.kube()
        try:
            return list(kube.list(NODES).items)
        finally:
            kube.close()

    def machines(self) -> list[dict[str, Any]]:
        return self.site.status()["machines"]  # type: ignore[no-any-return]

    def process(self, machine: str) -> processes.Process | None:
        return processes.find(self.site.folder.process_record(machine))


def eventually(condition: Callable[[], bool], what: str) -> None:
    assert wait_until(condition, PATIENCE), f"not within {PATIENCE:g} s: {what}"


@pytest.fixture(scope="module")
def cluster(aws_site: AwsSite) -> Iterator[Cluster]:
    ec2, iam, eks = (client(aws_site, service) for service in ("ec2", "iam", "eks"))
    block = aws_site.block.network(0)
    vpc = ec2.create_vpc(CidrBlock=str(block.machines))["Vpc"]["VpcId"]
    subnet = next(block.machines.subnets(new_prefix=24))
    subnet_id = ec2.create_subnet(VpcId=vpc, CidrBlock=str(subnet), AvailabilityZone=f"{REGION}a")["Subnet"]["SubnetId"]
    role = iam.create_role(RoleName="eks", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    made = eks.create_cluster(name="c1", roleArn=role, resourcesVpcConfig={"subnetIds": [subnet_id]})["cluster"]
    assert made["status"] == "CREATING"
    waiter = eks.get_waiter("cluster_active")
    waiter.config.delay, waiter.config.max_attempts = 1, int(PATIENCE)
    waiter.wait(name="c1")
    ec2.create_launch_template(
        LaunchTemplateName="workers",
        LaunchTemplateData={
            "ImageId": "ami-12345678",
            "InstanceType": "m7i.large",
            "UserData": base64.b64encode(USER_DATA.encode()).decode(),
            "TagSpecifications": [
                {"ResourceType": "instance", "Tags": [{"Key": "kubernetes.io/cluster/c1", "Value": "owned"}]}
            ],
        },
    )
    client(aws_site, "autoscaling").create_auto_scaling_group(
        AutoScalingGroupName="workers",
        MinSize=0,
        MaxSize=9,
        DesiredCapacity=1,
        VPCZoneIdentifier=subnet_id,
        LaunchTemplate={"LaunchTemplateName": "workers"},
    )
    cluster = Cluster(aws_site)
    eventually(lambda: len(cluster.nodes()) == 1, "a node")
    yield cluster


@pytest.mark.parametrize("bearer", ["k8s-aws-v1.abc", "guessed"])
def test_an_invalid_token_is_rejected(cluster: Cluster, bearer: str) -> None:
    with pytest.raises(UnauthorizedError):
        cluster.kube(bearer=bearer).list(NODES)


def test_a_token_of_another_cluster_is_rejected(cluster: Cluster) -> None:
    other = token("c2", cluster.site.endpoint, REGION, *cluster.site.credentials)

    with pytest.raises(UnauthorizedError):
        cluster.kube(bearer=other).list(NODES)


def test_other_users_of_the_account_are_rejected(cluster: Cluster) -> None:
    cluster.client("iam").create_user(UserName="other")
    key = cluster.client("iam").create_access_key(UserName="other")["AccessKey"]

    with pytest.raises((UnauthorizedError, ForbiddenError)):
        cluster.kube((key["AccessKeyId"], key["SecretAccessKey"])).list(NODES)


def test_an_instance_registers_its_node_according_to_its_user_data(cluster: Cluster) -> None:
    (node,) = cluster.nodes()
    (machine,) = cluster.machines()

    assert name(node) == machine["node_name"]
    assert node["metadata"]["labels"]["pool"] == "w"
    assert {taint["key"] for taint in node["spec"]["taints"]} >= {
        "a",
        "node.cloudprovider.kubernetes.io/uninitialized",
    }
    assert node["status"]["capacity"]["cpu"] == "2"


def test_a_control_plane_that_was_killed_heals(cluster: Cluster) -> None:
    (folder,) = cluster.site.folder.cluster("x").parent.iterdir()
    killed = processes.find_all(folder / "processes")
    for process in killed:
        process.signal(signal.SIGKILL)
    assert all(process.wait(PATIENCE) for process in killed)

    eventually(lambda: len(processes.find_all(folder / "processes")) == len(killed), "the components run again")
    eventually(lambda: cluster.described()["status"] == "ACTIVE", "the cluster says so")


def test_everything_runs_again_after_a_stop_of_the_site(cluster: Cluster) -> None:
    (machine,) = cluster.machines()
    cluster.site.down(keep_data=True)
    assert cluster.process(machine["id"]) is None

    cluster.site.up()

    eventually(lambda: cluster.process(machine["id"]) is not None, "the machine boots")
    eventually(lambda: bool(cluster.nodes()), "the control plane answers")
    assert cluster.site.crashed_machines() == []


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        pytest.param({"kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"}}, "172.20.0.0/16", id="not here"),
        pytest.param({"tags": {"cloud-controller/pod-cidr": "many"}}, "many", id="no range"),
    ],
)
def test_a_range_that_this_machine_cannot_bind_is_refused_with_the_reason(
    cluster: Cluster, asked: dict[str, Any], named: str
) -> None:
    eks = cluster.client("eks")
    role, subnets = cluster.described()["roleArn"], cluster.described()["resourcesVpcConfig"]["subnetIds"]
    eks.create_cluster(name="c2", roleArn=role, resourcesVpcConfig={"subnetIds": subnets}, **asked)

    eventually(lambda: eks.describe_cluster(name="c2")["cluster"]["status"] == "FAILED", "the cluster fails")

    (issue,) = eks.describe_cluster(name="c2")["cluster"]["health"]["issues"]
    eks.delete_cluster(name="c2")
    assert named in issue["message"]


def test_a_deleted_cluster_takes_its_control_plane_along(cluster: Cluster) -> None:
    clusters = cluster.site.folder.cluster("x").parent
    (folder,) = clusters.iterdir()
    ran = processes.find_all(folder / "processes")
    cluster.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName="workers", ForceDelete=True)

    cluster.client("eks").delete_cluster(name="c1")

    eventually(lambda: not list(clusters.iterdir()), "the cluster's folder is gone")
    assert [process.name for process in ran if process.is_running()] == []
