"""AWS for the components: resources of AWS's own Pulumi package, and AWS's section of a stack's config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..interface import CloudAdapter, ComponentsCloud
from .access import cloud_config, kubeconfig
from .load_balancer import AwsLoadBalancerArgs
from .settings import AwsClusterArgs, AwsIdentityArgs

if TYPE_CHECKING:
    from .stack_section import AwsConfig


def _adapter() -> CloudAdapter:
    from .adapter import AwsAdapter

    return AwsAdapter()


def _section() -> type[AwsConfig]:
    from .stack_section import AwsConfig

    return AwsConfig


CLOUD = ComponentsCloud(
    name="aws",
    adapter=_adapter,
    section=_section,
    load_balancer_args=AwsLoadBalancerArgs,
    cluster_args=AwsClusterArgs,
    identity_args=AwsIdentityArgs,
    cloud_config=cloud_config,
    kubeconfig=kubeconfig,
)
