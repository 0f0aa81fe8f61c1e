"""Whether a cloud config of Alibaba Cloud is valid, and which APIs a CCM with it reaches by public addresses."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.clouds.alicloud.config import METADATA, parse
from cloud_controller.clouds.alicloud.endpoints import endpoint
from cloud_controller.clouds.alicloud.names import VERSIONS
from policy.rules import Stack

_PUBLIC_ONLY = "quotas"
"""Has one address, on the internet; without it, the route controller does not know its quota."""


def check(text: str) -> None:
    """Raises InvalidConfiguration."""
    parse(text)


def public_apis(text: str, stack: Stack) -> Iterator[str]:
    """The APIs whose addresses are Alibaba Cloud's own on the internet. Raises InvalidConfiguration."""
    del stack
    config = parse(text)
    for api in VERSIONS:
        url = endpoint(config, api)
        if api not in (METADATA, _PUBLIC_ONLY) and url.endswith(".aliyuncs.com") and "-vpc." not in url:
            yield api
