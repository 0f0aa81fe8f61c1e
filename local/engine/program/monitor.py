"""The two services that a Pulumi program calls: the resource monitor and the engine's log.

The methods take protobuf requests and raise `MonitorError`, the error that a gRPC client would see; so one object
serves a program in the same process (as `Settings(monitor=...)`) and, through `served.py`, one in another process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, resource_pb2

from local.engine.events import Diagnostic
from local.engine.program.callbacks import CallbackError, Callbacks
from local.engine.program.goal import Goal, goal_of, read_goal_of
from local.engine.program.hooks import Hooks
from local.engine.program.transforms import Transforms
from local.engine.steps.deployment import Deployment
from local.engine.steps.run import Absence, Absent, Reported, StackError
from local.plugins import urn as urns
from local.plugins.paths import PathError
from local.plugins.values import UNKNOWN
from local.plugins.wire import UNKNOWN_TEXT, WireError, from_struct, to_struct

FEATURES: Final = (
    resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
    resource_pb2.RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
    resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_TRANSFORMS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_INVOKE_TRANSFORMS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ERROR_HOOKS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_SENDS_OPTIONS_TO_HOOKS,
)
"""The features reported to the SDK: exactly those implemented here."""

_FEATURE_WORDS: Final = {
    "secrets": resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    "resourceReferences": resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
    "outputValues": resource_pb2.RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES,
    "aliasSpecs": resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    "deletedWith": resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    "replacementTrigger": resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
    "replaceWith": resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    "transforms": resource_pb2.RESOURCE_MONITOR_FEATURE_TRANSFORMS,
    "invokeTransforms": resource_pb2.RESOURCE_MONITOR_FEATURE_INVOKE_TRANSFORMS,
    "parameterization": resource_pb2.RESOURCE_MONITOR_FEATURE_PARAMETERIZATION,
    "resourceHooks": resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS,
    "errorHooks": resource_pb2.RESOURCE_MONITOR_FEATURE_ERROR_HOOKS,
}
"""The names under which an older SDK asks for one feature after the other."""

_REFUSED: Final = {
    "remote": "remote components",
    "packageRef": "parameterized packages",
    "state_migrations": "state migrations",
    "envVarMappings": "env_var_mappings",
}
"""Options that would change the outcome and are not implemented here, by their field in the request."""

_SEVERITIES: Final = {0: "debug", 1: "info", 2: "warning", 3: "error"}


class MonitorError(grpc.RpcError):
    """An error answer, with the methods that the SDK expects of a gRPC error."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self._code = code
        self._details = details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


