"""AWS on one machine: a simulator (moto) with real control planes and machines, and what manages AWS's packages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.clouds import LocalCloud

if TYPE_CHECKING:
    from local.aws.site import AwsSite
    from local.plugins.provider import Provider
    from local.plugins.values import PropertyMap


def _site(state: Path, stack: str, section: Mapping[str, Any]) -> AwsSite:
    from local.aws.site import AwsSite

    region = section.get("region")
    return AwsSite(state, stack, None if region is None else str(region))


def _has_site(state: Path, stack: str) -> bool:
    from local.aws.folder import site_root

    return site_root(state, stack).exists()


def _provider(config: PropertyMap) -> Provider:
    from local.aws.provider.api import is_local
    from local.aws.provider.provider import AwsProvider
    from local.aws.provider.recorded import recorder
    from local.plugins.values import without_secrets

    return (AwsProvider if is_local(without_secrets(config)) else recorder)(config)


CLOUD = LocalCloud(
    name="aws",
    site=_site,
    requires={"simulated": True},
    has_site=_has_site,
    placeholders={
        "cloud-controller:aws": {"endpoint": "https://aws.invalid"},
        "aws:accessKey": {"secure": ""},
        "aws:secretKey": {"secure": ""},
    },
    providers={"aws": _provider},
)
