"""The tags of named security groups, read only if an allow-list uses tags."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.tags import tags_of
from cloud_controller.clouds.aws.vpc_state import LIFETIME

_VALUES = 200
"""The most values of a filter."""


class GroupTags:
    """Tags by group, cached for a lifetime. Concurrent readers of the same group may each make the call."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[str, tuple[float, Mapping[str, str]]] = {}

    def of(self, group_ids: Collection[str]) -> dict[str, Mapping[str, str]]:
        """The tags of these groups; empty for those that do not exist."""
        oldest = self._clock() - LIFETIME
        lacking = sorted(each for each in group_ids if self._known.get(each, (oldest, {}))[0] <= oldest)
        for start in range(0, len(lacking), _VALUES):
            part = lacking[start : start + _VALUES]
            found = self._read(part)
            self._known |= {each: (self._clock(), found.get(each, {})) for each in part}
        return {each: self._known[each][1] for each in group_ids}

    def _read(self, group_ids: Sequence[str]) -> dict[str, dict[str, str]]:
        filters = [{"Name": "group-id", "Values": [*group_ids]}]
        pages = self._api.pages("ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=filters)
        return {group["GroupId"]: tags_of(group) for group in pages}
