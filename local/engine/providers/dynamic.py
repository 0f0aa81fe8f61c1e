"""The provider of dynamic resources: Pulumi's own Python server for them, in a process of its own.

The server is `python -u -m pulumi.dynamic` with the project's folder as working directory, because provider classes are
pickled by reference and imported from there. It takes plain values only, cannot preview, and gets the stack's whole
config, from which a provider's `configure` takes its credentials.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from local.engine.channels import open_channel
from local.engine.interpreter import Interpreter
from local.engine.providers.dynamic_errors import message_of
from local.engine.providers.plugin_process import PluginError, PluginProcess
from local.engine.providers.provider import (
    CheckFailure,
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    OutcomeUnknown,
    ProviderError,
    ReadResult,
    UpdateRequest,
)
from local.engine.stack.resource import hidden_like
from local.engine.urn import name_of, type_of
from local.engine.values import PropertyMap, without_secrets
from local.engine.wire import from_struct, to_struct

PACKAGE: Final = "pulumi-python"
DEADLINE: Final = "deadline"
"""The input, in seconds, by which a dynamic resource may limit its wait."""
_IMPLEMENTATION: Final = "__provider"
"""The property of every dynamic resource that holds its pickled provider class."""


class DynamicServer:
    """The server's process. It starts at once, in the background; the first call waits for it."""

    def __init__(
        self,
        project_dir: Path,
        project: str,
        on_line: Callable[[str], None],
        interpreter: Interpreter = Interpreter(),  # noqa: B008 - frozen
    ) -> None:
        self._interpreter = interpreter
        self._started: Future[tuple[PluginProcess, Any]] = Future()
        self._channel: grpc.Channel | None = None
        thread = threading.Thread(
            target=self._start, args=(project_dir, project, on_line), name="dynamic-provider", daemon=True
        )
        thread.start()

    def stub(self) -> Any:
        """The server's client; raises ProviderError if it did not start."""
        try:
            return self._started.result()[1]
        except PluginError as error:
            raise ProviderError(f"the dynamic provider did not start: {error}") from error

    def close(self) -> None:
        """End the process."""
        try:
            process, _ = self._started.result()
        except PluginError:
            return
        if self._channel is not None:
            self._channel.close()
        process.stop()

    def _start(self, project_dir: Path, project: str, on_line: Callable[[str], None]) -> None:
        given = self._interpreter.environment()
        env = {k: v for k, v in given.items() if k not in ("PULUMI_CONFIG", "PULUMI_CONFIG_PASSPHRASE")}
        env["PULUMI_PROJECT"] = project
        arguments = [self._interpreter.path, "-u", "-m", "pulumi.dynamic"]
        try:
            process = PluginProcess(arguments, cwd=project_dir, env=env, on_line=on_line)
        except PluginError as error:
            self._started.set_exception(error)
            return
        self._channel = open_channel(f"127.0.0.1:{process.port}")
        stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self._started.set_result((process, stub))


