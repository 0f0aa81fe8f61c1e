"""Changes the tags of CLB's load balancers, listeners and server groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from cloud_controller.clouds.alicloud.patience import PatientClient
from cloud_controller.clouds.alicloud.tags import stored, tag_list
from cloud_controller.clouds.common.concurrent_calls import batches

_A_CALL = 20
"""The most tags in one call."""


def set_tags(
    client: PatientClient,
    kind: Literal["instance", "listener", "vservergroup"],
    id: str,
    wanted: Mapping[str, str],
    actual: Mapping[str, str],
) -> None:
    """Make the tags of a resource those that are wanted. A listener's ID is LOAD-BALANCER_PROTOCOL_PORT."""
    left = sorted(stored(actual).keys() - stored(wanted).keys())
    changed = tag_list({key: value for key, value in wanted.items() if actual.get(key) != value})
    resource = {"ResourceType": kind, "ResourceId": [id]}
    for part in batches(changed, _A_CALL):
        client.call("slb", "TagResources", {**resource, "Tag": part})
    for keys in batches(left, _A_CALL):
        client.call("slb", "UntagResources", {**resource, "TagKey": keys})
