"""Serves a provider as a plugin: Pulumi's `ResourceProvider` service over the interface in `provider.py`.

Secrets, unknowns and resource references come and go as the protocol has them; a provider that returns plain values
gets its outputs wrapped as its inputs were. What its errors and messages quote of secret inputs is masked.

Simulated and real resources never mix: a recorder refuses what its own provider made, and a provider replaces what was
only recorded.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, NoReturn

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from local.plugins.channels import SIZES
from local.plugins.engine_log import EngineLog
from local.plugins.provider import (
    CreateRequest,
    DeleteRequest,
    DiffKind,
    DiffRequest,
    DiffResult,
    Functions,
    Interruptible,
    OutcomeUnknown,
    PartialFailure,
    Provider,
    ProviderError,
    ProviderFactory,
    Report,
    UpdateRequest,
)
from local.plugins.recorder import PartlyRecorded, Recorder
from local.plugins.recorder_values import simulated_config
from local.plugins.secret_texts import masked, masking
from local.plugins.urn import type_of
from local.plugins.values import SIMULATED, PropertyMap, hidden_like
from local.plugins.wire import from_struct, to_struct

_THREADS: Final = 256
"""More than a run has steps at once: a Cancel must not wait for one of them."""
_KINDS: Final = {
    DiffKind.ADD: provider_pb2.PropertyDiff.ADD,
    DiffKind.ADD_REPLACE: provider_pb2.PropertyDiff.ADD_REPLACE,
    DiffKind.DELETE: provider_pb2.PropertyDiff.DELETE,
    DiffKind.DELETE_REPLACE: provider_pb2.PropertyDiff.DELETE_REPLACE,
    DiffKind.UPDATE: provider_pb2.PropertyDiff.UPDATE,
    DiffKind.UPDATE_REPLACE: provider_pb2.PropertyDiff.UPDATE_REPLACE,
}
_CHANGES: Final = {
    None: provider_pb2.DiffResponse.DIFF_UNKNOWN,
    False: provider_pb2.DiffResponse.DIFF_NONE,
    True: provider_pb2.DiffResponse.DIFF_SOME,
}


class ProviderServicer(provider_pb2_grpc.ResourceProviderServicer):
    """One provider instance of a package; Pulumi starts a process for each."""

    def __init__(
        self, package: str, factory: ProviderFactory, log: EngineLog, notice: str = "", *, offline: bool = False
    ) -> None:
        """`notice`: what users must know of this provider. `offline`: unknown settings are simulated in previews."""
        self._package = package
        self._notice = notice
        self._factory = factory
        self._log = log
        self._offline = offline
        self._config: PropertyMap = {}
        self._provider: Provider | None = None
        self._made: set[tuple[str, str]] = set()
        """The URN and id of each object of this run, which may be the one that it replaces."""

    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: N802
        del context
        self._log.connect(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, accept_resources=True)

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        del request, context
        try:
            return plugin_pb2.PluginInfo(version=version(f"pulumi-{self._package}"))
        except PackageNotFoundError:
            return plugin_pb2.PluginInfo()

    def GetSchema(self, request: Any, context: Any) -> NoReturn:  # noqa: N802
        del request
        context.abort(grpc.StatusCode.UNIMPLEMENTED, f"the schema of package {self._package} is in its own provider")
        raise AssertionError

    def Construct(self, request: Any, context: Any) -> NoReturn:  # noqa: N802
        del request
        message = f"components of package {self._package} need its own provider"
        context.abort(grpc.StatusCode.UNIMPLEMENTED, message)
        raise AssertionError

    def CheckConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        del context
        # The engine asks a provider with an unknown setting nothing.
        news = to_struct(simulated_config(from_struct(request.news))) if self._offline else request.news
        return provider_pb2.CheckResponse(inputs=news)

    def DiffConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        with self._answering(context, old, new):
            replaces = self._factory(old).replaced_by(new) if old != new else ()
            return _diff_response(DiffResult(old != new, replaces))

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._config = from_struct(request.args)
        with self._answering(context):
            self._provider = self._factory(self._config)
        if self._notice:
            self._log.say_once(self._notice)
        return provider_pb2.ConfigureResponse(acceptSecrets=True, acceptResources=True, supportsPreview=True)

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        olds, news = from_struct(request.olds), from_struct(request.news)
        with self._answering(context, olds, news):
            provider = self._manager(request.urn)
            if isinstance(provider, Recorder):
                self._say_simulated(request.urn)
            result = provider.check(request.urn, olds, news)
            failures = [
                provider_pb2.CheckFailure(property=failure.property, reason=masked(failure.reason, [olds, news]))
                for failure in result.failures
            ]
            return provider_pb2.CheckResponse(inputs=self._outputs(result.inputs, news), failures=failures)

    def Diff(self, request: Any, context: Any) -> Any:  # noqa: N802
        wanted = DiffRequest(
            urn=request.urn,
            id=request.id,
            old_inputs=from_struct(request.old_inputs),
            old_outputs=from_struct(request.olds),
            news=from_struct(request.news),
            ignore_changes=tuple(request.ignoreChanges),
        )
        with self._answering(context, wanted.old_inputs, wanted.news):
            if SIMULATED in wanted.old_outputs and not isinstance(self._manager(request.urn), Recorder):
                return _diff_response(DiffResult(True, (SIMULATED,)))
            return _diff_response(self._manager(request.urn, wanted.old_outputs).diff(wanted))

    def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        inputs = from_struct(request.properties)
        wanted = CreateRequest(
            urn=request.urn,
            inputs=inputs,
            preview=request.preview,
            timeout=request.timeout,
            report=self._reporter(request.urn, inputs),
        )
        with self._answering(context, inputs):
            made = self._manager(request.urn).create(wanted)
            if not request.preview:
                self._made.add((request.urn, made.id))
            return provider_pb2.CreateResponse(id=made.id, properties=self._outputs(made.outputs, inputs))

    def Read(self, request: Any, context: Any) -> Any:  # noqa: N802
        inputs, outputs = from_struct(request.inputs), from_struct(request.properties)
        with self._answering(context, inputs, outputs):
            found = self._manager(request.urn, outputs).read(request.urn, request.id, inputs, outputs)
            if found.id is None:
                return provider_pb2.ReadResponse()
            given = None if found.inputs is None else self._outputs(found.inputs, inputs)
            properties = self._outputs(found.outputs, {**outputs, **inputs})
            return provider_pb2.ReadResponse(id=found.id, properties=properties, inputs=given)

    def Update(self, request: Any, context: Any) -> Any:  # noqa: N802
        olds, news = from_struct(request.old_inputs), from_struct(request.news)
        wanted = UpdateRequest(
            urn=request.urn,
            id=request.id,
            old_inputs=olds,
            old_outputs=from_struct(request.olds),
            news=news,
            ignore_changes=tuple(request.ignoreChanges),
            preview=request.preview,
            timeout=request.timeout,
            report=self._reporter(request.urn, olds, news),
        )
        with self._answering(context, olds, news):
            outputs = self._manager(request.urn, wanted.old_outputs).update(wanted)
            return provider_pb2.UpdateResponse(properties=self._outputs(outputs, news))

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        inputs, outputs = from_struct(request.old_inputs), from_struct(request.properties)
        wanted = DeleteRequest(
            urn=request.urn,
            id=request.id,
            inputs=inputs,
            outputs=outputs,
            timeout=request.timeout,
            report=self._reporter(request.urn, inputs),
        )
        with self._answering(context, inputs, outputs):
            # A provider that finds what a killed run made also finds an equal object that is to be replaced on request.
            if (request.urn, request.id) not in self._made:
                self._manager(request.urn, outputs).delete(wanted)
        return Empty()

    def Invoke(self, request: Any, context: Any) -> Any:  # noqa: N802
        args = from_struct(request.args)
        with self._answering(context, args):
            provider = self._configured()
            if not isinstance(provider, Functions):
                raise ProviderError(f"the functions of package {self._package} need its own provider")
            answer = provider.invoke(request.tok, args)
            if isinstance(provider, Recorder):
                what = "values derived from them are not marked"
                self._log.warn_once(f"simulated results of functions: {request.tok}; {what}")
            response = provider_pb2.InvokeResponse()
            getattr(response, "return").CopyFrom(to_struct(answer))
            return response

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802
        del request, context
        if isinstance(self._provider, Interruptible):
            self._provider.interrupt()
        return Empty()

    def close(self) -> None:
        """Close the provider."""
        if self._provider is not None:
            self._provider.close()

    def _configured(self) -> Provider:
        if self._provider is None:
            raise ProviderError(f"the provider of package {self._package} has not been configured")
        return self._provider

    def _manager(self, urn: str, outputs: PropertyMap | None = None) -> Provider:
        """What manages a resource; `outputs`: as the state has them, None for what only the program says."""
        provider = self._configured()
        if isinstance(provider, PartlyRecorded) and type_of(urn) in provider.recorded_types:
            provider = provider.recorder
        if isinstance(provider, Recorder) and outputs and SIMULATED not in outputs:
            raise ProviderError(
                f"it exists, but this run would only simulate package {self._package}: manage it with the "
                "provider that created it"
            )
        if outputs and SIMULATED in outputs and not isinstance(provider, Recorder):
            return Recorder(self._config)
        return provider

    def _say_simulated(self, urn: str) -> None:
        whole = isinstance(self._provider, Recorder)
        what = f"package {self._package}" if whole else type_of(urn)
        self._log.warn_once(f"simulated resources, with nothing real behind them: {what}")

    def _outputs(self, outputs: PropertyMap, given: PropertyMap) -> Struct:
        plain = not self._configured().accepts_secrets
        return to_struct(hidden_like(outputs, given) if plain else outputs)

    def _reporter(self, urn: str, *inputs: PropertyMap) -> Report:
        return lambda line: self._log.status(urn, masked(line, [self._config, *inputs]))

    @contextmanager
    def _answering(self, context: grpc.ServicerContext, *inputs: PropertyMap) -> Iterator[None]:
        """Turn exceptions into the protocol's errors, without the inputs' secrets."""
        try:
            with masking(self._config, *inputs):
                yield
        except PartialFailure as failure:
            properties = self._outputs(failure.outputs, inputs[-1])
            context.abort_with_status(_InitFailed(failure.id, properties, str(failure)))
        except OutcomeUnknown as error:
            # The protocol's code for an unknown outcome. After it, as after the next one, the CLI forgets a create.
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except ProviderError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except Exception as error:  # noqa: BLE001 - in one line, masked
            secrets = [self._config, *inputs]
            self._log.debug(masked(traceback.format_exc(), secrets))
            message = f"a bug in the plugin of package {self._package}: {type(error).__name__}: {error}"
            context.abort(grpc.StatusCode.UNKNOWN, masked(message, secrets))


def serve(servicer: ProviderServicer) -> tuple[grpc.Server, int]:
    """A running server, and its port on 127.0.0.1."""
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=SIZES)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


class _InitFailed(grpc.Status):
    """The object exists, but did not become ready: in the details of the status, as Pulumi's engine reads it."""

    def __init__(self, id: str, properties: Struct, reason: str) -> None:
        self.code = grpc.StatusCode.UNKNOWN
        self.details = reason
        status = status_pb2.Status(code=self.code.value[0], message=reason)
        failed = provider_pb2.ErrorResourceInitFailed(id=id, properties=properties, reasons=[reason])
        status.details.add().Pack(failed)
        self.trailing_metadata = (("grpc-status-details-bin", status.SerializeToString()),)


def _diff_response(result: DiffResult) -> Any:
    return provider_pb2.DiffResponse(
        changes=_CHANGES[result.changed],
        replaces=result.replaces,
        diffs=result.diffs,
        deleteBeforeReplace=result.delete_before_replace,
        detailedDiff={
            path: provider_pb2.PropertyDiff(kind=_KINDS[diff.kind], inputDiff=diff.input_diff)
            for path, diff in result.detailed.items()
        },
        hasDetailedDiff=bool(result.detailed),
    )
