"""What there is of load balancing in an account of AWS."""

from __future__ import annotations

from typing import Any

from tests.cloud_controller.clouds.aws.conftest import AwsAccount


def subnets_of(account: AwsAccount) -> set[str]:
    """The subnets of the only load balancer."""
    (lb,) = load_balancers(account)
    return {each["SubnetId"] for each in lb["AvailabilityZones"]}


def load_balancers(account: AwsAccount) -> list[Any]:
    """All network load balancers of the account."""
    return account.elbv2.describe_load_balancers()["LoadBalancers"]


def classic_load_balancers(account: AwsAccount) -> list[Any]:
    """All classic load balancers of the account."""
    return account.elb.describe_load_balancers()["LoadBalancerDescriptions"]


def group_of_people(account: AwsAccount, name: str = "theirs") -> str:
    """A security group that is not the controller's."""
    made = account.ec2.create_security_group(GroupName=name, Description="theirs", VpcId=account.vpc_id)
    return made["GroupId"]


def with_ipv6(account: AwsAccount, *subnets: str) -> None:
    """These subnets have IPv6 ranges."""
    vpc = account.ec2.describe_vpcs(VpcIds=[account.vpc_id])["Vpcs"][0]
    prefix = vpc["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"].removesuffix("00::/56")
    for number, subnet in enumerate(subnets):
        account.ec2.associate_subnet_cidr_block(SubnetId=subnet, Ipv6CidrBlock=f"{prefix}{number:02x}::/64")


def rules_of(account: AwsAccount, group: str) -> list[Any]:
    """What a security group lets in."""
    return account.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]


def target_groups(account: AwsAccount) -> list[Any]:
    """All target groups of the account."""
    return account.elbv2.describe_target_groups()["TargetGroups"]


def groups_made(account: AwsAccount) -> list[str]:
    """The names of the security groups that are not the VPC's or the nodes' own."""
    found = account.ec2.describe_security_groups()["SecurityGroups"]
    return sorted(group["GroupName"] for group in found if group["GroupName"] not in ("default", "nodes"))


def targets(account: AwsAccount, group: Any) -> set[tuple[str, int]]:
    """The registered targets of a target group."""
    health = account.elbv2.describe_target_health(TargetGroupArn=group["TargetGroupArn"])
    return {(each["Target"]["Id"], each["Target"]["Port"]) for each in health["TargetHealthDescriptions"]}


def listeners(account: AwsAccount, load_balancer: Any) -> dict[int, Any]:
    """The listeners of a load balancer, by port."""
    found = account.elbv2.describe_listeners(LoadBalancerArn=load_balancer["LoadBalancerArn"])["Listeners"]
    return {each["Port"]: each for each in found}


def tags_of(account: AwsAccount, arn: str) -> dict[str, str]:
    """The tags of a network load balancer, or of one of its parts."""
    (found,) = account.elbv2.describe_tags(ResourceArns=[arn])["TagDescriptions"]
    return {tag["Key"]: tag["Value"] for tag in found["Tags"]}


def node_rules(account: AwsAccount) -> int:
    """How many rules let others in to the nodes."""
    group = account.ec2.describe_security_groups(GroupIds=[account.node_group_id])["SecurityGroups"][0]
    return sum(len(each.get("UserIdGroupPairs", ())) for each in group["IpPermissions"])


def assert_nothing_left(account: AwsAccount) -> None:
    assert load_balancers(account) == []
    assert target_groups(account) == []
    assert groups_made(account) == []
    assert node_rules(account) == 0
