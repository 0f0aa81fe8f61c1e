"""How nodes name their machines on AWS: the forms of provider IDs and of node names that say it themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cloud_controller.cloud import InstanceRef, InvalidConfiguration
from cloud_controller.clouds.aws.config import region_of

PROVIDER_NAME = "aws"

_ALLOWED = "aws:///ZONE/i-…, aws:///ZONE/fargate-… or i-…"
_PROVIDER_ID = re.compile(
    r"(?:aws://[^/]*/(?:(?P<zone>[^/]*)/(?:[^/]*/)*)?)?(?:(?P<instance>i-[0-9a-f]+)|(?P<fargate>fargate-[^/]+))"
)
_NAMED_AFTER_ID = re.compile(r"(?P<instance>i-[0-9a-f]{8,})(?:\..*)?")


@dataclass(frozen=True, slots=True)
class Identity:
    """The machine behind a node: the id of an instance, or what names a Fargate task's network interface."""

    instance_id: str | None = None
    fargate: str | None = None


def provider_id(zone: str, id: str) -> str:
    """The provider ID of a machine: `aws:///ZONE/ID`."""
    return f"{PROVIDER_NAME}:///{zone}/{id}"


def instance_id(provider_id: str) -> str | None:
    """The id of the instance; None for another cloud's provider ID, and for a Fargate task, which has no instance."""
    found = _PROVIDER_ID.fullmatch(provider_id)
    return found["instance"] if found else None


def identity(ref: InstanceRef, region: str | None = None) -> Identity | None:
    """What the node's provider ID says, or its name where that is made of the id (resource-based naming); else None.

    Raises InvalidConfiguration for another cloud's provider ID, and for one of another region than `region`: nothing
    that is asked there tells whether the machine is gone.
    """
    if not ref.provider_id:
        named = _NAMED_AFTER_ID.fullmatch(ref.node_name)
        return Identity(instance_id=named["instance"]) if named else None
    field = f"node {ref.node_name}: spec.providerID"
    found = _PROVIDER_ID.fullmatch(ref.provider_id)
    if found is None:
        raise InvalidConfiguration(field, f"{ref.provider_id!r} is not an AWS provider ID", _ALLOWED)
    its_region = region_of(found["zone"] or "")
    if region and its_region and its_region != region:
        raise InvalidConfiguration(field, f"{ref.provider_id!r} is not in region {region} of the cloud config")
    return Identity(found["instance"], found["fargate"])
