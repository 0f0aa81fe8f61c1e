"""Alibaba Cloud on one machine: a stand-in that speaks the protocol of ECS, VPC, SLB (CLB), NLB and STS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.clouds import LocalCloud

if TYPE_CHECKING:
    from local.engine.providers.provider import Provider
    from local.engine.stack.resource import ResourceState


def _provider(resource: ResourceState) -> Provider:
    from local.alicloud.recorded import recorder

    return recorder(resource.inputs)


CLOUD = LocalCloud(name="alicloud", providers={"alicloud": _provider})
