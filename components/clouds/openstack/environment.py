"""The credentials in the environment of Pulumi's provider for OpenStack, as keys of a cloud config.

Import-light, because every dynamic provider imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cloud_controller.cloud import InvalidConfiguration

_KEYS = {
    "application-credential-id": ("OS_APPLICATION_CREDENTIAL_ID",),
    "application-credential-name": ("OS_APPLICATION_CREDENTIAL_NAME",),
    "application-credential-secret": ("OS_APPLICATION_CREDENTIAL_SECRET",),
    "username": ("OS_USERNAME",),
    "user-id": ("OS_USER_ID",),
    "password": ("OS_PASSWORD",),
    "tenant-id": ("OS_PROJECT_ID", "OS_TENANT_ID"),
    "tenant-name": ("OS_PROJECT_NAME", "OS_TENANT_NAME"),
    "domain-id": ("OS_DOMAIN_ID",),
    "domain-name": ("OS_DOMAIN_NAME",),
    "user-domain-id": ("OS_USER_DOMAIN_ID",),
    "user-domain-name": ("OS_USER_DOMAIN_NAME",),
    "tenant-domain-id": ("OS_PROJECT_DOMAIN_ID",),
    "tenant-domain-name": ("OS_PROJECT_DOMAIN_NAME",),
    "ca-file": ("OS_CACERT",),
}
"""By the key of the cloud config: the variables, the first that is set counts."""
_SECRETS = ("application-credential-secret", "password")
_FILES = ("clouds.yaml", "~/.config/openstack/clouds.yaml", "/etc/openstack/clouds.yaml")
"""Where OpenStack's own clients look."""


def credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """Keys of `[Global]`. Raises InvalidConfiguration where the environment has no credentials."""
    if name := environment.get("OS_CLOUD"):
        cloud = {"use-clouds": "true", "clouds-file": _clouds_file(environment), "cloud": name}
        return {**cloud, **authorities(environment)}
    found = {
        key: value
        for key, variables in _KEYS.items()
        if (value := next((environment[each] for each in variables if environment.get(each)), None))
    }
    if not found.keys() & {*_SECRETS}:
        allowed = "OS_CLOUD, OS_APPLICATION_CREDENTIAL_ID and _SECRET, or OS_USERNAME and OS_PASSWORD with the project"
        raise InvalidConfiguration("environment", "has no credentials of OpenStack", allowed)
    return found


def authorities(environment: Mapping[str, str]) -> dict[str, str]:
    """The key of `[Global]` for a file with the authorities to trust; none where the system's do, or clouds.yaml's."""
    return {"ca-file": file} if (file := environment.get("OS_CACERT")) else {}


def _clouds_file(environment: Mapping[str, str]) -> str:
    places = [environment.get("OS_CLIENT_CONFIG_FILE") or "", *_FILES]
    for place in filter(None, places):
        if (file := Path(place).expanduser()).is_file():
            return str(file.absolute())
    raise InvalidConfiguration("OS_CLOUD", "there is no clouds.yaml", "OS_CLIENT_CONFIG_FILE, or " + ", ".join(_FILES))
