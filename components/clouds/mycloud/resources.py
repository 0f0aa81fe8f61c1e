"""mycloud's Pulumi resources: Network, Subnet, Cluster and Machine, each with a type token of its own.

Type tokens: `pulumi-python:dynamic/mycloud:Network` and so on. Properties carry the words of mycloud's API.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi.dynamic import Resource

from .providers import ClusterProvider, MachineProvider, NetworkProvider, SubnetProvider

Tags = Mapping[str, pulumi.Input[str]]


class Network(Resource, module="mycloud", name="Network"):
    """A network; mycloud gives it its ranges."""

    cidr: pulumi.Output[str]
    pod_cidr: pulumi.Output[str]
    service_cidr: pulumi.Output[str]
    load_balancer_cidr: pulumi.Output[str]
    route_table_id: pulumi.Output[str]
    state: pulumi.Output[str]

    def __init__(
        self, resource_name: str, *, name: pulumi.Input[str], tags: Tags, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        props = {"name": name, "tags": tags, **dict.fromkeys(NetworkProvider.outputs)}
        super().__init__(NetworkProvider(), resource_name, props, opts)


class Subnet(Resource, module="mycloud", name="Subnet"):
    """A network's part of one zone."""

    zone: pulumi.Output[str]
    cidr: pulumi.Output[str]
    state: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        network_id: pulumi.Input[str],
        zone: pulumi.Input[str],
        tags: Tags,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {"name": name, "network_id": network_id, "zone": zone, "tags": tags}
        super().__init__(SubnetProvider(), resource_name, {**props, **dict.fromkeys(SubnetProvider.outputs)}, opts)


class Cluster(Resource, module="mycloud", name="Cluster"):
    """A Kubernetes control plane; `kubeconfig` (a cluster admin's) is secret."""

    version: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    certificate_authority: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    state: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        network_id: pulumi.Input[str],
        tags: Tags,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {"name": name, "network_id": network_id, "tags": tags, "kubeconfig": None}
        secret = pulumi.ResourceOptions(additional_secret_outputs=["kubeconfig"])
        super().__init__(
            ClusterProvider(),
            resource_name,
            {**props, **dict.fromkeys(ClusterProvider.outputs)},
            pulumi.ResourceOptions.merge(opts, secret),
        )


class Machine(Resource, module="mycloud", name="Machine"):
    """A machine that boots into a cluster as the node of its name."""

    name: pulumi.Output[str]
    zone: pulumi.Output[str]
    region: pulumi.Output[str]
    private_ips: pulumi.Output[list[str]]
    state: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        subnet_id: pulumi.Input[str],
        cluster_id: pulumi.Input[str],
        type: pulumi.Input[str],
        role: pulumi.Input[str],
        node_labels: Tags,
        tags: Tags,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "name": name,
            "subnet_id": subnet_id,
            "cluster_id": cluster_id,
            "type": type,
            "role": role,
            "node_labels": node_labels,
            "tags": tags,
        }
        super().__init__(MachineProvider(), resource_name, {**props, **dict.fromkeys(MachineProvider.outputs)}, opts)
