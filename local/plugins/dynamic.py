"""Pulumi's own Python server of dynamic resources, in a process of its own, and what it says of their inputs.

The server is `python -u -m pulumi.dynamic` with the project's folder as working directory, because provider classes are
pickled by reference and imported from there. It takes plain values only, cannot preview, and gets the stack's whole
config, from which a provider's `configure` takes its credentials.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from local.plugins.channels import open_channel
from local.plugins.dynamic_errors import message_of
from local.plugins.launchers import DYNAMIC
from local.plugins.plugin_process import PluginError, PluginProcess
from local.plugins.provider import CheckFailure, CheckResult, DiffRequest, DiffResult, OutcomeUnknown, ProviderError
from local.plugins.urn import name_of, type_of
from local.plugins.values import PropertyMap, hidden_like, without_secrets
from local.plugins.wire import from_struct, to_struct


class DynamicServer:
    """The server's process. It starts at once, in the background; the first call waits for it."""

    def __init__(
        self,
        project_dir: Path,
        project: str,
        on_line: Callable[[str], None],
        python: str = sys.executable,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._python = python
        self._environment = environment
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
        env = {k: v for k, v in self._environment.items() if k not in ("PULUMI_CONFIG", "PULUMI_CONFIG_PASSPHRASE")}
        env["PULUMI_PROJECT"] = project
        arguments = [self._python, "-u", "-m", "pulumi.dynamic"]
        try:
            process = PluginProcess(arguments, cwd=project_dir, env=env, on_line=on_line)
        except PluginError as error:
            self._started.set_exception(error)
            return
        self._channel = open_channel(f"127.0.0.1:{process.port}")
        stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self._started.set_result((process, stub))


class DynamicChecks:
    """Checks and compares dynamic resources, over one server."""

    def __init__(self, server: DynamicServer, config: PropertyMap) -> None:
        """`config` is the stack's whole config; secrets are wrapped in it."""
        self._server = server
        self._config = config
        self._configured = False
        self._lock = threading.Lock()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        request = provider_pb2.CheckRequest(
            urn=urn, olds=plain_struct(olds), news=plain_struct(news), name=name_of(urn), type=type_of(urn)
        )
        response = self.call("Check", request)
        failures = tuple(CheckFailure(f.property, f.reason) for f in response.failures)
        # The server returns plain values; an input that was secret stays secret.
        return CheckResult(hidden_like(from_struct(response.inputs), news), failures)

    def diff(self, request: DiffRequest) -> DiffResult:
        message = provider_pb2.DiffRequest(
            id=request.id,
            urn=request.urn,
            olds=plain_struct(request.old_outputs),
            news=plain_struct(request.news),
            old_inputs=plain_struct(request.old_inputs),
            ignoreChanges=list(request.ignore_changes),
            name=name_of(request.urn),
            type=type_of(request.urn),
        )
        response = self.call("Diff", message)
        changed = {
            provider_pb2.DiffResponse.DIFF_NONE: False,
            provider_pb2.DiffResponse.DIFF_SOME: True,
        }.get(response.changes)
        return DiffResult(changed, tuple(response.replaces), delete_before_replace=response.deleteBeforeReplace)

    def call(self, method: str, message: Any) -> Any:
        """The answer of the server, which is configured first. Raises ProviderError, OutcomeUnknown."""
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
        variables = {f"{DYNAMIC}:config:{k}": str(without_secrets(v)) for k, v in self._config.items()}
        stub.Configure(
            provider_pb2.ConfigureRequest(
                variables=variables,
                args=to_struct(self._config),
                acceptSecrets=True,
                acceptResources=True,
                sends_old_inputs=True,
                sends_old_inputs_to_delete=True,
            )
        )


def plain_struct(values: PropertyMap) -> Any:
    """Values for the server."""
    return to_struct(values, secrets=False, resources=False)
