"""mycloud, a private cloud: machines, route tables, load balancers and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloud_controller.clouds.descriptor import Assumed, CloudDescriptor
from cloud_controller.clouds.mycloud.annotations import CATALOGUE, CLASSES
from cloud_controller.clouds.mycloud.names import PROVIDER_NAME
from cloud_controller.clouds.mycloud.permissions import globs
from cloud_controller.clouds.mycloud.storage import STORAGE
from cloud_controller.load_balancers.model import Object

if TYPE_CHECKING:
    from cloud_controller.clouds.mycloud.cloud import MyCloud


def _from_config(text: str) -> MyCloud:
    from cloud_controller.clouds.mycloud.cloud import MyCloud
    from cloud_controller.clouds.mycloud.config import parse

    return MyCloud(parse(text))


def _assumed(cluster_id: str, service: Object) -> Assumed:
    from cloud_controller.clouds.mycloud.assumed import assumed

    return assumed(cluster_id, service)


CLOUD = CloudDescriptor(
    name="mycloud",
    from_config=_from_config,
    assumed=_assumed,
    provider_id_scheme=PROVIDER_NAME,
    catalogue=CATALOGUE,
    load_balancer_classes=frozenset(CLASSES),
    rights=globs,
    storage=STORAGE,
    file_keys=("token-file",),
)
