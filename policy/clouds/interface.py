"""What a cloud offers to the rules: its descriptor, with marks for the meaning of its annotations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from cloud_controller.clouds.common.versions import Verdict
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.terms import Asked
from policy.owners import Component
from policy.rules import Rule, Stack


@dataclass(frozen=True, slots=True)
class Mark:
    """An annotation (`*` in its name stands for anything) that means something with one of these values.

    Values are compared without case. Without any, every value counts but the empty one and `false`.
    """

    name: str
    values: tuple[str, ...] = ()
    beside: Mark | None = None
    """Another annotation that this one needs to mean anything."""

    def matches(self, value: str) -> bool:
        """Whether the annotation means it with this value."""
        text = value.strip().lower()
        return text in self.values if self.values else text not in ("", "false")


@dataclass(frozen=True, slots=True, kw_only=True)
class CcmMatrix:
    """The versions of the vendor's own cloud controller manager."""

    image: re.Pattern[str]
    """Its repository, in whichever registry: a mirror keeps the last parts."""
    providers: frozenset[str]
    """What `--cloud-provider` calls the cloud: that tells whose an image without a vendor's name is."""
    judge: Callable[[str, str], Verdict]
    """Says whether a version, the image's tag, goes with a Kubernetes version."""
    follows_upstream: bool = True
    """Whether its controllers with upstream's names are those of upstream's framework, and need the same rights."""


Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Infrastructure:
    """What the cloud's resources say of clusters, machines and networks, by Pulumi's types."""

    control_planes: Mapping[str, str]
    """Those that the cloud runs, with the property that is their Kubernetes version; empty where the cloud chooses."""
    machines: Mapping[str, tuple[Path, ...]]
    """With where the number of machines stands, of which the largest counts; nowhere: the resource is one machine."""
    node_versions: Mapping[str, str] = field(default_factory=dict)
    """Node pools, with the property that is their Kubernetes version."""
    networks: Mapping[str, Path] = field(default_factory=dict)
    """Networks and their parts, with where their range stands."""
    services: Mapping[str, Path] = field(default_factory=dict)
    """Control planes, with where the range of cluster IPs stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """How a CCM takes a role of the cloud, so that it needs no key that lasts until somebody deletes it."""

    where: Mapping[str, str]
    """By the types of resources that make it possible: how."""
    keys: frozenset[str]
    """The types of such keys."""
    names: frozenset[str]
    """What variables and settings with one are called, without case and separators."""


@dataclass(frozen=True, slots=True)
class Billed:
    """A type of resource that costs by the hour. `size` and `count`: the paths of those inputs."""

    what: str
    size: tuple[str | int, ...] = ()
    count: tuple[str | int, ...] = ()
    """Empty: the resource is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What the cloud's resources cost and allow, by Pulumi's types: for reports of what a commit changes."""

    billed: Mapping[str, Billed]
    documents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The inputs that hold policy documents."""
    attached: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The inputs that name a policy and who gets it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What in a stack shows that its cluster is in this cloud."""

    types: tuple[str, ...]
    """How Pulumi's types of its resources begin, such as `PACKAGE:`."""
    called: str
    """The value of `--cloud-provider` of the vendor's own cloud controller manager."""
    managed: tuple[str, ...] = ()
    """The types of managed clusters, in which the vendor's own cloud controller manager runs."""
    ccm_classes: tuple[str | None, ...] = (None,)
    """The values of `spec.loadBalancerClass` that the vendor's own CCM serves; None: no class."""
    other_classes: tuple[str, ...] = ()
    """Those of its further controllers, which read the same annotations."""


def _no(asked: Asked) -> None:
    del asked


def _no_zones(asked: Asked) -> frozenset[str]:
    del asked
    return frozenset()


