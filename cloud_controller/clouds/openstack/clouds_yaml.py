"""One cloud of a clouds.yaml, the file that OpenStack's own clients read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from cloud_controller import logs
from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.openstack.credentials import ApplicationCredential, Credentials, Named, Password

_INTERFACES = ("public", "internal", "admin")
_TYPES = ("password", "v3password", "v3applicationcredential")


@dataclass(frozen=True, slots=True)
class Cloud:
    """What it says; empty where it says nothing."""

    auth_url: str | None = None
    credentials: Credentials | None = None
    region: str = ""
    interface: str = "public"
    ca_file: str | None = None


def cloud(text: str, name: str) -> Cloud:
    """The cloud of this name. Raises InvalidConfiguration, which quotes no value."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InvalidConfiguration("clouds.yaml", "not valid YAML") from None
    clouds = content.get("clouds") if isinstance(content, Mapping) else None
    if not isinstance(clouds, Mapping):
        raise InvalidConfiguration("clouds.yaml", "has no `clouds`")
    found = clouds.get(name)
    if not isinstance(found, Mapping) or not isinstance(found.get("auth"), Mapping):
        raise InvalidConfiguration(
            "cloud config: [Global] cloud", "not in the clouds.yaml", ", ".join(map(str, clouds))
        )
    if found.get("verify") is False:
        raise InvalidConfiguration(f"clouds.yaml: {name}: verify", "certificates are always verified", "true")
    kind = str(found.get("auth_type") or "password")
    if kind not in _TYPES or "trust_id" in found["auth"]:
        raise InvalidConfiguration(f"clouds.yaml: {name}: auth_type", "not supported", ", ".join(_TYPES))
    interface = str(found.get("interface") or found.get("endpoint_type") or "public")
    if interface.removesuffix("URL") not in _INTERFACES:
        raise InvalidConfiguration(f"clouds.yaml: {name}: interface", "not a valid value", ", ".join(_INTERFACES))
    ca_file = found.get("cacert")
    return Cloud(
        str(found["auth"].get("auth_url") or "") or None,
        _credentials(name, kind, found["auth"]),
        str(found.get("region_name") or ""),
        interface,
        str(ca_file) if ca_file else None,
    )


def _credentials(name: str, kind: str, auth: Mapping[str, Any]) -> Credentials:
    def of(what: str) -> Named:
        name_key = "username" if what == "user" else f"{what}_name"
        domains = {key: auth.get(f"{what}_domain_{key}") or auth.get(f"domain_{key}") for key in ("id", "name")}
        return Named(auth.get(f"{what}_id"), auth.get(name_key), domains["id"], domains["name"])

    secret_key = "application_credential_secret" if kind == "v3applicationcredential" else "password"
    secret = auth.get(secret_key)
    if not isinstance(secret, str):
        raise InvalidConfiguration(f"clouds.yaml: {name}: auth: {secret_key}", "missing")
    logs.hide(secret)
    if kind == "v3applicationcredential":
        own, its_name = (auth.get(f"application_credential_{key}") for key in ("id", "name"))
        return ApplicationCredential(secret, own, its_name, of("user"))
    return Password(of("user"), secret, of("project"))
