"""What the components need of a cloud: one small shape, and an adapter for each cloud that fills it.

An adapter makes resources of the cloud's own Pulumi package; the components put them together and never name a cloud.
Adding a cloud is a package here with a module `adapter` that has `ADAPTER`, and its line in `_ADAPTERS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import pulumi

from cloud_controller.catalogue import Catalogue

from .. import inputs

if TYPE_CHECKING:
    from ..stack_config import StackConfig


@dataclass(frozen=True)
class NetworkParts:
    """A network: what clusters and machines need to know of it."""

    id: pulumi.Output[str]
    pod_cidr: pulumi.Output[str]
    subnet_ids: Mapping[str, pulumi.Output[str]]
    """By zone."""


@dataclass(frozen=True)
class ClusterParts:
    """A control plane. `resource` is what in-cluster objects vanish with."""

    id: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    resource: pulumi.Resource


@dataclass(frozen=True)
class MachineParts:
    """A machine: the name of its node, and what the node's `spec.providerID` will be."""

    name: pulumi.Output[str]
    provider_id: pulumi.Output[str]


class CloudAdapter(Protocol):
    """One cloud's resources in the components' shape. Made resources get `opts` (parent and what is inherited)."""

    name: str
    image: str
    """The CCM's image for this cloud."""
    catalogue: Catalogue
    """The annotations of its load balancers."""

    def network(self, name: str, zones: Sequence[str], opts: pulumi.ResourceOptions) -> NetworkParts:
        """A network with a subnet in each zone."""
        ...

    def cluster(self, name: str, network_id: pulumi.Input[str], opts: pulumi.ResourceOptions) -> ClusterParts:
        """A control plane in the network."""
        ...

    def machine(
        self,
        name: str,
        *,
        cluster_id: pulumi.Input[str],
        zone: str,
        subnet_id: pulumi.Input[str],
        type: pulumi.Input[str],
        role: str,
        ingress: bool,
        labels: Mapping[str, pulumi.Input[str]],
        opts: pulumi.ResourceOptions,
    ) -> MachineParts:
        """A machine that joins the cluster; the subnet is the zone's; ingress machines get load balancers' traffic."""
        ...

    def storage(self, opts: pulumi.ResourceOptions) -> None:
        """What claims in the cluster refer to, where controller `volume` is run: the default class, the driver."""
        ...

    def cloud_config(
        self, config: StackConfig, cluster_id: pulumi.Input[str], network_id: pulumi.Input[str]
    ) -> pulumi.Output[str]:
        """The text of the CCM's cloud config, secret."""
        ...


_ADAPTERS = {"mycloud": ".mycloud.adapter"}


def adapter(name: str) -> CloudAdapter:
    """The adapter of cloud `name`. Raises WrongInput (property `cloud`) for a cloud that has none."""
    if name not in _ADAPTERS:
        raise inputs.WrongInput("cloud", f"{name!r} has no components; allowed: {', '.join(sorted(_ADAPTERS))}")
    module: Any = import_module(_ADAPTERS[name], __package__)
    return cast("CloudAdapter", module.ADAPTER)
