"""Changes the tags of CLB's load balancers, listeners and server groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from cloud_controller.clouds.alicloud.clb.wire import tag_keys, tag_list
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.common.concurrent_calls import batches

_A_CALL = 20
"""The most tags in one call."""


def set_tags(
    client: Client,
    kind: Literal["instance", "listener", "vservergroup"],
    id: str,
    wanted: Mapping[str, str],
    actual: Mapping[str, str],
) -> None:
    """Make the tags of a resource those that are wanted. A listener's ID is LOAD-BALANCER_PROTOCOL_PORT."""
    kept = {stored for key, value in wanted.items() for stored in tag_keys(key, value)}
    left = [key for each, value in actual.items() for key in tag_keys(each, value) if key not in kept]
    changed = tag_list({key: value for key, value in wanted.items() if actual.get(key) != value})
    resource = {"ResourceType": kind, "ResourceId": [id]}
    for part in batches(changed, _A_CALL):
        client.call("slb", "TagResources", {**resource, "Tag": part})
    for keys in batches(left, _A_CALL):
        client.call("slb", "UntagResources", {**resource, "TagKey": keys})
