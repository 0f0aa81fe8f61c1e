"""What upstream's controller left in an account for a Service, made again from what was recorded of it.

The recording (`tests/compatibility/aws_peer.json`) nests the parts and leaves names out; here each part gets the name
that upstream gives it, so that a controller which comes after it finds what it would find.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from cloud_controller.clouds.aws.ip_permissions import ip_permissions
from cloud_controller.kube import Object
from tests.cloud_controller.clouds.aws.conftest import CLUSTER, CLUSTER_TAG, AwsAccount, tag_list
from tests.compatibility import aws_recorded
from tests.compatibility.aws_services import CASES, manifest

_CASES = {case.name: case for case in CASES}
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
NLB_RULE = "kubernetes.io/rule/nlb/"

Json = dict[str, Any]


def uid_of(name: str) -> str:
    """A UID as the API server makes them, the same one for the same Service."""
    digits = name.encode().hex().ljust(32, "0")[-32:]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def upstream_name(uid: str) -> str:
    return f"a{uid.replace('-', '')}"[:32]


def recorded_services() -> list[str]:
    """Those that upstream's controller served."""
    return [name for name, result in _results().items() if result.get("load_balancers")]


class Upstream:
    """The account as upstream's controller left it; `machines` are the nodes of the recording."""

    def __init__(self, account: AwsAccount, machines: list[Any]) -> None:
        self.account = account
        self._words = _words(account, machines)

    def serve(self, name: str) -> Object:
        """Make what it made for the Service of this name; the Service as it is then."""
        service = self.service(name)
        metadata = service["metadata"]
        result = self._with_ids(_results()[name])
        (balancer,) = result["load_balancers"]
        lb_name = upstream_name(metadata["uid"])
        balancer["tags"] = _tags(balancer["tags"])
        make = self._classic if balancer["type"] == "classic" else self._network
        host = make(lb_name, balancer, result["opened"])
        service["status"] = {"loadBalancer": {"ingress": [{"hostname": host}]}}
        return service

    def service(self, name: str) -> Object:
        """The Service as the API server has it while upstream's controller serves it."""
        service: Object = self._with_ids(manifest(_CASES[name]))
        service["metadata"] |= {"uid": uid_of(name), "finalizers": [FINALIZER]}
        service["status"] = {}
        return service

    def open_nodes(self, rules: Mapping[str, str]) -> None:
        """Rules of the nodes' group, with their descriptions."""
        permissions: Any = ip_permissions(rules, {rule: what for rule, what in rules.items() if what})
        self.account.ec2.authorize_security_group_ingress(GroupId=self.account.node_group_id, IpPermissions=permissions)

    def group(self, name: str, rules: list[str]) -> str:
        """A security group that it made."""
        ec2 = self.account.ec2
        group = ec2.create_security_group(GroupName=name, Description=name, VpcId=self.account.vpc_id)["GroupId"]
        ec2.create_tags(Resources=[group], Tags=tag_list({CLUSTER_TAG: "owned"}))
        permissions: Any = ip_permissions(rules)
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=permissions)
        return group

    def _network(self, lb_name: str, balancer: Json, opened: Json) -> str:
        elbv2: Any = self.account.elbv2
        made = elbv2.create_load_balancer(
            Name=lb_name,
            Type="network",
            Scheme=balancer["scheme"],
            Subnets=balancer["subnets"],
            Tags=tag_list(balancer["tags"]),
        )["LoadBalancers"][0]
        attributes = [
            {"Key": key, "Value": value}
            for key, value in balancer["attributes"].items()
            if value and key != "deletion_protection.enabled"
        ]
        elbv2.modify_load_balancer_attributes(LoadBalancerArn=made["LoadBalancerArn"], Attributes=attributes)
        clients = set()
        for number, (where, listener) in enumerate(balancer["listeners"].items()):
            group = listener["target_group"]
            arn = self._target_group(f"k8s-default-{number}-{lb_name[1:11]}", group)
            certificates = {"Certificates": [{"CertificateArn": each} for each in listener["certificates"]]}
            policy = {"SslPolicy": listener["ssl_policy"]} if listener["ssl_policy"] else {}
            elbv2.create_listener(
                LoadBalancerArn=made["LoadBalancerArn"],
                Protocol=listener["protocol"],
                Port=int(where.split()[0]),
                DefaultActions=[{"Type": "forward", "TargetGroupArn": arn}],
                **(certificates if listener["certificates"] else {}),
                **policy,
            )
            clients |= {target.split()[1] for target in group["targets"]}
        rules = {rule: self._description(lb_name, rule, clients) for rule in opened.get("nodes", [])}
        if rules:
            present = self.account.ec2.describe_security_groups(GroupIds=[self.account.node_group_id])
            permissions: Any = present["SecurityGroups"][0]["IpPermissions"]
            mtu = any(each.get("FromPort") == 3 for each in permissions)
            self.open_nodes({rule: what for rule, what in rules.items() if not (mtu and rule.startswith("icmp"))})
        return str(made["DNSName"])

    def _description(self, lb_name: str, rule: str, ports: set[str]) -> str:
        protocol, port, source = rule.split()
        if protocol == "icmp":
            return f"{NLB_RULE}mtu"
        checked = protocol == "tcp" and source.startswith("10.0.")
        client = port.split("-")[0] in ports and not checked
        return f"{NLB_RULE}{'client' if client else 'health'}={lb_name}"

    def _target_group(self, name: str, group: Json) -> str:
        elbv2: Any = self.account.elbv2
        check = group["health_check"]
        arn = elbv2.create_target_group(
            Name=name,
            VpcId=self.account.vpc_id,
            Protocol=group["protocol"],
            Port=int(group["targets"][0].split()[1]),
            TargetType=group["target_type"],
            HealthCheckProtocol=check["protocol"],
            HealthCheckPort=check["port"],
            HealthCheckIntervalSeconds=check["interval"],
            HealthCheckTimeoutSeconds=check["timeout"],
            HealthyThresholdCount=check["healthy_threshold"],
            UnhealthyThresholdCount=check["unhealthy_threshold"],
            **({"HealthCheckPath": check["path"]} if check["path"] else {}),
            Tags=tag_list(_tags(group["tags"])),
        )["TargetGroups"][0]["TargetGroupArn"]
        attributes = [{"Key": key, "Value": value} for key, value in group["attributes"].items()]
        elbv2.modify_target_group_attributes(TargetGroupArn=arn, Attributes=attributes)
        pairs = (target.split() for target in group["targets"])
        elbv2.register_targets(TargetGroupArn=arn, Targets=[{"Id": one, "Port": int(port)} for one, port in pairs])
        return str(arn)

    def _classic(self, lb_name: str, balancer: Json, opened: Json) -> str:
        elb: Any = self.account.elb
        security = balancer["security_groups"]
        groups = [*security["of_people"]]
        if security["made"]:
            groups.insert(0, self.group(f"k8s-elb-{lb_name}", security["clients"]))
        listeners = [
            {
                "Protocol": each["protocol"],
                "LoadBalancerPort": int(port),
                "InstanceProtocol": each["instance_protocol"],
                "InstancePort": each["instance_port"],
                **({"SSLCertificateId": each["certificate"]} if each["certificate"] else {}),
            }
            for port, each in balancer["listeners"].items()
        ]
        host = elb.create_load_balancer(
            LoadBalancerName=lb_name,
            Listeners=listeners,
            Subnets=balancer["subnets"],
            SecurityGroups=groups,
            Tags=tag_list(balancer["tags"]),
            **({"Scheme": "internal"} if balancer["scheme"] == "internal" else {}),
        )["DNSName"]
        check = balancer["health_check"]
        elb.configure_health_check(
            LoadBalancerName=lb_name,
            HealthCheck={
                "Target": check["target"],
                "Interval": check["interval"],
                "Timeout": check["timeout"],
                "HealthyThreshold": check["healthy_threshold"],
                "UnhealthyThreshold": check["unhealthy_threshold"],
            },
        )
        elb.modify_load_balancer_attributes(LoadBalancerName=lb_name, LoadBalancerAttributes=balancer["attributes"])
        instances = [{"InstanceId": each} for each in balancer["instances"]]
        elb.register_instances_with_load_balancer(LoadBalancerName=lb_name, Instances=instances)
        if opened:
            self.open_nodes({f"all {groups[0]}": ""})
        return str(host)

    def _with_ids(self, value: Any) -> Any:
        match value:
            case str():
                for word in sorted(self._words, key=len, reverse=True):
                    if word in value:
                        # An id may hold what is another word.
                        return "".join(
                            self._words[word] if part == word else self._with_ids(part)
                            for part in re.split(rf"(?:\$\{{)?({re.escape(word)})\}}?", value)
                        )
                return value
            case dict():
                return {
                    key: self._with_ids(part) if key not in ("name", "tags") else part for key, part in value.items()
                }
            case list():
                return [self._with_ids(part) for part in value]
            case _:
                return value


