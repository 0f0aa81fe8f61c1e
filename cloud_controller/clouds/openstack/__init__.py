"""OpenStack: Nova's servers, routes of a Neutron router, Octavia's load balancers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloud_controller.clouds.descriptor import Assumed, CloudDescriptor
from cloud_controller.clouds.openstack.names import PROVIDER_NAME
from cloud_controller.clouds.openstack.octavia.annotations import CATALOGUE
from cloud_controller.clouds.openstack.permissions import requests
from cloud_controller.load_balancers.model import Object

if TYPE_CHECKING:
    from cloud_controller.clouds.openstack.cloud import OpenStack


def _from_config(text: str) -> OpenStack:
    import os

    from cloud_controller.clouds.openstack.cloud import OpenStack
    from cloud_controller.clouds.openstack.config import parse
    from cloud_controller.clouds.openstack.files import read_file

    config = parse(text)
    if config.ca_file is not None:
        read_file("ca-file", config.ca_file)  # Otherwise each connection would fail, as if the network were at fault.
    # As upstream's own switch.
    return OpenStack(config, regional=os.environ.get("OS_CCM_REGIONAL") == "true")


def _assumed(cluster_id: str, service: Object) -> Assumed:
    from cloud_controller.clouds.openstack.assumed import assumed

    return assumed(cluster_id, service)


CLOUD = CloudDescriptor(
    name=PROVIDER_NAME,
    from_config=_from_config,
    provider_id_scheme=PROVIDER_NAME,
    catalogue=CATALOGUE,
    load_balancer_classes=frozenset(),
    rights=requests,
    assumed=_assumed,
    # Changes mostly wait for Octavia, and waiting workers share calls.
    concurrent_services=20,
    not_offered={"volume": "Cinder's volumes are its CSI driver's"},
    file_keys=("ca-file", "clouds-file"),
)
