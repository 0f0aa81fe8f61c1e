"""The tags of other owners' security groups, read one by one, only if an allow-list uses tags."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.tags import tags_of
from cloud_controller.clouds.aws.vpc_state import LIFETIME


class GroupTags:
    """Tags by group, cached for a lifetime. Concurrent readers of the same group may each make the call."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[str, tuple[float, Mapping[str, str]]] = {}

    def of(self, group_id: str) -> Mapping[str, str]:
        """The group's tags; empty if the group does not exist."""
        at, tags = self._known.get(group_id, (0.0, None))
        if tags is None or self._clock() - at > LIFETIME:
            tags = self._read(group_id)
            self._known[group_id] = (self._clock(), tags)
        return tags

    def _read(self, group_id: str) -> Mapping[str, str]:
        try:
            answer = self._api.call("ec2", "DescribeSecurityGroups", GroupIds=[group_id])
        except NotFound:
            return {}
        return tags_of(answer["SecurityGroups"][0])
