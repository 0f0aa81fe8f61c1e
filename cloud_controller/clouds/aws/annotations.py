"""The annotations by which a Service configures its load balancer on AWS.

They are those of upstream (cloud-provider-aws) and those of the AWS Load Balancer Controller, which share one
prefix. Each entry names the projects and versions that honour it. The entries are in the modules joined here.
"""

from __future__ import annotations

from cloud_controller.clouds.aws.annotation_entries import AWS_LBC_CLASS, CLASSES, PREFIX
from cloud_controller.clouds.aws.annotations_of_listeners import LISTENERS
from cloud_controller.clouds.aws.annotations_of_load_balancers import LOAD_BALANCERS
from cloud_controller.clouds.aws.annotations_of_others import OTHERS
from cloud_controller.clouds.aws.annotations_of_targets import TARGETS
from cloud_controller.clouds.aws.refusals import NAMINGS, REFUSALS, SHARED
from cloud_controller.load_balancers.catalogue import Catalogue

__all__ = [
    "AWS_LBC_CLASS",
    "AWS_LBC_FINALIZER",
    "AWS_LBC_TYPES",
    "CATALOGUE",
    "CLASSES",
    "PREFIX",
]

CATALOGUE = Catalogue(
    cloud="aws",
    prefixes=(PREFIX,),
    entries=(*LOAD_BALANCERS, *LISTENERS, *TARGETS, *OTHERS),
    # Charts leave annotations empty, and upstream ignores those.
    empty_is_unset=True,
    refusals=REFUSALS,
    shared=SHARED,
    namings=NAMINGS,
)

AWS_LBC_FINALIZER = "service.k8s.aws/resources"
"""The finalizer that the AWS Load Balancer Controller adds to a Service before it creates anything for it."""

AWS_LBC_TYPES = ("external", "nlb-ip")
"""The values of annotation `type` that leave a Service to the AWS Load Balancer Controller."""
