"""Finds the network interfaces of pods that are backends by their own address."""

from __future__ import annotations

from collections.abc import Sequence

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.annotation_entries import BACKEND_TYPE
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.alicloud.interfaces import interfaces

_NAMED = 5


def interfaces_of(client: Client, vpc_id: str, addresses: Sequence[str]) -> dict[str, str]:
    """The interface of each address in the VPC. Raises InvalidConfiguration for addresses that have none."""
    found = interfaces(client, vpc_id, addresses)
    missing = [each for each in addresses if each not in found]
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        why = f"no network interface of {vpc_id} has the pod address {', '.join(missing[:_NAMED])}{more}"
        raise InvalidConfiguration(f"annotation {BACKEND_TYPE}", why, "ecs; or a network plugin such as Terway")
    return found
