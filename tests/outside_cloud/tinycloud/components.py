"""tinycloud for the components: it has no Pulumi package, so a stack names what is there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NotRequired, TypedDict

import pulumi

from components.clouds.interface import CloudAdapter, ComponentsCloud

if TYPE_CHECKING:
    from pulumi.dynamic.config import Config

    from components.stack_model import CloudSection


class TinyLoadBalancerArgs(TypedDict):
    """The settings of a load balancer."""

    scheme: NotRequired[pulumi.Input[str]]


def cloud_config(config: Config, cluster_id: str, _network_id: str) -> str:
    section = json.loads(config.get("tiny") or "{}")
    return json.dumps({"cluster": cluster_id, "machines": section.get("machines", {})})


def _adapter() -> CloudAdapter:
    from tinycloud.adapter import TinyAdapter

    return TinyAdapter()


def _section() -> type[CloudSection]:
    from tinycloud.stack_section import TinyConfig

    return TinyConfig


CLOUD = ComponentsCloud(
    name="tiny",
    adapter=_adapter,
    section=_section,
    load_balancer_args=TinyLoadBalancerArgs,
    cloud_config=cloud_config,
)
