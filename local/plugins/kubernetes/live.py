"""The state's view of a live object: its outputs, and the inputs as others may have changed them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.plugins.kubernetes.api_types import ApiType
from local.plugins.kubernetes.normal_form import with_dashes, with_underscores
from local.plugins.values import PropertyMap, Secret, Value, has_secrets, without_secrets

FIELD_MANAGER = "__fieldManager"
INITIAL_API_VERSION = "__initialApiVersion"
INPUTS = "__inputs"

_ABSENT = object()
# The keys of elements in lists that several managers may share, in the order in which Kubernetes uses them.
_LIST_KEYS = (
    ("name",),
    ("key",),
    ("mountPath",),
    ("port", "protocol"),
    ("containerPort", "protocol"),
    ("ip",),
    ("uid",),
)


def object_id(obj: Mapping[str, Any]) -> str:
    """The resource's id: `NAMESPACE/NAME`, or `NAME` where there is no namespace."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def split_id(id: str) -> tuple[str | None, str]:
    """Namespace (None: cluster-wide) and name of an id."""
    namespace, _, name = id.rpartition("/")
    return namespace or None, name


def with_namespace(obj: dict[str, Any], namespace: str | None) -> dict[str, Any]:
    """The object (or inputs) in this namespace, unless it has one, or there is none to set."""
    metadata = obj.get("metadata")
    if not namespace or not isinstance(metadata, dict) or metadata.get("namespace"):
        return obj
    return obj | {"metadata": metadata | {"namespace": namespace}}


def to_api(inputs: PropertyMap) -> dict[str, Any]:
    """The inputs for the API server: secrets plain, without Pulumi's own fields.

    An apply without fields leaves no manager, and the object would not be recognised as this resource's: so an object
    that has only a name applies empty annotations, which changes nothing.
    """
    plain: dict[str, Any] = without_secrets(inputs)
    obj = {key: value for key, value in plain.items() if not key.startswith("__")}
    metadata = obj.get("metadata", {})
    if obj.keys() <= {"apiVersion", "kind", "metadata"} and metadata.keys() <= {"name", "namespace"}:
        obj["metadata"] = metadata | {"annotations": {}}
    return obj


def outputs_of(api: ApiType, live: Mapping[str, Any], inputs: PropertyMap, field_manager: str) -> PropertyMap:
    """The outputs of a live object. What was secret in the inputs is secret, and so is a Secret's data always."""
    outputs = {key: with_underscores(_hide_like(value, inputs.get(key))) for key, value in live.items()}
    if (api.group, api.kind) == ("", "Secret"):
        for key in ("data", "stringData"):
            if key in outputs and not isinstance(outputs[key], Secret):
                outputs[key] = Secret(without_secrets(outputs[key]))
    outputs[FIELD_MANAGER] = field_manager
    outputs[INITIAL_API_VERSION] = api.api_version
    outputs[INPUTS] = with_underscores(inputs)
    return outputs


def preview_outputs(outputs: PropertyMap) -> PropertyMap:
    """The outputs of a creation's dry run, without what only the real one determines."""
    shown = {key: value for key, value in outputs.items() if key != "status"}
    metadata = shown.get("metadata")
    if isinstance(metadata, dict):
        shown["metadata"] = {key: value for key, value in metadata.items() if key != "resourceVersion"}
    return shown


def as_kept(given: Value, outputs: Value) -> Value:
    """The inputs without the empty lists and maps that the API server dropped, as its outputs show.

    Pulumi's provider compares with the live object, so that such an input is a change in every run; an empty list that
    the API server writes as null becomes null.
    """
    if isinstance(given, list) and isinstance(outputs, list) and len(given) == len(outputs):
        return [as_kept(value, kept) for value, kept in zip(given, outputs, strict=True)]
    if not isinstance(given, dict) or not isinstance(outputs, dict) or not outputs:
        return given
    present = {key: value for key, value in given.items() if value not in ([], {}) or key in outputs}
    return {k: None if v == [] and outputs[k] is None else as_kept(v, outputs.get(k)) for k, v in present.items()}


def drifted_inputs(inputs: PropertyMap, before: PropertyMap, live: Mapping[str, Any]) -> PropertyMap:
    """The inputs with the values that others changed since `before`, the outputs as last seen.

    What the API server itself writes differently (a quantity, a default) is in `before` already and so is no change.
    Elements that others added to a list with keys are theirs and are left out.
    """
    before = with_dashes(before)
    result = {}
    for key, value in inputs.items():
        changed = _drifted(value, before.get(key, _ABSENT), live.get(key, _ABSENT))
        if changed is not _ABSENT:
            result[key] = changed
    return result


def inputs_from_live(live: Mapping[str, Any]) -> PropertyMap:
    """Inputs for an object that was never declared here: without its status and server-written fields."""
    server_set = {"managedFields", "creationTimestamp", "resourceVersion", "uid", "generation", "selfLink"}
    inputs = {key: value for key, value in live.items() if key != "status"}
    inputs["metadata"] = {key: value for key, value in live["metadata"].items() if key not in server_set}
    return inputs


def _hide_like(output: Value, given: Value) -> Value:
    if isinstance(given, Secret):
        return Secret(without_secrets(output))
    if isinstance(output, dict) and isinstance(given, dict):
        return {key: _hide_like(value, given.get(key)) for key, value in output.items()}
    if isinstance(output, list) and isinstance(given, list) and has_secrets(given):
        # Elements may have moved, so it is unknown which one was secret.
        return Secret(without_secrets(output))
    return output


def _drifted(value: Value, before: Value, live: Value) -> Value:
    if isinstance(value, Secret):
        changed = _drifted(value.value, before, live)
        return changed if changed is _ABSENT else Secret(without_secrets(changed))
    before = before.value if isinstance(before, Secret) else before
    if without_secrets(before) == live:
        return value
    if isinstance(value, dict) and isinstance(live, dict):
        old = before if isinstance(before, dict) else {}
        return drifted_inputs(value, old, live)
    if isinstance(value, list) and isinstance(live, list):
        return _drifted_list(value, before if isinstance(before, list) else [], live)
    return live


def _drifted_list(value: list[Value], before: list[Value], live: list[Value]) -> Value:
    fields = _list_key(value)
    if fields is None:
        if len(value) == len(before) == len(live):
            return [_drifted(v, b, now) for v, b, now in zip(value, before, live, strict=True)]
        return live
    then, now = (_by_key(elements, fields) for elements in (before, live))
    elements = []
    for element in value:
        name = _key_of(element, fields)
        changed = _drifted(element, then.get(name, _ABSENT), now.get(name, _ABSENT))
        if changed is not _ABSENT:
            elements.append(changed)
    return elements


def _list_key(elements: list[Value]) -> tuple[str, ...] | None:
    if not elements or not all(isinstance(element, dict) for element in elements):
        return None
    for fields in _LIST_KEYS:
        if all(fields[0] in element for element in elements):
            names = {_key_of(element, fields) for element in elements}
            if len(names) == len(elements):
                return fields
    return None


def _key_of(element: PropertyMap, fields: tuple[str, ...]) -> tuple[Any, ...]:
    # The protocol's default, so that a port given without one is recognised.
    return tuple(str(element.get(field, "TCP" if field == "protocol" else "")) for field in fields)


def _by_key(elements: list[Value], fields: tuple[str, ...]) -> dict[tuple[Any, ...], Value]:
    return {_key_of(element, fields): element for element in elements if isinstance(element, dict)}
