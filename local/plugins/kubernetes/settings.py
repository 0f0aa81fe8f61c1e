"""The Kubernetes provider's options that this provider supports; others are rejected by name."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from local.plugins.provider import ProviderError
from local.plugins.values import PLACEHOLDER, UNKNOWN, PropertyMap, without_secrets

_IGNORED = frozenset(
    {"version", "pluginDownloadURL", "suppressDeprecationWarnings", "suppressHelmHookWarnings", "kubeClientSettings"}
)
PATCH_FORCE_VARIABLE = "PULUMI_K8S_ENABLE_PATCH_FORCE"
_FLAGS = {
    "deleteUnreachable": "PULUMI_K8S_DELETE_UNREACHABLE",
    "enableConfigMapMutable": "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE",
    "enablePatchForce": PATCH_FORCE_VARIABLE,
    "enableSecretMutable": "PULUMI_K8S_ENABLE_SECRET_MUTABLE",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """`kubeconfig` is YAML text; None: not known, because this run makes the cluster, or secrets are placeholders."""

    kubeconfig: str | None
    context: str | None = None
    namespace: str = "default"
    cluster_identifier: str | None = None
    delete_unreachable: bool = False
    config_map_mutable: bool = False
    patch_force: bool = False
    secret_mutable: bool = False

    def __repr__(self) -> str:
        return "Settings(…)"  # The kubeconfig is a secret.


def parse_settings(config: PropertyMap) -> Settings:
    """The provider's inputs as settings. Raises ProviderError, naming the option."""
    plain: dict[str, Any] = without_secrets(config)
    known = {"kubeconfig", "context", "namespace", "clusterIdentifier", "enableServerSideApply", *_FLAGS, *_IGNORED}
    for key in plain:
        if key not in known and not key.startswith("__"):
            raise ProviderError(f"the Kubernetes provider's option {key} is not supported here")
    if not _flag(plain, "enableServerSideApply", default=True):
        raise ProviderError("enableServerSideApply: this provider only has server-side apply")
    return Settings(
        kubeconfig=_kubeconfig(plain.get("kubeconfig")),
        context=_text(plain, "context"),
        namespace=_text(plain, "namespace") or "default",
        cluster_identifier=_text(plain, "clusterIdentifier") or None,
        delete_unreachable=_flag(plain, "deleteUnreachable"),
        config_map_mutable=_flag(plain, "enableConfigMapMutable"),
        patch_force=_flag(plain, "enablePatchForce"),
        secret_mutable=_flag(plain, "enableSecretMutable"),
    )


def is_other_cluster(old: Settings, new: Settings) -> bool:
    """Whether the two are of different clusters; False while a kubeconfig is unknown.

    `clusterIdentifier` alone decides where it is given: it names the cluster whatever its kubeconfig says. Without it,
    another server or another certificate authority is another cluster, other credentials are not.
    """
    if old.cluster_identifier or new.cluster_identifier:
        return old.cluster_identifier != new.cluster_identifier
    if old.kubeconfig is None or new.kubeconfig is None:
        return False
    return bool(_cluster_entry(old) != _cluster_entry(new))


def _cluster_entry(settings: Settings) -> Any:
    """The kubeconfig's entry of its active cluster; the whole text if it is invalid."""
    try:
        config = yaml.safe_load(settings.kubeconfig or "")
        contexts = {entry["name"]: entry["context"] for entry in config["contexts"]}
        clusters = {entry["name"]: entry["cluster"] for entry in config["clusters"]}
        return clusters[contexts[settings.context or config["current-context"]]["cluster"]]
    except (yaml.YAMLError, KeyError, TypeError):
        return settings.kubeconfig


def _kubeconfig(value: Any) -> str | None:
    if value is UNKNOWN or value == PLACEHOLDER:
        return None
    if isinstance(value, dict):
        return json.dumps(value)
    if not isinstance(value, str) or not value.strip():
        # The CLI would take the user's current context: a run must never hit a cluster by accident.
        raise ProviderError("the Kubernetes provider needs `kubeconfig`; the current context is not used")
    if "\n" in value or value.lstrip().startswith("{"):
        return value
    try:
        return Path(value).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise ProviderError(f"kubeconfig: the file cannot be read: {error.strerror or error}") from None


def _text(plain: dict[str, Any], key: str) -> str | None:
    value = plain.get(key)
    if value is None or isinstance(value, str):
        return value
    if value is UNKNOWN:
        raise ProviderError(f"the Kubernetes provider's option {key} must not depend on an unknown value")
    raise ProviderError(f"the Kubernetes provider's option {key} must be a string")


def _flag(plain: dict[str, Any], key: str, *, default: bool = False) -> bool:
    """Options other than strings arrive as JSON text."""
    value = plain.get(key)
    if value is None and key in _FLAGS:
        value = os.environ.get(_FLAGS[key])
    match value:
        case None | "":
            return default
        case bool():
            return value
        case "true" | "True" | "1":
            return True
        case "false" | "False" | "0":
            return False
        case _:
            raise ProviderError(f"the Kubernetes provider's option {key} must be true or false")
