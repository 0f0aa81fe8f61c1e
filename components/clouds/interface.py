"""What a cloud offers to the components: its descriptor, and the shape of its resources.

An adapter makes resources of the cloud's own Pulumi package; the components put them together and never name a cloud.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import pulumi

from .. import inputs

if TYPE_CHECKING:
    # Heavy, and not needed by the dynamic providers, which come by here.
    from pulumi.dynamic.config import Config

    from cloud_controller.rbac import Rules

    from ..load_balancer_service_args import LoadBalancerServiceArgs
    from ..stack_model import CloudSection, StackConfig


@dataclass(frozen=True)
class NetworkParts:
    """A network, as far as clusters and machines need it."""

    id: pulumi.Output[str]
    pod_cidr: pulumi.Output[str]
    subnet_ids: Mapping[str, pulumi.Output[str]]
    """The machines' subnets, by zone."""
    frontend_subnet_ids: Mapping[str, pulumi.Output[str]] = field(default_factory=dict)
    """Further subnets that the internet reaches, by zone, where the cloud distinguishes the two."""
    complete_id: pulumi.Output[str] | None = None
    """The id, known once everything exists that controllers look for in the network; None: as soon as `id` is."""
    facts: Mapping[str, pulumi.Output[str]] = field(default_factory=dict)
    """Further values for the adapter's `cluster`."""


@dataclass(frozen=True)
class ClusterParts:
    """A control plane. The deletion of `resource` takes the objects in the cluster with it; None: the cluster stays."""

    id: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    resource: pulumi.Resource | None
    join: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """What the adapter's `pool` needs to join machines to the cluster."""
    ccm_role: pulumi.Output[str] | None = None
    """The cloud's role that the CCM's ServiceAccount takes, where the cloud has such."""
    ccm_environment: Mapping[str, pulumi.Output[str]] = field(default_factory=dict)
    """Environment variables that the CCM's container needs to take that role, beside those that follow from it."""
    doctor_role: pulumi.Output[str] | None = None
    """The role that the ServiceAccount of `cloud-controller doctor` takes, if the CCM's has one too."""
    facts: Mapping[str, pulumi.Output[str]] = field(default_factory=dict)
    """Further values for the adapter's `cloud_config`; secret where they are."""


@dataclass(frozen=True)
class MachineParts:
    """A machine: the name of its node, and what the node's `spec.providerID` will be."""

    name: pulumi.Output[str]
    provider_id: pulumi.Output[str]


@dataclass(frozen=True)
class PoolSpec:
    """The declared state of a node pool."""

    cluster_name: str
    cluster_id: pulumi.Input[str]
    join: Mapping[str, pulumi.Input[str]]
    subnet_ids: Mapping[str, pulumi.Input[str]]
    """By zone: those of the pool's zones, and perhaps more."""
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
    """All but those for leader election and the listening address."""
    rules: Rules


class ClusterSettings(TypedDict):
    """The part of `ClusterArgs` that depends on the cloud."""

    settings: NotRequired[Mapping[str, Any]]
    """The cloud's own settings: its `cluster_args`."""


class ManagerSettings(TypedDict):
    """The part of `CloudControllerManagerArgs` that depends on the cloud."""

    image: NotRequired[pulumi.Input[str]]
    """The project's own image if not given."""
    role: NotRequired[pulumi.Input[str]]
    """The cloud's role that its ServiceAccount takes, on clouds whose pods take roles."""
    identity: NotRequired[Mapping[str, Any]]
    """Instead of `role`: what the manager makes such a role of (the cloud's `identity_args`), in a cluster whose
    program did not make one."""
    environment: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Further environment variables of its container; no secrets."""
    arguments: NotRequired[Sequence[str]]
    """Further flags of our daemon."""
    readiness_gates: NotRequired[str]
    """How it serves readiness gates of pods: `off`, `by-hand` or `inject`; the cloud's default if not given."""
    service_admission: NotRequired[str]
    """What the API server does with Services whose annotations it would reject: `deny`, `warn` or `off` (default)."""
    name: NotRequired[str]
    """The name of its objects in the cluster, where another CCM's have the usual one."""
    lease: NotRequired[str]
    """The Lease by which one of several of our daemons leads, where another CCM of the cluster holds the usual one."""
    credential_expires: NotRequired[str]
    """The last day of a credential in the cloud config that somebody has to replace, as YYYY-MM-DD."""
    doctor_schedule: NotRequired[str]
    """Run `cloud-controller doctor` in the cluster on this schedule (of a CronJob, UTC); not at all if not given."""
    doctor_push_gateway: NotRequired[str]
    """URL of the Prometheus Pushgateway that gets its findings as metrics."""
    doctor_role: NotRequired[pulumi.Input[str]]
    """The cloud's role that doctor's ServiceAccount takes, required with `role`; `identity` makes it as well."""
    scrape_annotations: NotRequired[bool]
    """Whether its pods have Prometheus' annotations (default: true); false beside `Monitoring` of mode `operator`."""
    vendor_version: NotRequired[str]
    """Run the CCM of the cloud's own maker, of this version, instead of ours."""


