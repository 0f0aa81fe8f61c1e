"""A cluster: its network and the control plane that the cloud runs in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, cast

import pulumi

from . import clouds, inputs
from .arguments import checked
from .clouds.interface import ClusterParts, ClusterSettings, NetworkParts

TYPE = "cloudcontroller:index:Cluster"


class ClusterArgs(ClusterSettings):
    """Arguments of `Cluster`."""

    cloud: str
    """The cloud that it runs in; plain, because it decides which resources there are."""
    zones: Sequence[str]
    """The zones in which the network gets a subnet; plain, for the same reason."""


class ExistingClusterArgs(TypedDict):
    """What `Cluster.get` is told of a cluster that is there already."""

    cloud: str
    """The cloud that it runs in."""
    cluster_id: pulumi.Input[str]
    """Its id in the cloud, which tags carry."""
    network_id: pulumi.Input[str]
    """The id of its network."""
    pod_cidr: pulumi.Input[str]
    """The range of its pods."""
    kubeconfig: pulumi.Input[str]
    """A cluster admin's; kept secret."""


class Cluster(pulumi.ComponentResource):
    """A network with a subnet a zone and a control plane. Its name is the name of network and cluster in the cloud.

    Protect it with `opts`: children inherit `protect` and `retain_on_delete`. Beside the outputs it has `subnet_ids`
    (by zone), `join` (for its `NodePool`s), `ccm_role` and `doctor_role` (or None) and `ccm_environment` (all for its
    `CloudControllerManager`), `facts` (what the cloud config needs of it), and `control_plane`, the resource whose
    deletion takes the objects in the cluster with it (their `deleted_with`).

    `Cluster.get` reads one that is there already: no children, no subnets, and None for `control_plane`.
    """

    cluster_id: pulumi.Output[str]
    """The id that tags of machines and load balancers carry."""
    network_id: pulumi.Output[str]
    """The network's id, for controllers: unknown until everything that they look for in it exists."""
    pod_cidr: pulumi.Output[str]
    """The range of which every node gets a part for its pods."""
    kubeconfig: pulumi.Output[str]
    """A cluster admin's; secret, and unknown until the cluster exists."""

    @classmethod
    def get(cls, name: str, args: ExistingClusterArgs, opts: pulumi.ResourceOptions | None = None) -> Cluster:
        """A cluster that is there already, with the outputs of one that the program made; nothing in it is changed."""
        return cls(name, args, opts, _is_read=True)

    @inputs.naming_itself
    def __init__(
        self,
        name: str,
        args: ClusterArgs | ExistingClusterArgs,
        opts: pulumi.ResourceOptions | None = None,
        *,
        _is_read: bool = False,
    ) -> None:
        inputs.check_dns_label("name", name)
        if _is_read:
            network, cluster = self._read(name, checked(ExistingClusterArgs, cast("ExistingClusterArgs", args)), opts)
        else:
            network, cluster = self._make(name, checked(ClusterArgs, cast("ClusterArgs", args)), opts)
        self.cluster_id = cluster.id
        self.network_id = network.complete_id or network.id
        self.pod_cidr = network.pod_cidr
        self.kubeconfig = pulumi.Output.secret(cluster.kubeconfig)
        # Annotated here and not on the class, where the SDK would take it for the type of an output of that name.
        self.subnet_ids: dict[str, pulumi.Output[str]] = dict(network.subnet_ids)
        self.join: dict[str, pulumi.Input[str]] = dict(cluster.join)
        self.ccm_role: pulumi.Output[str] | None = cluster.ccm_role
        self.doctor_role: pulumi.Output[str] | None = cluster.doctor_role
        self.ccm_environment: dict[str, pulumi.Input[str]] = dict(cluster.ccm_environment)
        self.facts: dict[str, pulumi.Input[str]] = dict(cluster.facts)
        self.control_plane: pulumi.Resource | None = cluster.resource
        self.register_outputs(
            {
                "cluster_id": self.cluster_id,
                "network_id": self.network_id,
                "pod_cidr": self.pod_cidr,
                "kubeconfig": self.kubeconfig,
                "subnet_ids": self.subnet_ids,
            }
        )

    def _make(
        self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None
    ) -> tuple[NetworkParts, ClusterParts]:
        if not args["zones"]:
            raise inputs.WrongInput("zones", "empty; allowed: at least one zone of the cloud")
        cloud = clouds.descriptor(args["cloud"])
        if "settings" in args:
            args["settings"] = checked(cloud.cluster_args, args["settings"], "settings")
        adapter = cloud.adapter()
        super().__init__(TYPE, name, dict(args), opts)
        child = pulumi.ResourceOptions(parent=self)
        settings = args.get("settings", {})
        network = adapter.network(name, args["zones"], settings, child)
        return network, adapter.cluster(name, network, settings, child)

    def _read(
        self, name: str, args: ExistingClusterArgs, opts: pulumi.ResourceOptions | None
    ) -> tuple[NetworkParts, ClusterParts]:
        clouds.descriptor(args["cloud"])
        inputs.check_cidr("pod_cidr", args["pod_cidr"])
        super().__init__(TYPE, name, {key: value for key, value in args.items() if key != "kubeconfig"}, opts)
        known = pulumi.Output.from_input
        network = NetworkParts(known(args["network_id"]), known(args["pod_cidr"]), subnet_ids={})
        return network, ClusterParts(known(args["cluster_id"]), known(args["kubeconfig"]), resource=None)
