"""Whether a cloud config of OpenStack is valid."""

from __future__ import annotations

from cloud_controller.clouds.openstack.clouds_yaml import Cloud
from cloud_controller.clouds.openstack.config import parse
from cloud_controller.clouds.openstack.credentials import Named, Password

_UNSEEN = Cloud("https://unseen.invalid/v3", Password(Named("unseen"), "", Named("unseen")))
"""A clouds.yaml is in the CCM's pods, not here."""


def check(text: str) -> None:
    """Raises InvalidConfiguration."""
    # openstack-cloud-controller-manager has no such key; our daemon says at its start that it is missing.
    complete = text if "cluster-id" in text.lower() else f"{text}\n[Global]\ncluster-id = any\n"
    parse(complete, lambda _path, _name: _UNSEEN)
