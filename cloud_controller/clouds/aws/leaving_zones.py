"""Another subnet of a zone: AWS takes it only when the removal of the one that was there is complete.

A network load balancer needs up to three minutes for that, and no call does both (Elastic Load Balancing's user guide
for network load balancers, "Update the Availability Zones"); a classic one answers before it is done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cloud_controller.cloud_errors import CloudError, Postponed
from cloud_controller.clouds.aws.client import error_code

_TAKEN: Final = re.compile(r"Availability Zone that is already associated|multiple subnets in the same AZ")
"""How the two kinds refuse it; the code is that of every configuration that is not valid."""


@contextmanager
def until_free() -> Iterator[None]:
    """Around a call that adds subnets. Raises Postponed where a zone of theirs is not free yet."""
    try:
        yield
    except CloudError as error:
        if error_code(error) != "InvalidConfigurationRequest" or not _TAKEN.search(str(error)):
            raise
        why = (
            "AWS is still removing the old subnet (this can take minutes); the new subnet in its Availability"
            " Zone is added afterwards"
        )
        raise Postponed(f"{why} ({error})") from error.__cause__
