"""Counts the calls that a process makes to its cloud."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from cloud_controller.cloud_errors import CloudError

_READS = re.compile(r"[\w-]+ (Describe|Get|List)|GET ")
"""On AWS (`elbv2 DescribeTags`) and in a REST API (`GET /v1/machines`)."""


@dataclass
class Calls:
    """An observer of a cloud's calls (`Cloud.observe_calls`). Every attempt counts."""

    made: list[str] = field(default_factory=list)

    def __call__(self, operation: str, _seconds: float, _error: CloudError | None) -> None:
        self.made.append(operation)

    @property
    def counts(self) -> Counter[str]:
        """How often each operation was called."""
        return Counter(self.made)

    def of(self, operation: str) -> int:
        """How often this operation was called."""
        return self.counts[operation]

    @property
    def writes(self) -> Counter[str]:
        """The calls that may have changed something."""
        return Counter(each for each in self.made if not _READS.match(each))

    def clear(self) -> None:
        """Start counting again."""
        self.made.clear()
