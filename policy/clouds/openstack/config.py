"""Whether a cloud config of OpenStack is valid."""

from __future__ import annotations

from cloud_controller.clouds.openstack.config import parse


def check(text: str) -> None:
    """Raises InvalidConfiguration. A clouds.yaml that it names is in the CCM's pods, not here."""
    parse(text)
