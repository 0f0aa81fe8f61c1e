"""The provider of dynamic resources, over Pulumi's own Python server for them."""

from __future__ import annotations

from typing import Final

from pulumi.runtime.proto import provider_pb2

from local.plugins.dynamic import DynamicChecks, plain_struct
from local.plugins.provider import CreateRequest, CreateResult, DeleteRequest, ProviderError, ReadResult, UpdateRequest
from local.plugins.urn import name_of, type_of
from local.plugins.values import PropertyMap, hidden_like
from local.plugins.wire import from_struct

DEADLINE: Final = "deadline"
"""The input, in seconds, by which a dynamic resource may limit its wait."""
_IMPLEMENTATION: Final = "__provider"
"""The property of every dynamic resource that holds its pickled provider class."""


class DynamicProvider(DynamicChecks):
    """The dynamic resources of one run, over one server."""

    accepts_secrets = False
    supports_preview = False

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        """Nothing: each resource's own diff decides what a change of the stack's config means."""
        del config
        return ()

    def create(self, request: CreateRequest) -> CreateResult:
        bounded = _bounded(request.inputs, request.timeout)
        message = provider_pb2.CreateRequest(
            urn=request.urn,
            properties=plain_struct(bounded),
            timeout=request.timeout,
            name=name_of(request.urn),
            type=type_of(request.urn),
        )
        response = self.call("Create", message)
        if not response.id:
            raise ProviderError("its provider returned no id, so the resource could not be read, changed or deleted")
        return CreateResult(response.id, _unbounded(from_struct(response.properties), bounded, request.inputs))

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        if _IMPLEMENTATION not in inputs and _IMPLEMENTATION not in outputs:
            raise ProviderError("a dynamic resource cannot be imported: only its program knows its provider")
        request = provider_pb2.ReadRequest(
            id=id,
            urn=urn,
            properties=plain_struct(outputs),
            inputs=plain_struct(inputs),
            name=name_of(urn),
            type=type_of(urn),
        )
        response = self.call("Read", request)
        if not response.id:
            return ReadResult(None, {})
        read_inputs = hidden_like(from_struct(response.inputs), inputs) if response.HasField("inputs") else None
        return ReadResult(response.id, from_struct(response.properties), read_inputs)

    def update(self, request: UpdateRequest) -> PropertyMap:
        bounded = _bounded(request.news, request.timeout)
        message = provider_pb2.UpdateRequest(
            id=request.id,
            urn=request.urn,
            olds=plain_struct(request.old_outputs),
            news=plain_struct(bounded),
            old_inputs=plain_struct(request.old_inputs),
            timeout=request.timeout,
            ignoreChanges=list(request.ignore_changes),
            name=name_of(request.urn),
            type=type_of(request.urn),
        )
        return _unbounded(from_struct(self.call("Update", message).properties), bounded, request.news)

    def delete(self, request: DeleteRequest) -> None:
        message = provider_pb2.DeleteRequest(
            id=request.id,
            urn=request.urn,
            properties=plain_struct(_bounded(request.outputs, request.timeout)),
            old_inputs=plain_struct(request.inputs),
            timeout=request.timeout,
            name=name_of(request.urn),
            type=type_of(request.urn),
        )
        self.call("Delete", message)

    def close(self) -> None:
        """Nothing: the run closes the server."""


def _bounded(values: PropertyMap, timeout: float) -> PropertyMap:
    """The values with a `deadline` limited by the timeout.

    Pulumi's server of dynamic resources does not pass a timeout to the provider; so one that waits has such an input.
    """
    deadline = values.get(DEADLINE)
    if not timeout or not isinstance(deadline, int | float) or deadline <= timeout:
        return values
    return {**values, DEADLINE: timeout}


def _unbounded(outputs: PropertyMap, bounded: PropertyMap, inputs: PropertyMap) -> PropertyMap:
    """Outputs with the program's own deadline, so that the next run sees no difference."""
    if bounded is inputs or outputs.get(DEADLINE) != bounded[DEADLINE]:
        return outputs
    return {**outputs, DEADLINE: inputs[DEADLINE]}
