"""Alibaba Cloud: ECS instances and routes of a VPC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloud_controller.clouds.alicloud.names import PROVIDER_NAME
from cloud_controller.clouds.alicloud.permissions import actions
from cloud_controller.clouds.alicloud.pod_identity import pod_identity
from cloud_controller.clouds.descriptor import CloudDescriptor
from cloud_controller.load_balancers.catalogue import Catalogue

if TYPE_CHECKING:
    from cloud_controller.clouds.alicloud.cloud import AliCloud


def _from_config(text: str) -> AliCloud:
    from cloud_controller.clouds.alicloud.cloud import AliCloud
    from cloud_controller.clouds.alicloud.config import parse

    return AliCloud(parse(text))


CLOUD = CloudDescriptor(
    name="alicloud",
    from_config=_from_config,
    provider_id_scheme=PROVIDER_NAME,
    catalogue=Catalogue(PROVIDER_NAME, (), ()),
    load_balancer_classes=frozenset(),
    rights=actions,
    not_offered={
        "service": "load balancers of Alibaba Cloud are not supported yet",
        "volume": "Alibaba Cloud's volumes are its CSI driver's",
    },
    identity=pod_identity,
)
