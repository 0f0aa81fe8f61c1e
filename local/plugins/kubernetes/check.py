"""Completes and validates an object's inputs: normal form, defaults, the automatic name, a Secret's data. Pure."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from typing import Any

from local.plugins.kubernetes.api_types import ApiType
from local.plugins.kubernetes.normal_form import in_normal_form, with_dashes
from local.plugins.kubernetes.wait_for import parse_wait_for
from local.plugins.provider import CheckFailure, CheckResult
from local.plugins.urn import name_of
from local.plugins.values import UNKNOWN, PropertyMap, Secret, Value

AUTONAMED = "pulumi.com/autonamed"
SKIP_AWAIT = "pulumi.com/skipAwait"
WAIT_FOR = "pulumi.com/waitFor"
TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"
PATCH_FORCE = "pulumi.com/patchForce"
PROPAGATION = "pulumi.com/deletionPropagationPolicy"
REPLACE_UNREADY = "pulumi.com/replaceUnready"
NAME_LIMIT = 63
_SUFFIX_BYTES = 4
# Fields that only the API server writes; a manifest read from a server may contain them.
_READ_ONLY = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "uid",
    }
)


def check_inputs(
    urn: str, api: ApiType, olds: PropertyMap, news: PropertyMap, *, namespaced: bool | None, default_namespace: str
) -> CheckResult:
    """The inputs as they will be applied. `namespaced` None: not known yet, so no namespace is added."""
    inputs = in_normal_form(api, with_dashes(without_nulls(news)))
    failures = [
        CheckFailure(key, f"must be {expected!r} for a {api.kind} of {api.api_version}, not {inputs[key]!r}")
        for key, expected in (("apiVersion", api.api_version), ("kind", api.kind))
        if inputs.setdefault(key, expected) != expected and inputs[key] is not UNKNOWN
    ]
    metadata = inputs.setdefault("metadata", {})
    if isinstance(metadata, dict):
        failures += _complete_metadata(urn, olds, metadata, namespaced, default_namespace)
    elif metadata is not UNKNOWN:
        failures.append(CheckFailure("metadata", "must be an object"))
    if (api.group, api.kind) == ("", "Secret"):
        failures += _encode_string_data(inputs)
    return CheckResult(inputs, tuple(failures))


def annotation(inputs: Mapping[str, Any], key: str) -> str:
    """An annotation's value; empty if it is absent, unknown or secret."""
    metadata = inputs.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(key) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else ""


def is_autonamed(inputs: Mapping[str, Any]) -> bool:
    """Whether the engine generated the name."""
    return annotation(inputs, AUTONAMED) == "true"


def without_nulls(value: Value) -> Value:
    """The value without keys whose value is None; elements of lists stay."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if isinstance(value, Secret):
        return Secret(without_nulls(value.value))
    return value


def _complete_metadata(
    urn: str, olds: PropertyMap, metadata: PropertyMap, namespaced: bool | None, default_namespace: str
) -> list[CheckFailure]:
    failures = []
    for key in _READ_ONLY & metadata.keys():
        del metadata[key]
    if "generateName" in metadata:
        failures.append(
            CheckFailure("metadata.generateName", "is not supported: omit metadata.name to get an automatic name")
        )
    name = metadata.get("name")
    if name is None or name == "":
        _set_automatic_name(urn, olds, metadata)
    elif not isinstance(name, str | Secret) and name is not UNKNOWN:
        failures.append(CheckFailure("metadata.name", f"must be a string, not {name!r}"))
    if namespaced and metadata.get("namespace") in (None, ""):
        metadata["namespace"] = default_namespace
    if namespaced is False and metadata.get("namespace") not in (None, ""):
        failures.append(CheckFailure("metadata.namespace", "must be absent: objects of this kind are not namespaced"))
    if wait_for := annotation({"metadata": metadata}, WAIT_FOR):
        try:
            parse_wait_for(wait_for)
        except ValueError as error:
            failures.append(CheckFailure(f'metadata.annotations["{WAIT_FOR}"]', str(error)))
    timeout = annotation({"metadata": metadata}, TIMEOUT_SECONDS)
    if timeout and not timeout.isdecimal():
        key = f'metadata.annotations["{TIMEOUT_SECONDS}"]'
        failures.append(CheckFailure(key, f"must be a whole number of seconds, not {timeout!r}"))
    return failures


def _set_automatic_name(urn: str, olds: PropertyMap, metadata: PropertyMap) -> None:
    annotations = metadata.setdefault("annotations", {})
    if is_autonamed(olds):
        metadata["name"] = olds["metadata"]["name"]
    else:
        suffix = f"-{secrets.token_hex(_SUFFIX_BYTES)}"
        metadata["name"] = name_of(urn)[: NAME_LIMIT - len(suffix)] + suffix
    if isinstance(annotations, dict):
        annotations[AUTONAMED] = "true"


def _encode_string_data(inputs: PropertyMap) -> list[CheckFailure]:
    """Move a Secret's stringData to data, as the API server does, so that both sides compare equal."""
    given = inputs.pop("stringData", {})
    data = inputs.get("data", {})
    hidden = isinstance(given, Secret) or isinstance(data, Secret)
    given = given.value if isinstance(given, Secret) else given
    data = data.value if isinstance(data, Secret) else data
    if given is UNKNOWN or data is UNKNOWN:
        inputs["data"] = UNKNOWN
        return []
    for key, value in (("stringData", given), ("data", data)):
        if not isinstance(value, dict):
            return [CheckFailure(key, "must be an object with a string for each key")]
    wrong = [key for key, value in given.items() if not _is_text(value)]
    if wrong:
        return [CheckFailure(f"stringData.{key}", "must be a string") for key in wrong]
    merged = {key: _canonical(value) for key, value in data.items()} | {k: _encode(v) for k, v in given.items()}
    if merged or "data" in inputs:
        inputs["data"] = Secret(merged) if hidden else merged
    return []


def _is_text(value: Value) -> bool:
    return value is UNKNOWN or isinstance(value.value if isinstance(value, Secret) else value, str)


def _encode(value: Value) -> Value:
    if value is UNKNOWN:
        return value
    if isinstance(value, Secret):
        return Secret(_encode(value.value))
    return base64.b64encode(value.encode()).decode()


def _canonical(value: Value) -> Value:
    """Base64 without the line breaks that the API server drops; invalid base64 stays for the server to reject."""
    if isinstance(value, Secret):
        return Secret(_canonical(value.value))
    try:
        return base64.b64encode(base64.b64decode("".join(value.split()), validate=True)).decode()
    except (AttributeError, ValueError):
        return value
