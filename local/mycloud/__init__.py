"""mycloud on one machine: the private cloud's API, with real control planes, machines and load balancers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.clouds import LocalCloud

if TYPE_CHECKING:
    from local.mycloud.site import Site


def _site(state: Path, stack: str, section: Mapping[str, Any]) -> Site:
    from local.mycloud.site import Site

    del stack, section  # all stacks of a checkout share one site
    return Site(state)


CLOUD = LocalCloud(
    name="mycloud",
    site=_site,
    is_default=True,
    placeholders={
        "cloud-controller:mycloud": {
            "endpoint": "https://mycloud.invalid",
            "tokenExpires": (datetime.now(UTC) + timedelta(days=30)).date().isoformat(),
        },
        "cloud-controller:mycloudToken": {"secure": ""},
        "cloud-controller:mycloudControllerToken": {"secure": ""},
    },
)
