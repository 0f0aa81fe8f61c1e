"""OpenStack for the components: resources of its own Pulumi package, and its section of a stack's config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..interface import CloudAdapter, ComponentsCloud
from .access import cloud_config, kubeconfig
from .load_balancer import OpenstackLoadBalancerArgs
from .settings import OpenstackClusterArgs

if TYPE_CHECKING:
    from .stack_section import OpenstackConfig


def _adapter() -> CloudAdapter:
    from .adapter import OpenstackAdapter

    return OpenstackAdapter()


def _section() -> type[OpenstackConfig]:
    from .stack_section import OpenstackConfig

    return OpenstackConfig


CLOUD = ComponentsCloud(
    name="openstack",
    adapter=_adapter,
    section=_section,
    load_balancer_args=OpenstackLoadBalancerArgs,
    cluster_args=OpenstackClusterArgs,
    cloud_config=cloud_config,
    kubeconfig=kubeconfig,
)
