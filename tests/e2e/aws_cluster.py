"""A cluster on the simulated AWS that no stack made: VPC, EKS cluster and instances by AWS's API."""

from __future__ import annotations

from typing import Any

from components.clouds.aws.kubeconfigs import with_aws_cli
from local.aws.account import client
from local.aws.site import AwsSite
from tests.e2e.local_stack import eventually

REGION = "eu-central-1"
ZONES = ("eu-central-1a", "eu-central-1b")


class AwsCluster:
    """An EKS cluster `theirs` with an instance in each of two zones, and its OIDC provider in IAM."""

    name = "theirs"

    def __init__(self, site: AwsSite) -> None:
        site.up()
        self.site = site
        ranges = site.block.network(0)
        self.pods = str(ranges.pods)
        self.mark = {"Key": f"kubernetes.io/cluster/{self.name}", "Value": "owned"}
        ec2 = self.aws("ec2")
        self.vpc_id = str(ec2.create_vpc(CidrBlock=str(ranges.machines))["Vpc"]["VpcId"])
        subnets = self._subnets([str(each) for each in ranges.machines.subnets(prefixlen_diff=1)])
        group = ec2.create_security_group(
            GroupName="nodes",
            Description="Nodes",
            VpcId=self.vpc_id,
            TagSpecifications=[{"ResourceType": "security-group", "Tags": [self.mark]}],
        )["GroupId"]
        issuer = self._cluster(subnets)
        self.oidc_provider = str(
            self.aws("iam").create_open_id_connect_provider(Url=issuer, ClientIDList=["sts.amazonaws.com"])[
                "OpenIDConnectProviderArn"
            ]
        )
        for subnet in subnets:
            ec2.run_instances(
                ImageId="ami-12c6146b",
                InstanceType="m7i.large",
                MinCount=1,
                MaxCount=1,
                SubnetId=subnet,
                SecurityGroupIds=[group],
                TagSpecifications=[{"ResourceType": "instance", "Tags": [self.mark]}],
            )

    def aws(self, service: str) -> Any:
        """A boto3 client of the account's owner."""
        return client(self.site.endpoint, REGION, *self.site.credentials, service)

    @property
    def kubeconfig(self) -> str:
        """As `aws eks update-kubeconfig` writes it."""
        cluster = self.aws("eks").describe_cluster(name=self.name)["cluster"]
        return with_aws_cli(
            cluster=self.name,
            region=REGION,
            endpoint=cluster["endpoint"],
            certificate_authority=cluster["certificateAuthority"]["data"],
        )

    def instances(self) -> dict[str, tuple[str, str]]:
        """Id and state of the instances by the names of their nodes."""
        found = [each for of in self.aws("ec2").describe_instances()["Reservations"] for each in of["Instances"]]
        return {each["PrivateDnsName"]: (each["InstanceId"], each["State"]["Name"]) for each in found}

    def routes(self) -> set[str]:
        """The destinations that lead to instances."""
        tables = self.aws("ec2").describe_route_tables()["RouteTables"]
        routes = [route for table in tables for route in table["Routes"]]
        return {each["DestinationCidrBlock"] for each in routes if each.get("InstanceId")}

    def load_balancers(self) -> set[str]:
        """The names of network load balancers."""
        return {each["LoadBalancerName"] for each in self.aws("elbv2").describe_load_balancers()["LoadBalancers"]}

    def roles(self) -> set[str]:
        """The names of IAM roles."""
        return {each["RoleName"] for each in self.aws("iam").list_roles()["Roles"]}

    def left(self) -> set[str]:
        """Everything in the account, by kind and name."""
        return set(self.site.left())

    def _subnets(self, ranges: list[str]) -> list[str]:
        """Public subnets, one a zone, that share the route table with the cluster's tag."""
        ec2 = self.aws("ec2")
        gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=self.vpc_id)
        table = ec2.create_route_table(VpcId=self.vpc_id)["RouteTable"]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
        made = []
        for zone, cidr in zip(ZONES, ranges, strict=True):
            subnet = ec2.create_subnet(VpcId=self.vpc_id, CidrBlock=cidr, AvailabilityZone=zone)["Subnet"]["SubnetId"]
            ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
            made.append(str(subnet))
        ec2.create_tags(Resources=made, Tags=[self.mark, {"Key": "kubernetes.io/role/elb", "Value": "1"}])
        ec2.create_tags(Resources=[table], Tags=[self.mark])
        return made

    def _cluster(self, subnets: list[str]) -> str:
        """Make the control plane; its issuer."""
        trust = '{"Version": "2012-10-17", "Statement": []}'
        role = self.aws("iam").create_role(RoleName="eks", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        self.aws("eks").create_cluster(
            name=self.name,
            roleArn=role,
            resourcesVpcConfig={"subnetIds": subnets},
            tags={"cloud-controller/pod-cidr": self.pods},
        )

        def active() -> dict[str, Any] | None:
            found: dict[str, Any] = self.aws("eks").describe_cluster(name=self.name)["cluster"]
            assert found["status"] != "FAILED", found
            return found if found["status"] == "ACTIVE" else None

        return str(eventually(active, "the cluster is active")["identity"]["oidc"]["issuer"])
