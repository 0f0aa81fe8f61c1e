"""A resource as a policy pack sees it, and its form on the wire to the analyzer server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import analyzer_pb2

from local.plugins import wire
from local.plugins.values import PropertyMap, Secret, Value


@dataclass(frozen=True, slots=True)
class AnalyzedOptions:
    """A resource's options, as far as the analyzer protocol carries them. Timeouts are in seconds, 0: not set."""

    protect: bool = False
    ignore_changes: tuple[str, ...] = ()
    delete_before_replace: bool | None = None
    additional_secret_outputs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    create_timeout: float = 0
    update_timeout: float = 0
    delete_timeout: float = 0


@dataclass(frozen=True, slots=True)
class AnalyzedProvider:
    """The provider of an analyzed resource; `properties` are its inputs."""

    type: str
    urn: str
    name: str
    properties: PropertyMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnalyzedResource:
    """A resource as the rules see it: inputs before the step, outputs for the stack's rules."""

    type: str
    urn: str
    name: str
    properties: PropertyMap
    options: AnalyzedOptions = AnalyzedOptions()
    provider: AnalyzedProvider | None = None
    parent: str = ""
    dependencies: tuple[str, ...] = ()
    property_dependencies: Mapping[str, Sequence[str]] = field(default_factory=dict)


def analyze_request(resource: AnalyzedResource, *, internal_keys: bool) -> analyzer_pb2.AnalyzeRequest:
    """The request for one resource. Remediations also get the internal keys, since their answer replaces the inputs."""
    return analyzer_pb2.AnalyzeRequest(
        type=resource.type,
        urn=resource.urn,
        name=resource.name,
        properties=_struct(resource.properties, internal_keys=internal_keys),
        options=_options(resource),
        provider=_provider(resource),
    )


def stack_resource(resource: AnalyzedResource) -> analyzer_pb2.AnalyzerResource:
    """One resource of a request for the whole stack."""
    return analyzer_pb2.AnalyzerResource(
        type=resource.type,
        urn=resource.urn,
        name=resource.name,
        properties=_struct(resource.properties, internal_keys=False),
        options=_options(resource),
        provider=_provider(resource),
        parent=resource.parent,
        dependencies=resource.dependencies,
        propertyDependencies={
            key: analyzer_pb2.AnalyzerPropertyDependencies(urns=urns)
            for key, urns in resource.property_dependencies.items()
            if urns
        },
    )


def _options(resource: AnalyzedResource) -> analyzer_pb2.AnalyzerResourceOptions:
    options = resource.options
    return analyzer_pb2.AnalyzerResourceOptions(
        protect=options.protect,
        ignoreChanges=options.ignore_changes,
        deleteBeforeReplace=bool(options.delete_before_replace),
        deleteBeforeReplaceDefined=options.delete_before_replace is not None,
        additionalSecretOutputs=options.additional_secret_outputs,
        aliases=options.aliases,
        customTimeouts=analyzer_pb2.AnalyzerResourceOptions.CustomTimeouts(
            create=options.create_timeout, update=options.update_timeout, delete=options.delete_timeout
        ),
        parent=resource.parent,
    )


def _provider(resource: AnalyzedResource) -> analyzer_pb2.AnalyzerProviderResource | None:
    provider = resource.provider
    if provider is None:
        return None
    return analyzer_pb2.AnalyzerProviderResource(
        type=provider.type,
        urn=provider.urn,
        name=provider.name,
        properties=_struct(provider.properties, internal_keys=False),
    )


def _struct(properties: PropertyMap, *, internal_keys: bool) -> Struct:
    """As the CLI sends it: secrets marked, references flattened (the server rejects them)."""
    sent = properties if internal_keys else _without_internal_keys(properties)
    return wire.to_struct(sent, resources=False)


def _without_internal_keys(value: Value) -> Value:
    if isinstance(value, dict):
        return {key: _without_internal_keys(item) for key, item in value.items() if not key.startswith("__")}
    if isinstance(value, list):
        return [_without_internal_keys(item) for item in value]
    if isinstance(value, Secret):
        return Secret(_without_internal_keys(value.value))
    return value