class DynamicProvider:
    """The dynamic resources of one run, over one server."""

    accepts_secrets = False
    supports_preview = False

    def __init__(self, server: DynamicServer, config: PropertyMap, urn: str = "", id: str = "") -> None:
        """`config` is the stack's whole config; secrets are wrapped in it."""
        self._server = server
        self._config = config
        self._identity = {
            "urn": urn,
            "id": id,
            "name": name_of(urn) if urn else "",
            "type": type_of(urn) if urn else "",
        }
        self._configured = False
        self._lock = threading.Lock()

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        """Nothing: each resource's own diff decides what a change of the stack's config means."""
        del config
        return ()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        request = provider_pb2.CheckRequest(
            urn=urn, olds=_plain(olds), news=_plain(news), name=name_of(urn), type=type_of(urn)
        )
        response = self._call("Check", request)
        failures = tuple(CheckFailure(f.property, f.reason) for f in response.failures)
        # The server returns plain values; an input that was secret stays secret.
        return CheckResult(hidden_like(from_struct(response.inputs), news), failures)

    def diff(self, request: DiffRequest) -> DiffResult:
        message = provider_pb2.DiffRequest(
            id=request.id,
            urn=request.urn,
            olds=_plain(request.old_outputs),
            news=_plain(request.news),
            old_inputs=_plain(request.old_inputs),
            ignoreChanges=list(request.ignore_changes),
            name=name_of(request.urn),
            type=type_of(request.urn),
        )
        response = self._call("Diff", message)
        changed = {
            provider_pb2.DiffResponse.DIFF_NONE: False,
            provider_pb2.DiffResponse.DIFF_SOME: True,
        }.get(response.changes)
        return DiffResult(changed, tuple(response.replaces), delete_before_replace=response.deleteBeforeReplace)

    def create(self, request: CreateRequest) -> CreateResult:
        bounded = _bounded(request.inputs, request.timeout)
        message = provider_pb2.CreateRequest(
            urn=request.urn,
            properties=_plain(bounded),
            timeout=request.timeout,
            name=name_of(request.urn),
            type=type_of(request.urn),
        )
        response = self._call("Create", message)
        if not response.id:
            raise ProviderError("its provider returned no id, so the resource could not be read, changed or deleted")
        return CreateResult(response.id, _unbounded(from_struct(response.properties), bounded, request.inputs))

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        if _IMPLEMENTATION not in inputs and _IMPLEMENTATION not in outputs:
            raise ProviderError("a dynamic resource cannot be imported: only its program knows its provider")
        request = provider_pb2.ReadRequest(
            id=id, urn=urn, properties=_plain(outputs), inputs=_plain(inputs), name=name_of(urn), type=type_of(urn)
        )
        response = self._call("Read", request)
        if not response.id:
            return ReadResult(None, {})
        read_inputs = hidden_like(from_struct(response.inputs), inputs) if response.HasField("inputs") else None
        return ReadResult(response.id, from_struct(response.properties), read_inputs)

    def update(self, request: UpdateRequest) -> PropertyMap:
        bounded = _bounded(request.news, request.timeout)
        message = provider_pb2.UpdateRequest(
            id=request.id,
            urn=request.urn,
            olds=_plain(request.old_outputs),
            news=_plain(bounded),
            old_inputs=_plain(request.old_inputs),
            timeout=request.timeout,
            ignoreChanges=list(request.ignore_changes),
            name=name_of(request.urn),
            type=type_of(request.urn),
        )
        return _unbounded(from_struct(self._call("Update", message).properties), bounded, request.news)

    def delete(self, request: DeleteRequest) -> None:
        message = provider_pb2.DeleteRequest(
            id=request.id,
            urn=request.urn,
            properties=_plain(_bounded(request.outputs, request.timeout)),
            old_inputs=_plain(request.inputs),
            timeout=request.timeout,
            name=name_of(request.urn),
            type=type_of(request.urn),
        )
        self._call("Delete", message)

    def close(self) -> None:
        """Nothing: the run closes the server."""

    def _call(self, method: str, message: Any) -> Any:
        stub = self._server.stub()
        try:
            with self._lock:
                if not self._configured:
                    self._configure(stub)
                    self._configured = True
            return getattr(stub, method)(message)
        except grpc.RpcError as error:
            said = message_of(error.details() or str(error.code()))
            if error.code() is grpc.StatusCode.UNKNOWN:
                # The provider's code in the server raised.
                raise ProviderError(said) from None
            raise OutcomeUnknown(f"the dynamic provider's server was lost: {said}") from None

    def _configure(self, stub: Any) -> None:
        variables = {f"{PACKAGE}:config:{k}": str(without_secrets(v)) for k, v in self._config.items()}
        stub.Configure(
            provider_pb2.ConfigureRequest(
                variables=variables,
                args=to_struct(self._config),
                acceptSecrets=True,
                acceptResources=True,
                sends_old_inputs=True,
                sends_old_inputs_to_delete=True,
                **self._identity,
            )
        )


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


def _plain(values: PropertyMap) -> Any:
    return to_struct(values, secrets=False, resources=False)