def _kind(asked: Asked) -> str:
    return asked.settings.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancers:
    """What a Service's settings come to. Each function may raise UnknownValueError."""

    ends_tls: Callable[[Asked], bool | None] = _no
    """Whether the load balancer ends TLS on the port `item`."""
    unredirected: Callable[[Asked], str | None] = _no
    """The ports whose HTTP requests could be redirected to HTTPS, and are not."""
    unprotected: Callable[[Asked], str | None] = _no
    """The annotation that would have the cloud refuse to delete the load balancer, where it does not."""
    protected_by_ours: bool = False
    """Whether of the CCMs only this project's reads that annotation."""
    unlogged: Callable[[Asked], str | None] = _no
    """The annotation that would have connections logged, where they are not."""
    kind: Callable[[Asked], str] = _kind
    """The kind of load balancer, as `quotas` names it."""
    quotas: Mapping[str, int] = field(default_factory=dict)
    """How many load balancers of each kind an account may have in a region by default; `listeners of KIND`: how many
    listeners one may have; `addresses`: public addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Zones:
    """Where load balancers and nodes are."""

    annotation: str
    """The argument that names the load balancer's subnets."""
    subnets: Mapping[str, str]
    """Pulumi's types of subnets, with the property that is the zone."""
    pools: Mapping[str, str]
    """Pulumi's types of machines and pools, with the property that names their subnets."""
    crosses: Callable[[Asked], bool]
    """Whether the load balancer reaches nodes of every zone."""
    named: Callable[[Asked], frozenset[str]] = _no_zones
    """The zones that the annotation names itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCloud:
    """One cloud, as an entry point of `policy.clouds` names it.

    In every cloud a load balancer is public, open to all and checks its backends unless an annotation says otherwise.
    """

    name: str
    """The same as the entry point's."""
    signs: Signs
    """What in a stack shows that its cluster is in this cloud."""
    catalogue: Catalogue
    """The annotations of its Services; of a cloud without controllers here, their names alone."""
    policies: tuple[Rule, ...] = ()
    """Rules about the cloud's own resources."""
    infrastructure: Infrastructure = field(default_factory=lambda: Infrastructure(control_planes={}, machines={}))
    ccm: CcmMatrix | None = None
    """The versions of the vendor's own cloud controller manager, where they depend on Kubernetes'."""
    roles: Roles | None = None
    """None: the cloud has none for a CCM."""
    check_config: Callable[[str], None] | None = None
    """Raises InvalidConfiguration, without values, for a cloud config's text that the CCM would refuse."""
    public_apis: Callable[[str, Stack], Iterable[str]] | None = None
    """The APIs that a CCM with this cloud config calls by addresses on the internet, though internal ones exist.

    Raises InvalidConfiguration, UnknownValueError. None: the cloud has no such addresses.
    """
    internal: tuple[Mark, ...] = ()
    """The load balancer's address is for the network alone."""
    limited_elsewhere: tuple[Mark, ...] = ()
    """Something other than the Service's source ranges limits who may connect."""
    further_clients: tuple[Mark, ...] = ()
    """Clients besides the source ranges; where there are no ranges, instead of everyone."""
    unchecked: tuple[Mark, ...] = ()
    """Backends get traffic whether they answer or not."""
    limits_egress: Callable[[Stack], bool] | None = None
    """Whether the stack has a machine whose security groups let out to less than everything."""
    components: Mapping[str, tuple[Component, ...]] = field(default_factory=dict)
    """The components that hold lines of the checklist on this cloud, by line."""
    shares: tuple[str, ...] = ()
    """The annotations that name an existing load balancer to use."""
    check_ports: tuple[str, ...] = ()
    """The annotations that set the port of health checks."""
    by_pod: tuple[Mark, ...] = ()
    """Backends are pods, not nodes."""
    balancers: Balancers = field(default_factory=lambda: Balancers())
    zones: Zones | None = None
    """Where its load balancers and nodes are; None: a load balancer is in every zone."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What a rule of the checklist judges in this cloud and how to follow it, by the rule's name: for its page."""
    meaning: Meaning = field(default_factory=lambda: Meaning(billed={}))
