"""What a cloud offers to the rules: its descriptor, with marks for the meaning of its annotations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cloud_controller.clouds.common.versions import Verdict
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
class PolicyCloud:
    """One cloud, as an entry point of `policy.clouds` names it.

    In every cloud a load balancer is public, open to all and checks its backends unless an annotation says otherwise.
    """

    name: str
    """The same as the entry point's."""
    policies: tuple[Rule, ...] = ()
    """Rules about the cloud's own resources."""
    infrastructure: Infrastructure = field(default_factory=lambda: Infrastructure(control_planes={}, machines={}))
    ccm: CcmMatrix | None = None
    """The versions of the vendor's own cloud controller manager, where they depend on Kubernetes'."""
    config_files: tuple[str, ...] = ()
    """File names, without their ending, that a cloud config commonly has."""
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
    meaning: Meaning = field(default_factory=lambda: Meaning(billed={}))
