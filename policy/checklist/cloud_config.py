"""Rule: the cloud config, which holds the cloud's credentials, is a Secret and not a ConfigMap."""

from __future__ import annotations

import base64
import binascii
import configparser
import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import yaml

from policy import clouds
from policy.objects import dig, items
from policy.rules import HIGH, MANDATORY, ResourceRule
from policy.subjects import CONFIG_MAP, Subject
from policy.unknowns import Problem, first_known
from policy.workloads import IMAGES, Container, containers, flag, of_ccm, pod

_FLAG = "--cloud-config"
# `${PASSWORD}`, `$(PASSWORD)`, `{{ .password }}`: something else fills in the credential later.
_PLACEHOLDER = re.compile(r"\$\{.*\}|\$\(.*\)|\{\{.*\}\}")
_STEMS = "|".join(re.escape(stem) for cloud in clouds.descriptors() for stem in cloud.config_files)
_CLOUD_NAME = re.compile(rf"cloud[-_.]?(conf|provider)|^({_STEMS})\.(json|conf|ya?ml)$", re.I)
# Compared without case and separators: `access-key-secret`, `accessKeySecret` and `AccessKeySecret` are one.
_CREDENTIALS = frozenset(
    {
        "aadclientcertpassword",
        "aadclientsecret",
        "accesskey",
        "accesskeyid",
        "accesskeysecret",
        "apikey",
        "apisecret",
        "apitoken",
        "applicationcredentialsecret",
        "clientsecret",
        "password",
        "privatekey",
        "secretaccesskey",
        "secretid",
        "secretkey",
        "token",
    }
)
# The other keys of a cloud config: where the cluster is.
_PLACES = frozenset(
    {
        "authurl",
        "cloud",
        "clusterid",
        "endpoint",
        "location",
        "networkid",
        "projectid",
        "region",
        "resourcegroup",
        "subnetid",
        "subscriptionid",
        "tenantid",
        "tenantname",
        "vpc",
        "vpcid",
        "vswitchid",
        "zone",
        "zoneid",
    }
)


def problems(subject: Subject) -> Iterator[Problem]:
    """ConfigMaps that are a cloud config with credentials, and CCM workloads that mount theirs from one."""
    if subject.kind == CONFIG_MAP:
        yield partial(_in_text, subject.props)
    else:
        yield from of_ccm(subject, [partial(_in_workload, subject)])


def _in_text(props: Mapping[str, Any]) -> str | None:
    return first_known(
        partial(_in_entry, field, data, key)
        for field, data in (("data", dig(props, "data")), ("binaryData", dig(props, "binaryData")))
        for key in data or ()
    )


def _in_entry(field: str, data: Mapping[str, Any], key: str) -> str | None:
    text = str(data[key])
    found = _credentials(key, text if field == "data" else _decode(text))
    # The keys' names only: a message must never show credentials.
    return f"{field}[{key}] is a cloud config with credentials ({', '.join(found)})" if found else None


def _in_workload(subject: Subject) -> str | None:
    sources = {}
    for volume in items(dig(pod(subject), "volumes")):
        source = _config_map_of(volume)
        if source:
            sources[str(dig(volume, "name"))] = source
    if not sources:
        return None
    return first_known(partial(_in_container, container, sources) for container in containers(subject))


def _in_container(container: Container, sources: Mapping[str, str]) -> str | None:
    spec = container()
    path = flag(spec, _FLAG) or ""
    for mount in items(dig(spec, "volumeMounts")):
        source = sources.get(str(dig(mount, "name")), "")
        mount_path = str(dig(mount, "mountPath")).rstrip("/")
        mounted = path and (path == mount_path or path.startswith(f"{mount_path}/"))
        if source and (mounted or _CLOUD_NAME.search(source)):
            return f"container {dig(spec, 'name')} reads its cloud config from the ConfigMap {source} ({mount_path})"
    return None


def _config_map_of(volume: Mapping[str, Any]) -> str:
    """The ConfigMap that a volume shows, also by projection; empty if none, or if a Secret is projected beside it."""
    sources = [*items(dig(volume, "projected", "sources"))]
    if any(dig(source, "secret") for source in sources):
        return ""
    names = [dig(source, "configMap", "name") for source in (volume, *sources)]
    return str(next(filter(None, names), ""))


def _credentials(key: str, text: str) -> list[str]:
    """The names of the credentials in a text that is a cloud config; nothing for any other text."""
    if not any(word in _plain(text) for word in _CREDENTIALS):
        return []
    settings = [*_settings(text)]
    filled = (name for name, value in settings if _plain(name) in _CREDENTIALS and _is_filled(str(value)))
    found = [*dict.fromkeys(filled)]
    of_a_cloud = bool(_CLOUD_NAME.search(key)) or any(_plain(name) in _PLACES for name, _ in settings)
    return found if of_a_cloud else []


def _settings(text: str) -> Iterator[tuple[str, Any]]:
    """The names and values of an INI, JSON or YAML text, of whatever depth."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        yield from _leaves(_structure(text), set())
        return
    for section in parser.sections():
        yield from parser[section].items()


def _structure(text: str) -> Any:
    """The content of a JSON or YAML text; None where it is neither, or cannot be read (`2024-99-99`, `[[[[…`)."""
    # JSON is YAML, but a megabyte of it takes seconds as such.
    for load in (json.loads, yaml.safe_load):
        try:
            return load(text)
        except (ValueError, yaml.YAMLError, RecursionError):
            continue
    return None


def _leaves(value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    # An anchor can stand for a thousand copies, or for its own parent: visit it once.
    if not isinstance(value, dict | list) or id(value) in seen:
        return
    seen.add(id(value))
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list):
            yield from _leaves(inner, seen)
        elif inner is not None:
            yield str(name), inner


def _is_filled(value: str) -> bool:
    return bool(value.strip()) and not _PLACEHOLDER.fullmatch(value.strip())


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text).decode(errors="replace")
    except binascii.Error:
        return ""


CLOUD_CONFIG_IN_SECRET = ResourceRule(
    "ccm-cloud-config-use-secret",
    problems,
    why=(
        "The cloud config holds the cloud's credentials and belongs in a Secret. Far more identities can read "
        "ConfigMaps, which are not encrypted at rest and are shown in previews."
    ),
    level=MANDATORY,
    settings={"images": IMAGES},
    title="Cloud config in a Secret",
    severity=HIGH,
    lines=["11.1.7"],
    sections="8.1, corrected",
    judges=(
        "A cloud config, which holds the cloud's credentials, is a Secret. The rule reports ConfigMaps with an "
        "entry that parses as INI, JSON or YAML, contains a credential with a value (a token, an access key, a "
        "password …), and is a cloud's by its file name (`cloud.conf`, `azure.json` …) or by another key (region, "
        "endpoint, cluster id …). It also reports a CCM whose `--cloud-config` is in a mounted ConfigMap (but a "
        "ConfigMap that is projected beside a Secret is assumed to hold certificates). A value that is filled in "
        "later (`${PASSWORD}`, `{{ .password }}`) does not count. Messages name keys, never values."
    ),
    tags=["credentials"],
    remedy=(
        "Put the file into a Secret (stringData, from a secret of the stack's config), mount that, delete the "
        "ConfigMap and replace the credentials that it held."
    ),
    url="https://kubernetes.io/docs/concepts/configuration/secret/",
)
