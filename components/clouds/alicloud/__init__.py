"""Alibaba Cloud for the components: resources of its own Pulumi package, and its section of a stack's config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..interface import CloudAdapter, ComponentsCloud
from .access import cloud_config, kubeconfig
from .load_balancer import AlicloudLoadBalancerArgs
from .settings import AlicloudClusterArgs, AlicloudIdentityArgs

if TYPE_CHECKING:
    from .stack_section import AlicloudConfig


def _adapter() -> CloudAdapter:
    from .adapter import AlicloudAdapter

    return AlicloudAdapter()


def _section() -> type[AlicloudConfig]:
    from .stack_section import AlicloudConfig

    return AlicloudConfig


CLOUD = ComponentsCloud(
    name="alicloud",
    adapter=_adapter,
    section=_section,
    load_balancer_args=AlicloudLoadBalancerArgs,
    cluster_args=AlicloudClusterArgs,
    identity_args=AlicloudIdentityArgs,
    cloud_config=cloud_config,
    kubeconfig=kubeconfig,
)