@cache
def _results() -> dict[str, Json]:
    return dict(aws_recorded.read()["results"])


def _tags(recorded: Mapping[str, str]) -> dict[str, str]:
    return {key.replace("/benchmark", f"/{CLUSTER}"): value for key, value in recorded.items()}


def _words(account: AwsAccount, machines: list[Any]) -> dict[str, str]:
    words = {"elb-us-east-1a": "elb-a", "elb-us-east-1c": "elb-c"}
    for zone, subnet in zip("abc", account.public_subnets, strict=True):
        account.ec2.create_tags(Resources=[subnet], Tags=tag_list({"Name": f"elb-{zone}"}))
    words["certificate"] = account.certificate("shop.example.com")
    for number, machine in enumerate(machines):
        words[f"node-{number}"] = machine["InstanceId"]
    for zone, public, private in zip("abc", account.public_subnets, account.private_subnets, strict=True):
        words |= {f"public-{zone}": public, f"private-{zone}": private}
    for number in (1, 2):
        name = f"group-{number}"
        group = account.ec2.create_security_group(GroupName=name, Description=name, VpcId=account.vpc_id)
        words[name] = group["GroupId"]
    # The recording's subnets have other ranges: those from which health checks come.
    for number in range(3):
        words[f"10.0.{number * 32}.0/19"] = f"10.0.{number}.0/24"
    return words
