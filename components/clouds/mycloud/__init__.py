"""mycloud for the components: its resources as Pulumi resources, and its section of a stack's config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..interface import CloudAdapter, ComponentsCloud
from .access import cloud_config
from .load_balancer import MycloudLoadBalancerArgs

if TYPE_CHECKING:
    from .stack_section import MycloudConfig


def _adapter() -> CloudAdapter:
    from .adapter import MycloudAdapter

    return MycloudAdapter()


def _section() -> type[MycloudConfig]:
    from .stack_section import MycloudConfig

    return MycloudConfig


CLOUD = ComponentsCloud(
    name="mycloud",
    adapter=_adapter,
    section=_section,
    load_balancer_args=MycloudLoadBalancerArgs,
    cloud_config=cloud_config,
)
