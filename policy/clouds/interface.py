"""What a cloud offers to the rules: its descriptor, with marks for the meaning of its annotations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
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
    """Its repository."""
    clusters: Mapping[str, str]
    """The types of managed clusters, with the property that is their Kubernetes version."""
    judge: Callable[[str, str], Verdict]
    """Says whether a version, the image's tag, goes with a Kubernetes version."""


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
class PolicyCloud:
    """One cloud, as an entry point of `policy.clouds` names it.

    In every cloud a load balancer is public, open to all and checks its backends unless an annotation says otherwise.
    """

    name: str
    """The same as the entry point's."""
    policies: tuple[Rule, ...] = ()
    """Rules about the cloud's own resources."""
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
    meaning: Meaning = field(default_factory=lambda: Meaning(billed={}))
