"""A control plane on ECS instances of the cluster's own: the way to it, its keys, and the roles of its machines.

The machines are a pool (`nodes`); here is what they share. They exchange secrets through KMS.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pulumi
import pulumi_alicloud as alicloud

from cloud_controller.clouds.alicloud.permissions import statements

from ..common import certificates
from ..common.dependencies import with_what_it_needs
from ..common.kubeconfigs import as_base64
from ..interface import ClusterParts, NetworkParts
from . import audit, ram
from .access import KUBECONFIG, secret_name
from .network import machine_ranges
from .security_groups import EVERYTHING, SecurityGroup, of_nodes
from .settings import DEFAULT_POD_CIDR, DEFAULT_SERVICE_CIDR, DEFAULT_VPC_CIDR, AlicloudClusterArgs, tags

API_PORT = 6443
_PORTS = f"{API_PORT}/{API_PORT}"


def make(name: str, network: NetworkParts, settings: AlicloudClusterArgs, opts: pulumi.ResourceOptions) -> ClusterParts:
    """What the machines of the control plane, the nodes and the program itself need to find each other."""
    pod_cidr = settings.get("pod_cidr", DEFAULT_POD_CIDR)
    groups = _groups(name, network, settings, pod_cidr, opts)
    balancer, server_group, listener = _way_in(name, network, groups["api"], opts)
    address = with_what_it_needs(balancer.dns_name, [listener])
    keys = certificates.make(name, opts)
    kubeconfig = keys.kubeconfig(name, pulumi.Output.concat("https://", address, f":{API_PORT}"))
    secrets = _secrets(name, settings, keys.authority_key, kubeconfig, opts)
    called = statements(settings["region"], settings.get("controllers", ()), doctor=settings.get("doctor", False))
    plane = [*called, *_may(settings, name, (*_EXCHANGED, "ca-key"), _EXCHANGED)]
    join: dict[str, pulumi.Input[str]] = {
        "control_plane": "ecs",
        "region": settings["region"],
        "image": settings["image"],
        "kubernetes_version": settings["kubernetes_version"],
        "endpoint": address,
        "certificate_authority": keys.authority.apply(as_base64),
        "pod_cidr": pod_cidr,
        "service_cidr": settings.get("service_cidr", DEFAULT_SERVICE_CIDR),
        "node_security_group_id": groups["nodes"],
        "control_plane_security_group_id": groups["plane"],
        "server_group_id": with_what_it_needs(server_group.id, [listener]),
        "node_role": with_what_it_needs(
            ram.role_of_machines(f"{name}-nodes", _may(settings, name, ("join-token",), ()), opts), secrets
        ),
        "control_plane_role": with_what_it_needs(ram.role_of_machines(f"{name}-control-plane", plane, opts), secrets),
    }
    if "audit_days" in settings:
        audit.make(name, settings["audit_days"], opts)
    # Unknown until the way to the control plane exists, so that nothing looks for the cluster too early.
    cluster_id = balancer.id.apply(lambda _: name)
    return ClusterParts(cluster_id, pulumi.Output.secret(kubeconfig), balancer, join)


def _groups(
    name: str, network: NetworkParts, settings: AlicloudClusterArgs, pod_cidr: str, opts: pulumi.ResourceOptions
) -> dict[str, pulumi.Output[str]]:
    """Nodes and control plane reach each other's kubelets and API; the API's NLB lets in the VPC and `api_sources`."""
    vpc_cidr = settings.get("vpc_cidr", DEFAULT_VPC_CIDR)
    ranges = machine_ranges(network, settings)
    nodes = of_nodes(name, network.id, ranges, pod_cidr, opts)
    plane = SecurityGroup(f"{name}-control-plane", network.id, f"Control plane of {name}", opts)
    api = SecurityGroup(f"{name}-api", network.id, f"The way to the API servers of {name}", opts)
    nodes.allow("control-plane", EVERYTHING, "all", group=plane)
    plane.allow("nodes", _PORTS, group=nodes)
    plane.allow("pods", _PORTS, cidr=pod_cidr)
    plane.let_out([vpc_cidr, pod_cidr, *settings.get("control_plane_egress", ())])
    for zone, cidr in ranges.items():
        # The NLB's addresses.
        plane.allow(f"nlb-{zone}", _PORTS, cidr=cidr)
    for cidr in (vpc_cidr, *settings.get("api_sources", ())):
        api.allow(cidr, _PORTS, cidr=cidr)
    return {"nodes": nodes.id, "plane": plane.id, "api": api.id}


def _way_in(
    name: str, network: NetworkParts, group_id: pulumi.Output[str], opts: pulumi.ResourceOptions
) -> tuple[alicloud.nlb.LoadBalancer, alicloud.nlb.ServerGroup, alicloud.nlb.Listener]:
    """An internal Network Load Balancer before the API servers."""
    full = f"{name}-api"
    balancer = alicloud.nlb.LoadBalancer(
        full,
        load_balancer_name=full,
        address_type="Intranet",
        address_ip_version="Ipv4",
        vpc_id=network.id,
        zone_mappings=[{"zone_id": zone, "vswitch_id": id_} for zone, id_ in sorted(network.subnet_ids.items())],
        cross_zone_enabled=True,
        security_group_ids=[group_id],
        tags=tags(full),
        opts=opts,
    )
    server_group = alicloud.nlb.ServerGroup(
        full,
        server_group_name=full,
        server_group_type="Instance",
        vpc_id=network.id,
        protocol="TCP",
        scheduler="Wrr",
        # A machine that asks the API by this way may be sent to itself; with its own address that would break.
        preserve_client_ip_enabled=False,
        connection_drain_enabled=True,
        connection_drain_timeout=30,
        health_check={
            "health_check_enabled": True,
            "health_check_type": "TCP",
            "health_check_connect_port": API_PORT,
            "health_check_interval": 10,
            "health_check_connect_timeout": 5,
            "healthy_threshold": 2,
            "unhealthy_threshold": 2,
        },
        tags=tags(full),
        opts=opts,
    )
    listener = alicloud.nlb.Listener(
        full,
        load_balancer_id=balancer.id,
        listener_port=API_PORT,
        listener_protocol="TCP",
        server_group_id=server_group.id,
        listener_description=full,
        # A watch may be silent for long.
        idle_timeout=900,
        tags=tags(full),
        opts=opts,
    )
    return balancer, server_group, listener


_EXCHANGED = ("certificate-key", "join-token", "state")
"""What machines write and read; the program sets only the first values."""


def _secrets(
    name: str,
    settings: AlicloudClusterArgs,
    authority_key: pulumi.Output[str],
    kubeconfig: pulumi.Output[str],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    read: dict[str, pulumi.Output[str]] = {
        "ca-key": pulumi.Output.secret(authority_key),
        KUBECONFIG: pulumi.Output.secret(kubeconfig),
    }
    written: dict[str, pulumi.Output[str]] = {
        key: pulumi.Output.secret("new" if key == "state" else "none") for key in _EXCHANGED
    }
    theirs = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(ignore_changes=["secretData", "versionId"]))
    return [
        alicloud.kms.Secret(
            f"{name}-{key}",
            secret_name=secret_name(name, key),
            secret_data=value,
            # KMS keeps a version for ever: another value needs another name.
            version_id=value.apply(lambda text: hashlib.sha256(text.encode()).hexdigest()[:16]),
            dkms_instance_id=settings["kms_instance"],
            encryption_key_id=settings["kms_key"],
            # Else a new cluster could not use the name for 30 days.
            force_delete_without_recovery=True,
            tags=tags(f"{name}-{key}"),
            opts=of_whom,
        )
        for values, of_whom in ((read, opts), (written, theirs))
        for key, value in values.items()
    ]


def _may(settings: AlicloudClusterArgs, cluster: str, read: Sequence[str], write: Sequence[str]) -> list[ram.Statement]:
    """Statements that let a role read and write these of the cluster's secrets."""

    def named(keys: Sequence[str]) -> list[str]:
        return [f"acs:kms:{settings['region']}:*:secret/{secret_name(cluster, key)}" for key in sorted(keys)]

    found = [ram.allow(["kms:GetSecretValue"], named(read))]
    if write:
        found.append(ram.allow(["kms:PutSecretValue"], named(write)))
    uses = ["kms:Decrypt", *(["kms:GenerateDataKey"] if write else [])]
    return [*found, ram.allow(uses, [f"acs:kms:{settings['region']}:*:key/{settings['kms_key']}"])]
