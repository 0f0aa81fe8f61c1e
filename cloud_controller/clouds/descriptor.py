"""What controllers, manifests and reference pages need to know of a cloud before a `Cloud` exists.

Plain values: importing a descriptor loads neither the cloud's SDK nor an HTTP client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.facts import Facts
from cloud_controller.load_balancers.model import LoadBalancerBuilder, Object
from cloud_controller.load_balancers.readiness_gates import ReadinessGates
from cloud_controller.load_balancers.refusals import Refusal

if TYPE_CHECKING:
    from cloud_controller.cloud import Cloud

Manifest: TypeAlias = dict[str, Any]
"""A Kubernetes object as in its JSON or YAML."""
Text: TypeAlias = Any
"""A string or a Pulumi output that becomes one. Pass it on unread: an output has no value yet."""


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """How the CCM's pods assume a role of the cloud: with a token of their ServiceAccount."""

    audience: str
    annotations: Mapping[str, Text]
    """Annotations of the ServiceAccount."""
    environment: Mapping[str, Text]


@dataclass(frozen=True, slots=True)
class FromConfig:
    """What of a cloud config decides which Services are refused; none of it is secret."""

    load_balancer_classes: frozenset[str]
    """All served values of `spec.loadBalancerClass`."""
    refusals: Mapping[str, tuple[Refusal, ...]]
    """The rules after those of the catalogue, by its `kind`."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a matrix says about a pair; `why` is empty where it fits. What it does not know is `unknown`."""

    kind: Literal["fits", "unknown", "wrong"]
    why: str = ""


class VendorManager(NamedTuple):
    """The cloud's own cloud controller manager: its image's repository, and the matrix of its versions."""

    image: re.Pattern[str]
    judge: Callable[[str, str], Verdict]
    """Says whether a version, the image's tag, goes with a Kubernetes version."""


class Assumed(NamedTuple):
    """What a build needs, without a cloud."""

    builder: LoadBalancerBuilder
    facts: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudDescriptor:
    """The descriptor of one cloud. An entry point in group `cloud_controller.clouds` refers to it."""

    name: str
    """The value of `--cloud` and the name of the entry point."""
    from_config: Callable[[str], Cloud]
    """Creates the cloud from the text of its cloud config. Raises InvalidConfiguration. Import the SDK inside."""
    provider_id_scheme: str
    """The prefix of provider IDs, without `://` (upstream: ProviderName)."""
    catalogue: Catalogue
    """The annotations of the cloud's load balancers."""
    load_balancer_classes: frozenset[str]
    """The values of `spec.loadBalancerClass` always served (`Cloud.load_balancer_classes` may add more)."""
    default_classes: frozenset[str] = frozenset()
    """Those that it serves besides, unless its cloud config leaves them to another controller."""
    rights: Callable[[Collection[str]], Sequence[str]]
    """The operations that the given controllers call, sorted, as the cloud's access control names them."""
    assumed: Callable[[str, Object], Assumed] | None = None
    """For plans without the cloud: a builder for this cluster ID, and facts with all that the Service names.

    Raises nothing: `build` refuses invalid Services. None: such plans are not supported.
    """
    of_config: Callable[[str], FromConfig] | None = None
    """What the text of a cloud config decides about Services. Raises InvalidConfiguration. None: nothing."""
    of_others: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Annotations with the values by which a Service without a class is left to another controller."""
    readiness_gates: ReadinessGates = field(default_factory=ReadinessGates)
    """The condition types of pods' readiness gates, and which classes have gates by default."""
    concurrent_services: int = 3
    """The default of `--concurrent-service-syncs`. More, where changes mostly wait and waiting workers share calls."""
    keeps_checkpoint: bool = False
    """Whether its load balancers keep a checkpoint, which saves reads after a restart (`operations.Remembering`).

    The daemon then needs access to one more ConfigMap.
    """
    not_offered: Mapping[str, str] = field(default_factory=dict)
    """The controllers that the cloud does not offer, each with the reason; `*` omits them."""
    storage: tuple[Manifest, ...] = ()
    """The default StorageClass and the CSIDriver, created where controller `volume` runs."""
    identity: Callable[[Text, str], PodIdentity] | None = None
    """Takes a role's name and the path of the token. None: pods cannot assume a role in this cloud."""
    metadata: tuple[str, ...] = ()
    """The ranges where machines read their metadata, beside the link-local ones (169.254.0.0/16, fe80::/10)."""
    file_keys: tuple[str, ...] = ()
    """The keys of the cloud config that name files, which the CCM's pods do not have."""
    vendor_manager: VendorManager | None = None
    """The cloud's own cloud controller manager, where its version depends on Kubernetes'."""
