"""A control plane on machines of the cluster's own: the way to it, its keys, and the roles of its machines and nodes.

The machines are pools (`nodes`); here is what they share. They exchange secrets through encrypted SSM parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from ..common import certificates
from ..common.dependencies import with_what_it_needs
from ..common.kubeconfigs import as_base64
from ..interface import ClusterParts, NetworkParts
from . import audit, iam, security_groups
from .access import KUBECONFIG, parameter_name
from .settings import (
    DEFAULT_POD_CIDR,
    DEFAULT_SERVICE_CIDR,
    DEFAULT_VPC_CIDR,
    AwsClusterArgs,
    tags,
)

API_PORT = 6443


def make(name: str, network: NetworkParts, settings: AwsClusterArgs, opts: pulumi.ResourceOptions) -> ClusterParts:
    """What the machines of the control plane, the nodes and the program itself need to find each other."""
    pod_cidr = settings.get("pod_cidr", DEFAULT_POD_CIDR)
    sources = [settings.get("vpc_cidr", DEFAULT_VPC_CIDR), *settings.get("api_sources", ())]
    groups = security_groups.make(
        name,
        network.id,
        api_port=API_PORT,
        api_sources=sources,
        pod_cidr=pod_cidr,
        opts=opts,
        machines_reach=settings.get("control_plane_egress", ()),
    )
    balancer, target_group, listener = _way_in(name, network, groups.control_plane, opts)
    address = with_what_it_needs(balancer.dns_name, [listener])
    keys = certificates.make(name, opts)
    endpoint = pulumi.Output.concat("https://", address, f":{API_PORT}")
    kubeconfig = keys.kubeconfig(name, endpoint)
    parameters = _parameters(name, keys.authority_key, kubeconfig, opts)
    (plane_role, for_plane), (node_role, for_nodes) = _roles(name, settings, opts)
    node_profile = iam.instance_profile(f"{name}-nodes", node_role, opts)
    plane_profile = iam.instance_profile(f"{name}-control-plane", plane_role, opts)
    join: dict[str, pulumi.Input[str]] = {
        "control_plane": "ec2",
        "nodes": "asg",
        "region": balancer.arn.apply(lambda arn: arn.split(":")[3]),
        "kubernetes_version": settings["kubernetes_version"],
        "endpoint": address,
        "certificate_authority": keys.authority.apply(as_base64),
        "pod_cidr": pod_cidr,
        "service_cidr": settings.get("service_cidr", DEFAULT_SERVICE_CIDR),
        "node_security_group_id": groups.nodes,
        "control_plane_security_group_id": groups.control_plane,
        "target_group_arn": with_what_it_needs(target_group.arn, [listener]),
        "instance_profile_arn": with_what_it_needs(node_profile.arn, [*for_nodes, *parameters]),
        "control_plane_profile_arn": with_what_it_needs(plane_profile.arn, [*for_plane, *parameters]),
    }
    if "audit_days" in settings:
        audit.make(name, balancer.arn, settings["audit_days"], opts)
    # Unknown until the control plane exists, so that nothing looks for the cluster too early.
    cluster_id = balancer.id.apply(lambda _: name)
    return ClusterParts(cluster_id, pulumi.Output.secret(kubeconfig), balancer, join)


def _way_in(
    name: str, network: NetworkParts, group_id: pulumi.Output[str], opts: pulumi.ResourceOptions
) -> tuple[aws.lb.LoadBalancer, aws.lb.TargetGroup, aws.lb.Listener]:
    """An internal Network Load Balancer before the API servers."""
    full = f"{name}-api"
    balancer = aws.lb.LoadBalancer(
        full,
        internal=True,
        load_balancer_type="network",
        subnets=list(network.subnet_ids.values()),
        security_groups=[group_id],
        enable_cross_zone_load_balancing=True,
        tags=tags(full),
        opts=opts,
    )
    target_group = aws.lb.TargetGroup(
        full,
        port=API_PORT,
        protocol="TCP",
        vpc_id=network.id,
        # A machine that asks the API by this way may be sent to itself; with its own address that would break.
        preserve_client_ip="false",
        deregistration_delay=30,
        health_check={"protocol": "HTTPS", "path": "/readyz", "interval": 10, "timeout": 5, "healthy_threshold": 2},
        tags=tags(full),
        opts=opts,
    )
    listener = aws.lb.Listener(
        full,
        load_balancer_arn=balancer.arn,
        port=API_PORT,
        protocol="TCP",
        default_actions=[{"type": "forward", "target_group_arn": target_group.arn}],
        tags=tags(full),
        opts=opts,
    )
    return balancer, target_group, listener


def _parameters(
    name: str, authority_key: pulumi.Output[str], kubeconfig: pulumi.Output[str], opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """The parameters that machines read, and those that they write: the program sets only their first values."""
    read: dict[str, pulumi.Output[str]] = {
        "ca-key": pulumi.Output.secret(authority_key),
        KUBECONFIG: pulumi.Output.secret(kubeconfig),
    }
    written = {"state": "new", "certificate-key": "none", "join-token": "none"}
    found: list[pulumi.Resource] = [
        aws.ssm.Parameter(
            f"{name}-{key}",
            name=parameter_name(name, key),
            type="SecureString",
            value=secret,
            tags=tags(f"{name}-{key}"),
            opts=opts,
        )
        for key, secret in read.items()
    ]
    theirs = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(ignore_changes=["value"]))
    found += [
        aws.ssm.Parameter(
            f"{name}-{key}",
            name=parameter_name(name, key),
            type="String" if key == "state" else "SecureString",
            value=first,
            tags=tags(f"{name}-{key}"),
            opts=theirs,
        )
        for key, first in written.items()
    ]
    return found


def _roles(
    name: str, settings: AwsClusterArgs, opts: pulumi.ResourceOptions
) -> tuple[tuple[aws.iam.Role, list[pulumi.Resource]], tuple[aws.iam.Role, list[pulumi.Resource]]]:
    """The roles of control-plane machines and of nodes, with their policies. CCM and doctor take the former."""
    plane, for_plane = iam.role_of_service(f"{name}-control-plane", "ec2", iam.NODE, opts)
    nodes, for_nodes = iam.role_of_service(f"{name}-nodes", "ec2", iam.NODE, opts)
    doctor = settings.get("doctor", False)
    ccm = iam.ccm_policy(f"{name}-cloud-controller-manager", plane, settings, name, opts, doctor=doctor)
    joining = ["join-token"]
    secrets = [*joining, "certificate-key", "state"]
    of_plane = _may(f"{name}-control-plane-parameters", name, plane, [*secrets, "ca-key"], secrets, opts)
    of_nodes = _may(f"{name}-nodes-parameters", name, nodes, joining, (), opts)
    return (plane, [*for_plane, ccm, of_plane]), (nodes, [*for_nodes, of_nodes])


def _may(
    name: str,
    cluster: str,
    role: aws.iam.Role,
    read: Sequence[str],
    write: Sequence[str],
    opts: pulumi.ResourceOptions,
) -> pulumi.Resource:
    """Let the role read and write these of the cluster's parameters, which AWS's own key of the account encrypts."""

    def granted(action: str, keys: Sequence[str]) -> dict[str, object]:
        # By name and not by ARN, which a preview does not know: people and policies read there who may do what.
        named = [f"arn:*:ssm:*:*:parameter{parameter_name(cluster, key)}" for key in sorted(keys)]
        return {"Effect": "Allow", "Action": [action], "Resource": named}

    statements = [granted(f"ssm:{verb}Parameter", keys) for verb, keys in (("Get", read), ("Put", write)) if keys]
    return aws.iam.RolePolicy(name, role=role.name, policy=iam.document(statements), opts=opts)
