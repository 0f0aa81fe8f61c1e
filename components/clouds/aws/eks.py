"""A control plane that AWS runs (EKS), and what its nodes and its CCM need to be let in."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from cloud_controller import manifests
from cloud_controller.clouds.aws.pod_identity import AUDIENCE

from ..common.dependencies import with_what_it_needs
from ..interface import ClusterParts, NetworkParts
from . import audit, iam, pod_network, security_groups, volumes
from .kubeconfigs import with_aws_cli
from .settings import (
    DEFAULT_SERVICE_CIDR,
    DEFAULT_VPC_CIDR,
    NETWORK_TAG,
    POD_CIDR_TAG,
    AwsClusterArgs,
    tags,
)

API_PORT = 443
LOGGED = ("api", "audit", "authenticator", "controllerManager", "scheduler")
"""The logs of the control plane that go to CloudWatch; EKS's own CCM writes to that of the controller manager."""


def make(name: str, network: NetworkParts, settings: AwsClusterArgs, opts: pulumi.ResourceOptions) -> ClusterParts:
    """The EKS cluster, the roles of its nodes, and that of the CCM's ServiceAccount."""
    pod_cidr = settings.get("pod_cidr")
    service_cidr = settings.get("service_cidr", DEFAULT_SERVICE_CIDR)
    groups = security_groups.make(name, network.id, api_port=API_PORT, api_sources=(), pod_cidr=pod_cidr, opts=opts)
    role, attached = iam.role_of_service(f"{name}-eks", "eks", iam.EKS_CONTROL_PLANE, opts)
    sources = list(settings.get("api_sources", ()))
    marks = {NETWORK_TAG: " ".join([settings.get("vpc_cidr", DEFAULT_VPC_CIDR), *sorted(network.subnet_ids)])}
    logs = _logs(name, settings["log_days"], opts) if "log_days" in settings else []
    cluster = aws.eks.Cluster(
        name,
        # Its name is the cluster's id, which tags carry.
        name=name,
        role_arn=role.arn,
        version=settings["kubernetes_version"],
        vpc_config={
            "subnet_ids": [*network.subnet_ids.values(), *network.frontend_subnet_ids.values()],
            "security_group_ids": [groups.control_plane],
            "endpoint_private_access": True,
            "endpoint_public_access": bool(sources),
            "public_access_cidrs": sources or None,
        },
        # Access entries decide who may join, not the ConfigMap aws-auth.
        access_config={"authentication_mode": "API", "bootstrap_cluster_creator_admin_permissions": True},
        kubernetes_network_config={"service_ipv4_cidr": service_cidr, "ip_family": "ipv4"},
        enabled_cluster_log_types=list(LOGGED),
        tags=tags(name, None, **marks, **({POD_CIDR_TAG: pod_cidr} if pod_cidr else {})),
        opts=pulumi.ResourceOptions.merge(
            opts,
            pulumi.ResourceOptions(
                # Without its policy EKS can't take down what it made in the VPC.
                depends_on=[*attached, *logs],
                hooks=pulumi.ResourceHookBinding(before_update=[_keep_network(name)]),
            ),
        ),
    )
    node_role, for_nodes = iam.role_of_service(f"{name}-nodes", "ec2", iam.EKS_NODE, opts)
    join: dict[str, pulumi.Input[str]] = {
        "control_plane": "eks",
        "nodes": settings["nodes"],
        "kubernetes_version": settings["kubernetes_version"],
        "endpoint": cluster.endpoint,
        "service_cidr": service_cidr,
        "certificate_authority": _authority(cluster),
        "node_security_group_id": groups.nodes,
        "node_role_arn": with_what_it_needs(node_role.arn, for_nodes),
    }
    if settings["nodes"] == "asg":
        # Managed node groups get theirs by AWS.
        entry = aws.eks.AccessEntry(
            f"{name}-nodes", cluster_name=cluster.name, principal_arn=node_role.arn, type="EC2_LINUX", opts=opts
        )
        # Without the entry nodes are lost, and the CCM with them: a destroy may take it only after the machines.
        after = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[entry]))
        profile = iam.instance_profile(f"{name}-nodes", node_role, after)
        join["instance_profile_arn"] = with_what_it_needs(profile.arn, for_nodes)
    issuer = aws.iam.OpenIdConnectProvider(
        name, url=cluster.identities.apply(_issuer), client_id_lists=[AUDIENCE], tags=tags(name), opts=opts
    )
    volumes.make(name, cluster, issuer, opts)
    if pod_cidr is None:
        pod_network.make(name, cluster, opts)
    if "audit_days" in settings:
        audit.make(name, cluster.arn, settings["audit_days"], opts)
    return ClusterParts(
        cluster.id,
        _kubeconfig(cluster),
        cluster,
        join,
        # AWS believes the tokens of their ServiceAccounts by the cluster's OIDC issuer.
        ccm_role=iam.role_of_account(name, issuer, manifests.NAME, settings, name, opts),
        doctor_role=iam.role_of_account(name, issuer, manifests.DOCTOR, settings, name, opts, reads=True)
        if settings.get("doctor")
        else None,
    )


def _logs(name: str, days: int, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """The log group that EKS writes to, where EKS itself would make one that keeps all for ever."""
    group = f"/aws/eks/{name}/cluster"
    return [aws.cloudwatch.LogGroup(name, name=group, retention_in_days=days, tags=tags(name), opts=opts)]


def _keep_network(name: str) -> pulumi.ResourceHook:
    """A hook that refuses another VPC and other zones before EKS does, in the midst of an update.

    EKS's user guide, "VPC and subnet requirements": other subnets are taken in place if they are in the same VPC, and
    at least one is in each of the zones with which the cluster was made, and none elsewhere.
    """

    def check(args: pulumi.ResourceHookArgs) -> None:
        before, after = (((of or {}).get("tags") or {}).get(NETWORK_TAG) for of in (args.old_inputs, args.new_inputs))
        if before is not None and before != after:
            raise ValueError(
                f"EKS cannot change the VPC or zones of a cluster: {name} has {before}, the program declares {after}; "
                f"keep {before} (a pool of count 0 keeps its zones), or make a new cluster with another name"
            )

    return pulumi.ResourceHook(f"network-of-{name}", check, pulumi.ResourceHookOptions(on_dry_run=True))


def _kubeconfig(cluster: aws.eks.Cluster) -> pulumi.Output[str]:
    facts = pulumi.Output.all(cluster.id, cluster.arn, cluster.endpoint, _authority(cluster))
    return facts.apply(
        lambda values: with_aws_cli(
            cluster=values[0],
            region=values[1].split(":")[3],
            endpoint=values[2],
            certificate_authority=values[3],
        )
    )


def _authority(cluster: aws.eks.Cluster) -> pulumi.Output[str]:
    """As base64 of PEM. Taken out here: `Output.all` makes plain dicts of outputs' own types."""
    return cluster.certificate_authority.apply(lambda authority: authority.data or "")


def _issuer(identities: Sequence[aws.eks.outputs.ClusterIdentity]) -> str:
    for oidc in identities[0].oidcs or ():
        if oidc.issuer:
            return oidc.issuer
    raise pulumi.RunError("the EKS cluster has no OIDC issuer")
