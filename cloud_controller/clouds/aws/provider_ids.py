"""Maps nodes to their machines on AWS, by provider ID or node name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cloud_controller.cloud import InstanceRef, InvalidConfiguration
from cloud_controller.clouds.aws.config import region_of

PROVIDER_NAME = "aws"

_ALLOWED = "aws:///ZONE/i-…, aws:///ZONE/fargate-… or i-…"
_PROVIDER_ID = re.compile(
    r"(?:aws://[^/]*/(?:(?P<zone>[^/]*)/(?:[^/]*/)*)?)?(?:(?P<instance>i-[0-9a-f]{1,17})|(?P<fargate>fargate-[^/]{1,253}))"
)
_NAMED_AFTER_ID = re.compile(r"(?P<instance>i-[0-9a-f]{8,17})(?:\..*)?")


@dataclass(frozen=True, slots=True)
class Identity:
    """The machine behind a node: an instance ID, or the part of the ID that names a Fargate task's network
    interface."""

    instance_id: str | None = None
    fargate: str | None = None


def provider_id(zone: str, id: str) -> str:
    """The provider ID of a machine: `aws:///ZONE/ID`."""
    return f"{PROVIDER_NAME}:///{zone}/{id}"


def instance_id(provider_id: str) -> str | None:
    """The instance ID; None for another cloud's provider ID and for Fargate tasks, which have no instance."""
    found = _PROVIDER_ID.fullmatch(provider_id)
    return found["instance"] if found else None


def is_fargate(provider_id: str) -> bool:
    """Whether it is a Fargate task's."""
    found = _PROVIDER_ID.fullmatch(provider_id)
    return bool(found and found["fargate"])


def identity(ref: InstanceRef, region: str | None = None) -> Identity | None:
    """The identity in the provider ID, or in a node name derived from the instance ID (resource-based naming); else
    None.

    Raises InvalidConfiguration for another cloud's provider ID and for another region's: calls in `region` cannot
    show whether that machine exists.
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
