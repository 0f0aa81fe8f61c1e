"""What a controller has left in the account for one Service, in a form in which two controllers can be compared.

Names, ids and ARNs that each controller or AWS makes up are left out; the parts are nested as they hang together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.aws.account import Account
from benchmarks.aws.moto_gaps import LEFT_OUT

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import IpPermissionOutputTypeDef, SecurityGroupTypeDef
    from mypy_boto3_elbv2.type_defs import TargetGroupTypeDef

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What there was before any Service: security groups and their rules."""

    groups: Mapping[str, frozenset[str]]


def baseline(account: Account) -> Baseline:
    """What there is now."""
    return Baseline({group["GroupId"]: frozenset(_rules(group["IpPermissions"], {})) for group in _groups(account)})


def found(account: Account, before: Baseline) -> Json:
    """All load balancers, target groups without one, and what changed about security groups."""
    groups = {group["GroupId"]: group for group in _groups(account)}
    made = {each_id: group for each_id, group in groups.items() if each_id not in before.groups}
    roles = dict.fromkeys(made, "group of the load balancer")
    return {
        "load_balancers": [*_network(account, made), *_classic(account, made)],
        "target_groups_alone": len(_target_groups(account)) - len(_served(account)),
        "opened": {
            each_id: sorted(set(_rules(groups[each_id]["IpPermissions"], roles)) - rules)
            for each_id, rules in before.groups.items()
            if each_id in groups and set(_rules(groups[each_id]["IpPermissions"], roles)) != rules
        },
        "groups_alone": len(set(made) - _used(account)),
    }


# ---------------------------------------------------------------------------------------------------------- network


def _network(account: Account, made: Mapping[str, SecurityGroupTypeDef]) -> list[Json]:
    elbv2 = account.elbv2
    found = []
    groups = {group["TargetGroupArn"]: group for group in _target_groups(account)}
    for balancer in elbv2.describe_load_balancers()["LoadBalancers"]:
        arn = balancer["LoadBalancerArn"]
        attributes = elbv2.describe_load_balancer_attributes(LoadBalancerArn=arn)["Attributes"]
        listeners = {}
        for listener in elbv2.describe_listeners(LoadBalancerArn=arn)["Listeners"]:
            ends_tls = listener["Protocol"] == "TLS"
            transport = "TCP" if ends_tls else listener["Protocol"]
            (action,) = listener["DefaultActions"]
            listeners[f"{listener['Port']} {transport}"] = {
                "protocol": listener["Protocol"],
                "certificates": [each["CertificateArn"] for each in listener.get("Certificates", [])],
                # moto gives one to every listener; AWS only where TLS ends.
                "ssl_policy": listener.get("SslPolicy") if ends_tls else None,
                # To say "None" is to say nothing.
                "alpn_policy": [each for each in listener.get("AlpnPolicy", []) if each != "None"],
                "target_group": _target_group(account, groups[action["TargetGroupArn"]]),
            }
        found.append(
            {
                "type": balancer["Type"],
                "scheme": balancer.get("Scheme", "internet-facing"),
                "ip_address_type": balancer["IpAddressType"],
                "subnets": sorted(zone["SubnetId"] for zone in balancer["AvailabilityZones"]),
                "attributes": LEFT_OUT["elbv2 DescribeLoadBalancerAttributes"]
                | {each["Key"]: each["Value"] for each in attributes},
                "listeners": listeners,
                **_security(balancer.get("SecurityGroups", []), made),
                "tags": _tags(account, arn),
            }
        )
    return found


def _target_group(account: Account, group: TargetGroupTypeDef) -> Json:
    arn = group["TargetGroupArn"]
    attributes = account.elbv2.describe_target_group_attributes(TargetGroupArn=arn)["Attributes"]
    health = account.elbv2.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
    return {
        "protocol": group["Protocol"],
        "target_type": group["TargetType"],
        "ip_address_type": group["IpAddressType"],
        "health_check": {
            "protocol": group["HealthCheckProtocol"],
            "port": group["HealthCheckPort"],
            "path": group.get("HealthCheckPath"),
            "interval": group["HealthCheckIntervalSeconds"],
            "timeout": group["HealthCheckTimeoutSeconds"],
            "healthy_threshold": group["HealthyThresholdCount"],
            "unhealthy_threshold": group["UnhealthyThresholdCount"],
            "matcher": group.get("Matcher", {}).get("HttpCode"),
        },
        "attributes": LEFT_OUT["elbv2 DescribeTargetGroupAttributes"]
        | {each["Key"]: each["Value"] for each in attributes},
        "targets": sorted(f"{each['Target']['Id']} {each['Target']['Port']}" for each in health),
        "tags": _tags(account, arn),
    }


def _target_groups(account: Account) -> list[TargetGroupTypeDef]:
    return account.elbv2.describe_target_groups()["TargetGroups"]


def _served(account: Account) -> set[str]:
    """The target groups that a listener forwards to; moto tells it at the group for the first listener alone."""
    elbv2 = account.elbv2
    return {
        action["TargetGroupArn"]
        for balancer in elbv2.describe_load_balancers()["LoadBalancers"]
        for listener in elbv2.describe_listeners(LoadBalancerArn=balancer["LoadBalancerArn"])["Listeners"]
        for action in listener["DefaultActions"]
    }


