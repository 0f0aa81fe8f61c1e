"""What the controllers, their manifests and the reference pages need to know of a cloud before there is a `Cloud`.

Plain values: importing a descriptor loads neither the cloud's SDK nor an HTTP client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from cloud_controller.load_balancers.catalogue import Catalogue

if TYPE_CHECKING:
    from cloud_controller.cloud import Cloud

Manifest: TypeAlias = dict[str, Any]
"""A Kubernetes object as in its JSON or YAML."""
Text: TypeAlias = Any
"""A string, or an output of the Pulumi program that will be one: nothing may look into a Text."""


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """How the CCM's pods assume a role of the cloud: with a token of their ServiceAccount, which the cloud accepts."""

    audience: str
    annotations: Mapping[str, Text]
    """Of the ServiceAccount."""
    environment: Mapping[str, Text]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudDescriptor:
    """One cloud. Its package holds one, and an entry point of the group `cloud_controller.clouds` leads to it."""

    name: str
    """As in `--cloud`; the entry point has the same name."""
    from_config: Callable[[str], Cloud]
    """Makes the cloud from the text of its cloud config. Raises InvalidConfiguration. Import the SDK inside."""
    provider_id_scheme: str
    """What provider IDs begin with, without `://` (upstream: ProviderName)."""
    catalogue: Catalogue
    """The annotations of its load balancers."""
    load_balancer_classes: frozenset[str]
    """The values of `spec.loadBalancerClass` that it always serves (`Cloud.load_balancer_classes` may have more)."""
    rights: Callable[[Collection[str]], Sequence[str]]
    """The operations that these controllers call, sorted, in the words of the cloud's access control."""
    keeps_checkpoint: bool = False
    """Whether its load balancers remember what a restart would have to ask for again (`operations.Remembering`).

    Then the daemon needs rights on one ConfigMap more.
    """
    not_offered: Mapping[str, str] = field(default_factory=dict)
    """The controllers for which the cloud has no work, and why; `*` leaves them out."""
    storage: tuple[Manifest, ...] = ()
    """What claims refer to, where controller `volume` runs: the default StorageClass, the CSIDriver."""
    identity: Callable[[Text, str], PodIdentity] | None = None
    """Of a role's name and the path of the token. None: pods assume no role in this cloud."""
    file_keys: tuple[str, ...] = ()
    """The keys of the cloud config that name files; the CCM's pods do not have such files."""
