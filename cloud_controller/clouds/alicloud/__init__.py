"""Alibaba Cloud: ECS instances, routes of a VPC, classic and network load balancers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloud_controller.clouds.alicloud.annotations import CATALOGUE, CLASSES, OWN_CLASSES
from cloud_controller.clouds.alicloud.clb.annotations import CLB
from cloud_controller.clouds.alicloud.clb.refusals import WITHOUT_VSWITCH
from cloud_controller.clouds.alicloud.names import PROVIDER_NAME
from cloud_controller.clouds.alicloud.permissions import actions
from cloud_controller.clouds.alicloud.pod_identity import pod_identity
from cloud_controller.clouds.alicloud.readiness_gates import GATES
from cloud_controller.clouds.alicloud.versions import IMAGE, judge
from cloud_controller.clouds.descriptor import Assumed, CloudDescriptor, FromConfig, VendorManager
from cloud_controller.load_balancers.model import Object

if TYPE_CHECKING:
    from cloud_controller.clouds.alicloud.cloud import AliCloud


def _from_config(text: str) -> AliCloud:
    from cloud_controller.clouds.alicloud.cloud import AliCloud
    from cloud_controller.clouds.alicloud.config import parse

    return AliCloud(parse(text))


def _assumed(cluster_id: str, service: Object) -> Assumed:
    from cloud_controller.clouds.alicloud.assumed import assumed

    return assumed(cluster_id, service)


def _of_config(text: str) -> FromConfig:
    from cloud_controller.clouds.alicloud.config import parse

    config = parse(text)
    of_clb = () if config.vswitch_id else (WITHOUT_VSWITCH,)
    return FromConfig(CLASSES if config.serve_nlb_class else OWN_CLASSES, {CLB.kind: of_clb})


CLOUD = CloudDescriptor(
    name="alicloud",
    from_config=_from_config,
    assumed=_assumed,
    provider_id_scheme=PROVIDER_NAME,
    catalogue=CATALOGUE,
    load_balancer_classes=OWN_CLASSES,
    default_classes=CLASSES - OWN_CLASSES,
    of_config=_of_config,
    readiness_gates=GATES,
    rights=actions,
    # As many as one look at NLB's jobs, or one list by ID, can serve.
    concurrent_services=20,
    keeps_checkpoint=True,
    not_offered={"volume": "Alibaba Cloud's volumes are its CSI driver's"},
    identity=pod_identity,
    metadata=("100.100.100.200/32",),
    vendor_manager=VendorManager(IMAGE, judge),
)