def _tags(account: Account, arn: str) -> Json:
    (described,) = account.elbv2.describe_tags(ResourceArns=[arn])["TagDescriptions"]
    return {tag["Key"]: tag["Value"] for tag in described["Tags"]}


# ---------------------------------------------------------------------------------------------------------- classic


def _classic(account: Account, made: Mapping[str, SecurityGroupTypeDef]) -> list[Json]:
    elb = account.elb
    found = []
    for balancer in elb.describe_load_balancers()["LoadBalancerDescriptions"]:
        name = balancer["LoadBalancerName"]
        policies = {
            policy["PolicyName"]: {
                "type": policy["PolicyTypeName"],
                **{each["AttributeName"]: each["AttributeValue"] for each in policy["PolicyAttributeDescriptions"]},
            }
            for policy in elb.describe_load_balancer_policies(LoadBalancerName=name)["PolicyDescriptions"]
        }
        listeners = {}
        for described in balancer["ListenerDescriptions"]:
            listener = described["Listener"]
            listeners[str(listener["LoadBalancerPort"])] = {
                "protocol": listener["Protocol"].upper(),
                "instance_protocol": listener["InstanceProtocol"].upper(),
                "instance_port": listener["InstancePort"],
                "certificate": listener.get("SSLCertificateId"),
                "policies": [policies[each] for each in described["PolicyNames"]],
            }
        check = balancer.get("HealthCheck")
        found.append(
            {
                "type": "classic",
                "scheme": balancer["Scheme"],
                "subnets": sorted(balancer["Subnets"]),
                "attributes": _attributes_of_classic(account, name),
                "listeners": listeners,
                "backend_policies": {
                    str(each["InstancePort"]): [policies[policy] for policy in each["PolicyNames"]]
                    for each in balancer["BackendServerDescriptions"]
                    if each["PolicyNames"]
                },
                # moto gives none to one that was just made.
                "health_check": check
                and {
                    "target": check["Target"],
                    "interval": check["Interval"],
                    "timeout": check["Timeout"],
                    "healthy_threshold": check["HealthyThreshold"],
                    "unhealthy_threshold": check["UnhealthyThreshold"],
                },
                # moto counts one that is registered twice.
                "instances": sorted({each["InstanceId"] for each in balancer["Instances"]}),
                **_security(balancer["SecurityGroups"], made),
                "tags": {
                    tag["Key"]: tag["Value"]
                    for described_tags in elb.describe_tags(LoadBalancerNames=[name])["TagDescriptions"]
                    for tag in described_tags["Tags"]
                },
            }
        )
    return found


def _attributes_of_classic(account: Account, name: str) -> Json:
    found: Json = {**account.elb.describe_load_balancer_attributes(LoadBalancerName=name)["LoadBalancerAttributes"]}
    # One that nobody sets; moto tells it once more after each change.
    found.pop("AdditionalAttributes", None)
    if not found["ConnectionDraining"]["Enabled"]:
        # Says nothing then, and moto tells it only where attributes were ever changed.
        found["ConnectionDraining"].pop("Timeout", None)
    return found


# -------------------------------------------------------------------------------------------------- security groups


def _security(ids: list[str], made: Mapping[str, SecurityGroupTypeDef]) -> Json:
    """Who may reach the load balancer: groups that people made by their ids, and the rules of those made for it."""
    ours = [made[each_id] for each_id in ids if each_id in made]
    return {
        "security_groups": {
            "of_people": sorted(each_id for each_id in ids if each_id not in made),
            "made": len(ours),
            "clients": sorted({rule for group in ours for rule in _rules(group["IpPermissions"], {})}),
            "egress": sorted({rule for group in ours for rule in _rules(group["IpPermissionsEgress"], {})}),
            "tags": {tag["Key"]: tag["Value"] for group in ours for tag in group.get("Tags", [])},
        }
    }


def _groups(account: Account) -> list[SecurityGroupTypeDef]:
    return account.ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [account.vpc]}])["SecurityGroups"]


def _used(account: Account) -> set[str]:
    network = account.elbv2.describe_load_balancers()["LoadBalancers"]
    classic = account.elb.describe_load_balancers()["LoadBalancerDescriptions"]
    of_network = (each_id for balancer in network for each_id in balancer.get("SecurityGroups", []))
    return {*of_network, *(each_id for balancer in classic for each_id in balancer["SecurityGroups"])}


def _rules(permissions: list[IpPermissionOutputTypeDef], roles: Mapping[str, str]) -> list[str]:
    """Each rule in words: protocol, ports, from where."""
    rules = []
    for each in permissions:
        protocol = each["IpProtocol"]
        ports = f" {each['FromPort']}-{each['ToPort']}" if "FromPort" in each and protocol != "-1" else ""
        sources = [block["CidrIp"] for block in each.get("IpRanges", [])]
        sources += [block["CidrIpv6"] for block in each.get("Ipv6Ranges", [])]
        sources += [roles.get(pair["GroupId"], pair["GroupId"]) for pair in each.get("UserIdGroupPairs", [])]
        rules += [f"{'all' if protocol == '-1' else protocol}{ports} {source}" for source in sources]
    return sorted(rules)
