"""What builds need of mycloud, assumed: for plans without the cloud. Pure."""

from __future__ import annotations

from cloud_controller.clouds.descriptor import Assumed
from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.clouds.mycloud.build import MyCloudBuilder
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import Object


def assumed(cluster_id: str, _: Object) -> Assumed:
    """See `CloudDescriptor.assumed`."""
    scheme = str(CATALOGUE.by_argument["scheme"].default)
    return Assumed(MyCloudBuilder(cluster_id, scheme), Fact("net-assumed"))
