"""The arguments of `LoadBalancerService`, which a cloud's adapter completes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi


class PortArgs(TypedDict):
    """One port of a `LoadBalancerService`."""

    port: pulumi.Input[int]
    """Where the load balancer listens."""
    target_port: NotRequired[pulumi.Input[int | str]]
    """The container's port, by number or name; the same as `port` if not given."""
    protocol: NotRequired[pulumi.Input[str]]
    """`TCP` (default) or `UDP`."""
    name: NotRequired[pulumi.Input[str]]
    """Needed where there are several; PROTOCOL-PORT in lower case if not given."""


class ServingClusterArgs(TypedDict):
    """The cluster of a `LoadBalancerService`, whose stack has the config that `CloudController` needs."""

    cluster_id: pulumi.Input[str]
    """Its id in the cloud, which tags carry."""
    network_id: pulumi.Input[str]
    """The id of its network."""
    existing: NotRequired[bool]
    """Whether the cluster is not the program's: its kubeconfig is in the stack's config."""
    arguments: NotRequired[Sequence[str]]
    """The flags of our daemon in it, as its `CloudControllerManager` has them: they affect its plans."""


class LoadBalancerServiceArgs(TypedDict):
    """Arguments of `LoadBalancerService`."""

    cloud: str
    """The cloud whose load balancer it is: decides what `settings` and `annotations` may say."""
    selector: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """The labels of the pods that get the traffic."""
    ports: Sequence[PortArgs]
    """At least one."""
    settings: NotRequired[Mapping[str, Any]]
    """The cloud's settings, typed by the cloud's own TypedDict."""
    annotations: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Raw annotations; they win over `settings`."""
    source_ranges: NotRequired[pulumi.Input[Sequence[pulumi.Input[str]]]]
    """Who may connect, as IPv4 ranges; everyone if not given, or empty."""
    load_balancer_class: NotRequired[pulumi.Input[str]]
    """Who makes the load balancer, one of `served_classes`. Immutable: a change replaces the Service."""
    served_classes: NotRequired[Sequence[str]]
    """The classes that controllers of the cluster serve; if not given, those that our daemon always serves."""
    cluster: NotRequired[ServingClusterArgs]
    """Where our daemon serves it: then previews see which change costs the address, and updates wait for the next."""
    replace_address: NotRequired[pulumi.Input[str]]
    """The digest, from a preview that failed, of the one change that may give a protected Service another address."""
    external_traffic_policy: NotRequired[pulumi.Input[str]]
    """`Cluster` (default) or `Local` (only nodes with pods get traffic; the client's address is kept)."""
    namespace: NotRequired[pulumi.Input[str]]
    """`default` if not given."""
