"""What the components need of a cloud: one small shape, and an adapter for each cloud that fills it.

An adapter makes resources of the cloud's own Pulumi package; the components put them together and never name a cloud.
Adding a cloud is a package here with a module `adapter` that has `ADAPTER`, and its line in `_ADAPTERS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict, cast

import pulumi

from cloud_controller import rbac
from cloud_controller.load_balancers.catalogue import Catalogue

from .. import inputs
from .aws.settings import AwsClusterArgs

if TYPE_CHECKING:
    from ..load_balancer_service import LoadBalancerServiceArgs
    from ..stack_config import StackConfig


@dataclass(frozen=True)
class NetworkParts:
    """A network: what clusters and machines need to know of it."""

    id: pulumi.Output[str]
    pod_cidr: pulumi.Output[str]
    subnet_ids: Mapping[str, pulumi.Output[str]]
    """The machines' subnets, by zone."""
    frontend_subnet_ids: Mapping[str, pulumi.Output[str]] = field(default_factory=dict)
    """Those beside them that the internet reaches, by zone, where the cloud tells the two apart."""
    complete_id: pulumi.Output[str] | None = None
    """The id, known once everything is there that controllers look for in the network; None: as soon as `id` is."""


@dataclass(frozen=True)
class ClusterParts:
    """A control plane. `resource` is what in-cluster objects vanish with."""

    id: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    resource: pulumi.Resource
    join: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """What the adapter's own `pool` needs to know of the cluster."""
    ccm_role: pulumi.Output[str] | None = None
    """The cloud's role that the CCM's ServiceAccount takes, where the cloud has such."""


@dataclass(frozen=True)
class MachineParts:
    """A machine: the name of its node, and what the node's `spec.providerID` will be."""

    name: pulumi.Output[str]
    provider_id: pulumi.Output[str]


@dataclass(frozen=True)
class PoolSpec:
    """What a node pool shall be."""

    cluster_name: str
    cluster_id: pulumi.Input[str]
    join: Mapping[str, pulumi.Input[str]]
    subnet_ids: Mapping[str, pulumi.Input[str]]
    """Of the pool's zones, and perhaps others."""
    count: int
    type: pulumi.Input[str]
    zones: Sequence[str]
    role: str
    ingress: bool
    """Whether load balancers send their traffic to these machines."""
    labels: Mapping[str, pulumi.Input[str]]


@dataclass(frozen=True)
class VendorManager:
    """The CCM of the cloud's own maker, where it is run instead of ours."""

    image: str
    arguments: Sequence[pulumi.Input[str]]
    """All but those of leader election and of where it listens."""
    rules: rbac.Rules


class ClusterSettings(TypedDict):
    """What of `ClusterArgs` depends on the cloud."""

    settings: NotRequired[AwsClusterArgs]
    """The cloud's own settings, where it has such."""


class ManagerSettings(TypedDict):
    """What of `CloudControllerManagerArgs` depends on the cloud."""

    image: NotRequired[pulumi.Input[str]]
    """The cloud's own image if not given."""
    role: NotRequired[pulumi.Input[str]]
    """The cloud's role that its ServiceAccount takes, where the cloud has such (AWS: the ARN of an IAM role)."""
    environment: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Further environment variables of its container; no secrets."""
    arguments: NotRequired[Sequence[str]]
    """Further flags of our daemon."""
    lease: NotRequired[str]
    """The Lease by which one of several of our daemons leads, where another CCM of the cluster holds the usual one."""
    vendor_version: NotRequired[str]
    """Run the CCM of the cloud's own maker, of this version, instead of ours."""


class CloudAdapter(Protocol):
    """One cloud's resources in the components' shape. Made resources get `opts` (parent and what is inherited)."""

    name: str
    image: str
    """The CCM's image for this cloud."""
    catalogue: Catalogue
    """The annotations of its load balancers."""
    load_balancer_args: type[Mapping[str, Any]]
    """The TypedDict of their typed settings."""

    def providers(self, config: StackConfig) -> list[pulumi.ProviderResource]:
        """The cloud's providers, where the stack's config says how they are configured; else the default ones."""
        ...

    def cluster_settings(self, config: StackConfig) -> ClusterSettings:
        """What `network` and `cluster` get as `settings`, by the stack's config."""
        ...

    def network(
        self, name: str, zones: Sequence[str], settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> NetworkParts:
        """A network with a subnet for machines in each zone."""
        ...

    def cluster(
        self, name: str, network: NetworkParts, settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> ClusterParts:
        """A control plane in the network, or what its machines (a pool of role `control-plane`) are reached by."""
        ...

    def pool(self, name: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> list[MachineParts] | None:
        """Machines that join the cluster; None where the cloud makes and names them itself (a scaling group)."""
        ...

    def manager_settings(self, config: StackConfig, role: pulumi.Output[str] | None) -> ManagerSettings:
        """The arguments of `CloudControllerManager` that depend on the cloud; `role`: the cluster's `ccm_role`."""
        ...

    def vendor_manager(
        self,
        version: str,
        controllers: Sequence[str],
        *,
        cluster_name: pulumi.Input[str],
        cluster_cidr: pulumi.Input[str],
        config_file: str,
    ) -> VendorManager:
        """The maker's own CCM. Raises WrongInput (`vendor_version`) where there is none, or none of this version."""
        ...

    def balanced(self, config: StackConfig, args: LoadBalancerServiceArgs) -> LoadBalancerServiceArgs:
        """The arguments of a demonstration's Service, with those that depend on the cloud."""
        ...

    def forwards(self, config: StackConfig) -> bool:
        """Whether what comes to its load balancers reaches pods: not so where the cloud is a mere simulator."""
        ...

    def cloud_config(
        self, config: StackConfig, cluster_id: pulumi.Input[str], network_id: pulumi.Input[str]
    ) -> pulumi.Output[str]:
        """The text of the CCM's cloud config, secret."""
        ...


_ADAPTERS = {"aws": ".aws.adapter", "mycloud": ".mycloud.adapter"}


def adapter(name: str) -> CloudAdapter:
    """The adapter of cloud `name`. Raises WrongInput (property `cloud`) for a cloud that has none."""
    if name not in _ADAPTERS:
        raise inputs.WrongInput("cloud", f"{name!r} has no components; allowed: {', '.join(sorted(_ADAPTERS))}")
    module: Any = import_module(_ADAPTERS[name], __package__)
    return cast("CloudAdapter", module.ADAPTER)
