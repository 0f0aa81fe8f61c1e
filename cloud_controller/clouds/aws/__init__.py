"""AWS: EC2 instances, routes of a VPC, Network and Classic Load Balancers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import AWS_LBC_TYPES, CATALOGUE, CLASSES
from cloud_controller.clouds.aws.config_refusals import of_config, served_classes
from cloud_controller.clouds.aws.permissions import actions
from cloud_controller.clouds.aws.pod_identity import pod_identity
from cloud_controller.clouds.aws.provider_ids import PROVIDER_NAME
from cloud_controller.clouds.aws.versions import IMAGES, judge
from cloud_controller.clouds.descriptor import Assumed, CloudDescriptor, FromConfig, VendorManager
from cloud_controller.load_balancers.model import Object

if TYPE_CHECKING:
    from cloud_controller.clouds.aws.cloud import Aws


def _from_config(text: str) -> Aws:
    try:
        from cloud_controller.clouds.aws.cloud import Aws
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("boto3", "botocore"):
            raise
        raise InvalidConfiguration("cloud", "aws needs boto3: pip install 'cloud-controller[aws]'") from error
    from cloud_controller.clouds.aws.config import parse

    return Aws(parse(text))


def _assumed(cluster_id: str, service: Object) -> Assumed:
    from cloud_controller.clouds.aws.assumed import assumed

    return assumed(cluster_id, service)


def _of_config(text: str) -> FromConfig:
    from cloud_controller.clouds.aws.config import parse

    config = parse(text)
    return FromConfig(served_classes(config), {CATALOGUE.kind: of_config(config)})


CLOUD = CloudDescriptor(
    name="aws",
    from_config=_from_config,
    assumed=_assumed,
    provider_id_scheme=PROVIDER_NAME,
    catalogue=CATALOGUE,
    load_balancer_classes=frozenset(CLASSES),
    of_config=_of_config,
    of_others={CATALOGUE.by_argument["type"].name: AWS_LBC_TYPES},
    rights=actions,
    # Listeners, targets and tags are read one load balancer a call.
    keeps_checkpoint=True,
    not_offered={"volume": "AWS's volumes are the EBS CSI driver's"},
    identity=pod_identity,
    metadata=("fd00:ec2::254/128",),
    vendor_manager=VendorManager(IMAGES, judge),
)