class CloudAdapter(ABC):
    """One cloud's resources in the components' shape. Made resources get `opts` (parent and what is inherited).

    Methods with a `config` belong to the program of a stack: `config.section(KIND)` is the cloud's own part of it.
    """

    @abstractmethod
    def network(
        self, name: str, zones: Sequence[str], settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> NetworkParts:
        """A network with a subnet for machines in each zone."""

    @abstractmethod
    def cluster(
        self, name: str, network: NetworkParts, settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> ClusterParts:
        """A control plane in the network, or what its machines (a pool of role `control-plane`) are reached by."""

    @abstractmethod
    def pool(self, name: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> list[MachineParts] | None:
        """Machines that join the cluster; None where the cloud makes and names them itself (a scaling group)."""

    @abstractmethod
    def cloud_config(
        self,
        config: StackConfig,
        cluster_id: pulumi.Input[str],
        network_id: pulumi.Input[str],
        facts: Mapping[str, pulumi.Input[str]],
    ) -> pulumi.Output[str]:
        """The text of the CCM's cloud config, secret; `facts`: the cluster's, none of one that is there already."""

    def providers(self, config: StackConfig) -> list[pulumi.ProviderResource]:
        """The cloud's providers, where the stack's config configures them; by default none."""
        return []

    def cluster_settings(self, config: StackConfig) -> ClusterSettings:
        """The arguments of `Cluster` that depend on the cloud."""
        return {}

    def manager_settings(self, config: StackConfig, role: pulumi.Output[str] | None) -> ManagerSettings:
        """The arguments of `CloudControllerManager` that depend on the cloud; `role`: the cluster's `ccm_role`."""
        return {}

    def manager_role(
        self, identity: Mapping[str, Any], account: str, opts: pulumi.ResourceOptions, *, reads: bool = False
    ) -> pulumi.Output[str]:
        """A role for the CCM's ServiceAccount `account` in an existing cluster; `reads`: doctor's, which may only read.

        Raises WrongInput where the cloud has none.
        """
        raise inputs.WrongInput("identity", "must not be set: the cloud has no roles for pods")

    def served_classes(self, config: StackConfig) -> Sequence[str]:
        """The values of `spec.loadBalancerClass` that controllers of the stack's cluster serve."""
        from cloud_controller.clouds import descriptor

        return sorted(descriptor(config.cloud).load_balancer_classes) if config.serves_load_balancers else []

    def balanced(
        self, config: StackConfig, args: LoadBalancerServiceArgs, subnet_ids: Mapping[str, pulumi.Output[str]]
    ) -> LoadBalancerServiceArgs:
        """The arguments of a demonstration's Service, completed with those that depend on the cloud.

        `subnet_ids`: those of the machines, by zone.
        """
        return args

    def forwards(self, config: StackConfig) -> bool:
        """Whether traffic to its load balancers reaches pods: not so if a simulator replaces the cloud."""
        return True

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
        raise inputs.WrongInput("vendor_version", "must not be set: the cloud has no CCM of its own")


class NoSettings(TypedDict):
    """The settings of what has none."""


def _access_by_cloud(_config: Config, _cluster_id: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentsCloud:
    """One cloud, as an entry point of `components.clouds` names it.

    Dynamic providers load it too: its module must be LIGHT TO IMPORT. What imports the cloud's SDK, its Pulumi package
    or pydantic does so when it is called.
    """

    name: str
    """The same as the entry point's."""
    adapter: Callable[[], CloudAdapter]
    """Its resources."""
    section: Callable[[], type[CloudSection]]
    """Its section of a stack's config, under the cloud's name."""
    load_balancer_args: type[Mapping[str, Any]]
    """The TypedDict of a load balancer's settings: an argument for each annotation of the cloud's catalogue."""
    cluster_args: type[Mapping[str, Any]] = NoSettings
    """The TypedDict of a cluster's settings."""
    identity_args: type[Mapping[str, Any]] = NoSettings
    """The TypedDict of what the role of the CCM in an existing cluster is made of."""
    cloud_config: Callable[[Config, str, str], str]
    """The text of the cloud config by a stack's config (texts by key), for a cluster and its network, by their ids."""
    kubeconfig: Callable[[Config, str], str | None] = _access_by_cloud
    """A kubeconfig of the cluster by a stack's config, where the cloud gives no access to it; None: it does."""
