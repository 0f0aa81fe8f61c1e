"""Transforms: functions of the program that change a registration before the engine reads it.

The resource's own run first, then those of its parents from the nearest upwards, then the stack's; each gets the
properties and options as the one before it returned them. Name, type and parent never change. Unknown and secret
values, and values from other resources, arrive as outputs.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from google.protobuf import struct_pb2
from pulumi.runtime.proto import alias_pb2, callback_pb2, resource_pb2

from local.engine.program.callbacks import Callbacks
from local.engine.program.output_values import Dependencies, as_outputs, dependencies_of

_OPTIONS: Final = {
    "depends_on": "dependencies",
    "protect": "protect",
    "ignore_changes": "ignoreChanges",
    "replace_on_changes": "replaceOnChanges",
    "version": "version",
    "aliases": "aliases",
    "provider": "provider",
    "custom_timeouts": "customTimeouts",
    "plugin_download_url": "pluginDownloadURL",
    "retain_on_delete": "retainOnDelete",
    "deleted_with": "deletedWith",
    "additional_secret_outputs": "additionalSecretOutputs",
    "providers": "providers",
    "plugin_checksums": "pluginChecksums",
    "hooks": "hooks",
    "import": "importId",
    "hide_diff": "hideDiffs",
    "replace_with": "replace_with",
    "replacement_trigger": "replacement_trigger",
}
"""The options of a transform, and their fields in a registration."""


class Transforms:
    """The transforms that a running program has registered. Safe from several threads."""

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks
        self._of_stack: list[callback_pb2.Callback] = []
        self._of_invokes: list[callback_pb2.Callback] = []
        self._own: dict[str, list[callback_pb2.Callback]] = {}
        self._parents: dict[str, str] = {}
        self._lock = threading.Lock()

    def add_to_stack(self, callback: callback_pb2.Callback) -> None:
        """Transform every later registration."""
        with self._lock:
            self._of_stack.append(callback)

    def add_to_invokes(self, callback: callback_pb2.Callback) -> None:
        """Transform every later call of a function."""
        with self._lock:
            self._of_invokes.append(callback)

    def of_resource(
        self, urn: str, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceRequest:
        """The registration after all transforms; the same object if there are none. Raises CallbackError."""
        callbacks = self._for(urn, request)
        if not callbacks:
            return request
        properties, options = request.object, _options_of(request)
        dependencies: Dependencies = {name: list(needs.urns) for name, needs in request.propertyDependencies.items()}
        for callback in callbacks:
            properties = as_outputs(properties, dependencies)
            asked = resource_pb2.TransformRequest(
                type=request.type,
                name=request.name,
                custom=request.custom,
                parent=request.parent,
                properties=properties,
                options=options,
            )
            answer = self._callbacks.call(callback, asked, resource_pb2.TransformResponse)
            properties = answer.properties if answer.HasField("properties") else properties
            options = answer.options if answer.HasField("options") else options
            dependencies = dependencies_of(properties, dependencies)
        return _changed(request, properties, options, dependencies)

    def of_invoke(self, request: resource_pb2.ResourceInvokeRequest) -> resource_pb2.ResourceInvokeRequest:
        """The call after all transforms; the same object if there are none. Raises CallbackError."""
        with self._lock:
            callbacks = list(self._of_invokes)
        if not callbacks:
            return request
        changed = resource_pb2.ResourceInvokeRequest()
        changed.CopyFrom(request)
        for callback in callbacks:
            asked = resource_pb2.TransformInvokeRequest(
                token=changed.tok,
                args=as_outputs(changed.args, {}),
                options=resource_pb2.TransformInvokeOptions(
                    provider=changed.provider,
                    plugin_download_url=changed.pluginDownloadURL,
                    version=changed.version,
                    plugin_checksums=changed.pluginChecksums,
                ),
            )
            answer = self._callbacks.call(callback, asked, resource_pb2.TransformInvokeResponse)
            if answer.HasField("args"):
                changed.args.CopyFrom(answer.args)
            if answer.HasField("options"):
                changed.provider = answer.options.provider
                changed.pluginDownloadURL = answer.options.plugin_download_url
                changed.version = answer.options.version
        return changed

    def _for(self, urn: str, request: resource_pb2.RegisterResourceRequest) -> list[callback_pb2.Callback]:
        with self._lock:
            self._own[urn] = list(request.transforms)
            self._parents[urn] = request.parent
            found: list[callback_pb2.Callback] = []
            above = urn
            while above:
                found += self._own.get(above, ())
                above = self._parents.get(above, "")
            return found + self._of_stack


def _options_of(request: resource_pb2.RegisterResourceRequest) -> resource_pb2.TransformResourceOptions:
    options = resource_pb2.TransformResourceOptions()
    for name, field in _OPTIONS.items():
        _copy(request, field, options, name)
    options.aliases.extend(alias_pb2.Alias(urn=urn) for urn in request.aliasURNs)
    if request.deleteBeforeReplaceDefined:
        options.delete_before_replace = request.deleteBeforeReplace
    return options


def _changed(
    request: resource_pb2.RegisterResourceRequest,
    properties: struct_pb2.Struct,
    options: resource_pb2.TransformResourceOptions,
    dependencies: Dependencies,
) -> resource_pb2.RegisterResourceRequest:
    changed = resource_pb2.RegisterResourceRequest()
    # The program's own message stays as it is: in this process it is the very object that the SDK holds.
    changed.CopyFrom(request)
    changed.object.CopyFrom(properties)
    for name, field in _OPTIONS.items():
        changed.ClearField(field)  # type: ignore[arg-type]
        _copy(options, name, changed, field)
    changed.ClearField("aliasURNs")
    changed.deleteBeforeReplaceDefined = options.HasField("delete_before_replace")
    changed.deleteBeforeReplace = options.delete_before_replace
    changed.ClearField("propertyDependencies")
    for name, urns in dependencies.items():
        changed.propertyDependencies[name].urns.extend(urns)
    needed = {*changed.dependencies, *(urn for urns in dependencies.values() for urn in urns)}
    changed.ClearField("dependencies")
    changed.dependencies.extend(sorted(needed))
    return changed


def _copy(source: Any, field: str, target: Any, name: str) -> None:
    """Copy one field between two kinds of message; an unset one stays unset."""
    descriptor = source.DESCRIPTOR.fields_by_name[field]
    value = getattr(source, field)
    if descriptor.has_presence:
        if not source.HasField(field):
            return
        if descriptor.message_type is not None:
            getattr(target, name).CopyFrom(value)
            return
    elif descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry:
        getattr(target, name).update(value)
        return
    elif not isinstance(value, str | bytes | bool | int | float):
        getattr(target, name).extend(value)
        return
    setattr(target, name, value)