class Monitor:
    """ResourceMonitor and Engine for one run of a program."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._run = deployment.run
        self._callbacks = Callbacks()
        self._transforms = Transforms(self._callbacks)
        self._hooks = Hooks(self._run, self._callbacks)
        self._run.hooks = self._hooks
        self.crash: BaseException | None = None
        """A fault of the engine itself during an answer; it ends the run."""

    def interrupt(self) -> None:
        """Start nothing new; running steps may finish."""
        self._run.interrupt()

    def close(self) -> None:
        """Disconnect from the program: its functions are no longer called."""
        self._callbacks.close()

    # ResourceMonitor.

    def GetDeploymentInfo(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del request, context
        run = self._run
        return resource_pb2.DeploymentInfo(
            project=run.project,
            stack=run.stack,
            organization="organization",
            config=dict(run.config.values),
            configSecretKeys=sorted(run.config.secret_keys),
            dryRun=run.dry_run,
            parallel=run.parallel,
            supportedFeatures=FEATURES,
        )

    def SupportsFeature(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        return resource_pb2.SupportsFeatureResponse(hasSupport=_FEATURE_WORDS.get(request.id) in FEATURES)

    def RegisterResource(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        with self._answering():
            request = self._transformed(request)
            self._refuse_unknown_options(request)
            goal = self._goal(request)
            try:
                state = self._deployment.register(goal)
            except Absent as absent:
                return self._without(request, absent)
            # The CLI never returns a component's outputs of the last run: the program computes them again.
            outputs = state.outputs if state.custom else {}
            return resource_pb2.RegisterResourceResponse(
                urn=state.urn,
                # The SDK builds a reference `URN::ID` of a provider instance and needs the sentinel for it.
                id=UNKNOWN_TEXT if state.id is UNKNOWN else str(state.id),
                object=to_struct(outputs, secrets=request.acceptSecrets, resources=request.acceptResources),
            )

    def _goal(self, request: Any) -> Goal:
        run = self._run
        try:
            return goal_of(request, run.project_root)
        except (ValueError, WireError) as error:
            urn = urns.make(run.stack, run.project, request.parent, request.type, request.name)
            run.fail(str(error), urn)
            raise Reported(str(error), urn) from error

    def _transformed(self, request: Any) -> Any:
        run = self._run
        if run.closed:
            # Nothing new begins: it will be refused.
            return request
        urn = urns.make(run.stack, run.project, request.parent, request.type, request.name)
        try:
            return self._transforms.of_resource(urn, request)
        except CallbackError as error:
            message = f"a transform failed: {error}"
            run.fail(message, urn)
            raise Reported(message, urn) from error

    def _without(self, request: Any, absent: Absent) -> Any:
        """The answer to a program that continues without the resource: its outputs are unknown."""
        if absent.why is Absence.UNTARGETED:
            return resource_pb2.RegisterResourceResponse(urn=absent.urn, unknown=True)
        if not request.supportsResultReporting:
            raise absent
        return resource_pb2.RegisterResourceResponse(urn=absent.urn, result=resource_pb2.Result.FAIL)

    def RegisterResourceOutputs(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        with self._answering():
            self._deployment.register_outputs(request.urn, from_struct(request.outputs))
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        with self._answering():
            try:
                request = self._transforms.of_invoke(request)
            except CallbackError as error:
                raise StackError(f"a transform of {request.tok} failed: {error}") from error
            args = from_struct(request.args)
            if request.tok == "pulumi:pulumi:getResource":
                found = self._deployment.lookup(args["urn"])
                answer = {"urn": found.urn, "id": found.id, "state": found.outputs, "provider": found.provider}
            else:
                answer = self._deployment.invoke(request.tok, args, request.provider, request.version)
            response = resource_pb2.ResourceInvokeResponse()
            # `return` is a word of Python's own.
            getattr(response, "return").CopyFrom(to_struct(answer))
            return response

    def SignalAndWaitForShutdown(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        """The program has registered everything. While it waits here, hooks of deletions can still be called."""
        del request, context
        self._hooks.complete()
        try:
            self._deployment.finish(complete=True)
        except BaseException as error:
            raise self._crashed(error) from error
        return empty_pb2.Empty()

    def Call(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        raise _unimplemented(f"methods of remote components ({request.tok})")

    def ReadResource(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        with self._answering():
            if request.packageRef:
                raise StackError(f"the embedded engine does not support packageRef {request.packageRef}")
            goal, identity = read_goal_of(request, self._run.project_root)
            try:
                state = self._deployment.read(goal, identity)
            except Absent as absent:
                if absent.why is Absence.UNTARGETED:
                    return resource_pb2.ReadResourceResponse(urn=absent.urn, unknown=True)
                return resource_pb2.ReadResourceResponse(urn=absent.urn, result=resource_pb2.Result.FAIL)
            return resource_pb2.ReadResourceResponse(
                urn=state.urn,
                # The SDK treats an empty one as unknown.
                id="" if state.id is UNKNOWN else str(state.id),
                properties=to_struct(state.outputs, secrets=request.acceptSecrets, resources=request.acceptResources),
            )

    def ExistsResource(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del request, context
        raise _unimplemented("ExistsResource")

    def RegisterStackTransform(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        self._transforms.add_to_stack(request)
        return empty_pb2.Empty()

    def RegisterStackInvokeTransform(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        self._transforms.add_to_invokes(request)
        return empty_pb2.Empty()

    def RegisterResourceHook(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        with self._answering():
            self._hooks.register(request)
        return empty_pb2.Empty()

    def RegisterErrorHook(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        with self._answering():
            self._hooks.register_error_hook(request)
        return empty_pb2.Empty()

    def RegisterPackage(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        raise _unimplemented(f"parameterized packages ({request.name})")

    # Engine.

    def Log(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del context
        severity = _SEVERITIES.get(request.severity, "info")
        # The SDK logs every one of its steps at debug.
        if severity != "debug":
            if severity == "error":
                self._run.failed = True
            self._run.emit(Diagnostic(severity, request.message.rstrip(), request.urn, request.ephemeral))
        return empty_pb2.Empty()

    def RequirePulumiVersion(self, request: Any, context: Any = None) -> Any:  # noqa: N802
        del request, context
        return engine_pb2.RequirePulumiVersionResponse()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except (StackError, WireError, PathError, ValueError) as error:
            raise MonitorError(grpc.StatusCode.UNKNOWN, str(error)) from error
        except BaseException as error:
            raise self._crashed(error) from error

    def _crashed(self, error: BaseException) -> MonitorError:
        """Keep a fault of the engine or of a provider in this process; the runner of the program raises it again.

        The program gets an answer, because it would wait for one forever.
        """
        self._run.failed = True
        self.crash = self.crash or error
        return MonitorError(grpc.StatusCode.UNAVAILABLE, "the engine failed")

    def _refuse_unknown_options(self, request: Any) -> None:
        used = {word for name, word in _REFUSED.items() if getattr(request, name, None)}
        if used:
            message = f"{request.type} {request.name}: the embedded engine does not support {', '.join(sorted(used))}"
            self._run.fail(message)
            raise StackError(message)


def _unimplemented(what: str) -> MonitorError:
    return MonitorError(grpc.StatusCode.UNIMPLEMENTED, f"the embedded engine does not support {what}, only the CLI")
