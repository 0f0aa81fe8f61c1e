"""What the changes of NLBs are made with: one of each for a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from cloud_controller.clouds.alicloud.nlb.api import Place
from cloud_controller.clouds.alicloud.nlb.instance import Instances
from cloud_controller.clouds.alicloud.nlb.listeners import Listeners
from cloud_controller.clouds.alicloud.nlb.memory import Memory
from cloud_controller.clouds.alicloud.nlb.own_group import OwnGroups
from cloud_controller.clouds.alicloud.nlb.reads import NetworkReads
from cloud_controller.clouds.alicloud.nlb.server_groups import ServerGroups
from cloud_controller.clouds.alicloud.nlb.writes import Writes


@dataclass(frozen=True, slots=True)
class Tools:
    """Safe to share between threads."""

    place: Place
    memory: Memory
    reads: NetworkReads
    writes: Writes
    groups: ServerGroups
    listeners: Listeners
    own_groups: OwnGroups
    instances: Instances
