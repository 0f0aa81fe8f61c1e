"""A provider served as a plugin, asked over gRPC as Pulumi's engine asks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc, status_pb2

from local.plugins.engine_log import EngineLog
from local.plugins.provider import (
    CheckFailure,
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffKind,
    DiffRequest,
    DiffResult,
    OutcomeUnknown,
    PartialFailure,
    PropertyDiff,
    ProviderError,
    ReadResult,
    UpdateRequest,
)
from local.plugins.recorder import Recorder
from local.plugins.recorder_values import Rules
from local.plugins.servicer import ProviderServicer, serve
from local.plugins.values import SIMULATED, UNKNOWN, PropertyMap, ResourceReference, Secret
from local.plugins.wire import from_struct, to_struct

URN = "urn:pulumi:dev::test::cloud:index:Disk::disk"
RECORDED = "urn:pulumi:dev::test::cloud:index:Addon::addon"


class Clouds:
    """A provider that answers what the test sets, and remembers what it was asked."""

    accepts_secrets = True
    recorded_types = ("cloud:index:Addon",)

    def __init__(self, config: PropertyMap) -> None:
        self.config = config
        self.recorder = Recorder(config)
        self.asked: list[Any] = []
        self.error: Exception | None = None
        self.outputs: PropertyMap | None = None
        self.difference = DiffResult(None)
        self.failures: tuple[CheckFailure, ...] = ()
        self.found = ReadResult(None, {})
        self.interrupted = False

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        return ("region",) if config.get("region") != self.config.get("region") else ()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        self._ask((urn, olds, news))
        return CheckResult(news, self.failures)

    def diff(self, request: DiffRequest) -> DiffResult:
        self._ask(request)
        return self.difference

    def create(self, request: CreateRequest) -> CreateResult:
        request.report("waiting for hunter2-hunter2")
        self._ask(request)
        return CreateResult("" if request.preview else "d-1", request.inputs if self.outputs is None else self.outputs)

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        self._ask((urn, id, inputs, outputs))
        return self.found

    def update(self, request: UpdateRequest) -> PropertyMap:
        self._ask(request)
        return request.news

    def delete(self, request: DeleteRequest) -> None:
        self._ask(request)

    def invoke(self, token: str, args: PropertyMap) -> PropertyMap:
        self._ask((token, args))
        return {"zone": "a", **args}

    def interrupt(self) -> None:
        self.interrupted = True

    def close(self) -> None:
        pass

    def _ask(self, request: Any) -> None:
        self.asked.append(request)
        if self.error is not None:
            raise self.error


class Log(engine_pb2_grpc.EngineServicer):
    """The engine's log."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802
        del context
        self.told.append(request)
        return Empty()


@dataclass
class Engine:
    """The engine's side of a plugin."""

    address: str
    log: Log
    started: list[grpc.Server] = field(default_factory=list)

    def plugin(self, factory: Any = Clouds, config: PropertyMap | None = None) -> Plugin:
        """A new, configured plugin of package `cloud`."""
        made: list[Any] = []

        def remembering(given: PropertyMap) -> Any:
            made.append(factory(given))
            return made[-1]

        server, port = serve(ProviderServicer("cloud", remembering, EngineLog()))
        self.started.append(server)
        stub: Any = provider_pb2_grpc.ResourceProviderStub(grpc.insecure_channel(f"127.0.0.1:{port}"))
        shaken = stub.Handshake(provider_pb2.ProviderHandshakeRequest(engine_address=self.address))
        assert shaken.accept_secrets and shaken.accept_resources
        stub.Configure(provider_pb2.ConfigureRequest(args=to_struct(config or {})))
        return Plugin(stub, made[-1])

    def said(self, severity: Any) -> list[str]:
        return [request.message for request in self.log.told if request.severity == severity]


@dataclass
class Plugin:
    """A plugin's client, and the provider in it."""

    stub: Any
    provider: Any

    def create(self, inputs: PropertyMap, urn: str = URN, **more: Any) -> Any:
        return self.stub.Create(provider_pb2.CreateRequest(urn=urn, properties=to_struct(inputs), **more))

    def check(self, news: PropertyMap, urn: str = URN) -> Any:
        return self.stub.Check(provider_pb2.CheckRequest(urn=urn, news=to_struct(news)))

    def diff(self, olds: PropertyMap, news: PropertyMap, outputs: PropertyMap | None = None) -> Any:
        state = to_struct(olds if outputs is None else outputs)
        request = provider_pb2.DiffRequest(
            urn=URN, id="d-1", old_inputs=to_struct(olds), olds=state, news=to_struct(news)
        )
        return self.stub.Diff(request)

    def read(self, inputs: PropertyMap, outputs: PropertyMap) -> Any:
        request = provider_pb2.ReadRequest(
            urn=URN, id="d-1", inputs=to_struct(inputs) if inputs else None, properties=to_struct(outputs)
        )
        return self.stub.Read(request)

    def delete(self, outputs: PropertyMap) -> None:
        self.stub.Delete(provider_pb2.DeleteRequest(urn=URN, id="d-1", properties=to_struct(outputs)))

    def invoke(self, token: str, args: PropertyMap) -> PropertyMap:
        response = self.stub.Invoke(provider_pb2.InvokeRequest(tok=token, args=to_struct(args)))
        return from_struct(getattr(response, "return"))


@pytest.fixture
def engine() -> Iterator[Engine]:
    log = Log()
    server = grpc.server(ThreadPoolExecutor(4))
    engine_pb2_grpc.add_EngineServicer_to_server(log, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    engine = Engine(f"127.0.0.1:{port}", log)
    yield engine
    for each in [*engine.started, server]:
        each.stop(None)


@pytest.fixture
def plugin(engine: Engine) -> Plugin:
    return engine.plugin(config={"region": "here", "key": Secret("0123456789")})


def refused(call: Any) -> tuple[grpc.StatusCode, str]:
    """The error of a call."""
    with pytest.raises(grpc.RpcError) as raised:
        call()
    error: Any = raised.value
    return error.code(), error.details()


def test_values_come_and_go_as_the_protocol_has_them(plugin: Plugin) -> None:
    reference = ResourceReference("urn:pulumi:dev::test::cloud:index:Net::net", "n-1")
    inputs = {"password": Secret({"a": [1]}), "size": UNKNOWN, "net": reference, "ratio": 0.5, "tags": {"a": None}}

    made = plugin.create(inputs, preview=True, timeout=7)

    [asked] = plugin.provider.asked
    assert asked.inputs == inputs and asked.preview and asked.timeout == 7
    assert made.id == "" and from_struct(made.properties) == inputs


def test_what_a_provider_of_plain_values_returns_is_as_secret_as_its_inputs(plugin: Plugin) -> None:
    plugin.provider.accepts_secrets = False
    plugin.provider.outputs = {"password": "hunter2", "address": "192.0.2.1"}

    made = plugin.create({"password": Secret("hunter2")})

    assert from_struct(made.properties) == {"password": Secret("hunter2"), "address": "192.0.2.1"}


def test_invalid_inputs_are_told_by_property_without_secrets(plugin: Plugin) -> None:
    plugin.provider.failures = (CheckFailure("size", "hunter2-hunter2 is not a size"),)

    checked = plugin.check({"size": Secret("hunter2-hunter2")})

    [failure] = checked.failures
    assert (failure.property, failure.reason) == ("size", "[secret] is not a size")
    assert from_struct(checked.inputs) == {"size": Secret("hunter2-hunter2")}


def test_an_object_that_is_not_ready_is_in_the_details_of_the_error(plugin: Plugin) -> None:
    plugin.provider.error = PartialFailure("it never became ready", "d-1", {"size": 1})

    with pytest.raises(grpc.RpcError) as raised:
        plugin.create({"size": 1})

    error: Any = raised.value
    status = status_pb2.Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
    failed = provider_pb2.ErrorResourceInitFailed()
    assert status.details[0].Unpack(failed)
    assert (failed.id, [*failed.reasons]) == ("d-1", ["it never became ready"])
    assert from_struct(failed.properties) == {"size": 1}


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        # What the engine takes as a known outcome: all codes but UNKNOWN, INTERNAL, DATA_LOSS (resourceStateAndError).
        (ProviderError("no"), grpc.StatusCode.FAILED_PRECONDITION, "no"),
        (OutcomeUnknown("lost"), grpc.StatusCode.UNKNOWN, "lost"),
        (KeyError("x"), grpc.StatusCode.UNKNOWN, "a bug in the plugin of package cloud: KeyError: 'x'"),
    ],
)
def test_an_error_says_whether_its_outcome_is_known(
    plugin: Plugin, error: Exception, code: grpc.StatusCode, message: str
) -> None:
    plugin.provider.error = error

    assert refused(lambda: plugin.create({})) == (code, message)


@pytest.mark.parametrize("error", [ProviderError, RuntimeError])
@pytest.mark.parametrize("secret", ["hunter2-hunter2", "0123456789"])
def test_no_error_and_no_message_quotes_a_secret(
    plugin: Plugin, engine: Engine, error: type[Exception], secret: str
) -> None:
    plugin.provider.error = error(f"{secret} is wrong")

    _, message = refused(lambda: plugin.create({"password": Secret("hunter2-hunter2")}))

    assert "[secret] is wrong" in message
    told = [request.message for request in engine.log.told]
    assert told and not any("hunter2" in each or secret in each for each in told)


def test_what_a_provider_waits_for_is_the_status_of_its_resource(plugin: Plugin, engine: Engine) -> None:
    plugin.create({"size": 1})

    [told] = engine.log.told
    assert (told.urn, told.message, told.ephemeral) == (URN, "waiting for hunter2-hunter2", True)
    assert told.severity == engine_pb2.INFO


def test_differences_have_the_protocols_kinds(plugin: Plugin) -> None:
    plugin.provider.difference = DiffResult(
        True, ("name",), ("name",), {"name": PropertyDiff(DiffKind.UPDATE_REPLACE, input_diff=False)}, True
    )

    found = plugin.diff({"name": "a"}, {"name": "b"})

    assert found.changes == provider_pb2.DiffResponse.DIFF_SOME and found.deleteBeforeReplace and found.hasDetailedDiff
    assert [*found.replaces] == [*found.diffs] == ["name"]
    assert found.detailedDiff["name"] == provider_pb2.PropertyDiff(kind=provider_pb2.PropertyDiff.UPDATE_REPLACE)


@pytest.mark.parametrize(("changed", "told"), [(None, "DIFF_UNKNOWN"), (False, "DIFF_NONE"), (True, "DIFF_SOME")])
def test_a_provider_may_leave_the_comparison_to_the_engine(plugin: Plugin, changed: bool | None, told: str) -> None:
    plugin.provider.difference = DiffResult(changed)

    assert provider_pb2.DiffResponse.DiffChanges.Name(plugin.diff({}, {}).changes) == told


def test_an_object_that_is_gone_has_no_id(plugin: Plugin) -> None:
    assert plugin.read({"size": 1}, {"size": 1}).id == ""


@pytest.mark.parametrize("inputs", [None, {"size": 2}])
def test_inputs_are_read_where_the_provider_knows_them(plugin: Plugin, inputs: PropertyMap | None) -> None:
    plugin.provider.found = ReadResult("d-1", {"size": 2}, inputs)

    found = plugin.read({"size": 1}, {"size": 1})

    assert found.id == "d-1" and from_struct(found.properties) == {"size": 2}
    assert found.HasField("inputs") is (inputs is not None) and from_struct(found.inputs) == (inputs or {})


@pytest.mark.parametrize(("region", "replaced"), [("here", []), ("there", ["region"])])
def test_a_provider_of_another_place_replaces_the_old_one(plugin: Plugin, region: str, replaced: list[str]) -> None:
    request = provider_pb2.DiffRequest(
        old_inputs=to_struct({"region": "here"}), news=to_struct({"region": region, "x": "y"})
    )

    found = plugin.stub.DiffConfig(request)

    assert [*found.replaces] == replaced and found.changes == provider_pb2.DiffResponse.DIFF_SOME


def test_a_cancelled_run_ends_the_waits(plugin: Plugin) -> None:
    plugin.stub.Cancel(Empty())

    assert plugin.provider.interrupted


def test_functions_are_answered(plugin: Plugin) -> None:
    assert plugin.invoke("cloud:index:getZone", {"a": Secret("b")}) == {"zone": "a", "a": Secret("b")}


@pytest.mark.parametrize(("method", "request_"), [("GetSchema", "GetSchemaRequest"), ("Construct", "ConstructRequest")])
def test_what_only_the_packages_own_provider_has_is_refused_by_name(plugin: Plugin, method: str, request_: str) -> None:
    code, message = refused(lambda: getattr(plugin.stub, method)(getattr(provider_pb2, request_)()))

    assert code is grpc.StatusCode.UNIMPLEMENTED and "package cloud" in message and "own provider" in message


def test_a_configuration_that_the_provider_refuses_is_an_error_without_secrets(engine: Engine) -> None:
    def refusing(config: PropertyMap) -> Any:
        raise ProviderError(f"{config['key'].value} is no key")

    _, message = refused(lambda: engine.plugin(refusing, {"key": Secret("0123456789")}))

    assert message == "[secret] is no key"


def test_simulated_resources_are_said_once_a_run(engine: Engine) -> None:
    plugins = [engine.plugin(Recorder), engine.plugin(Recorder), engine.plugin()]

    for plugin in plugins:
        plugin.check({"size": 1})
        plugin.check({"size": 1}, RECORDED)

    assert engine.said(engine_pb2.WARNING) == [
        "simulated resources, with nothing real behind them: package cloud",
        "simulated resources, with nothing real behind them: cloud:index:Addon",
    ]


def test_simulated_answers_of_functions_are_said(engine: Engine) -> None:
    rules = Rules(functions={"cloud:index:getZone": lambda _, place: {"zone": place.region}})
    plugin = engine.plugin(lambda config: Recorder(config, rules))

    assert [plugin.invoke("cloud:index:getZone", {}) for _ in range(2)] == [{"zone": "simulated-1"}] * 2

    told = "simulated results of functions: cloud:index:getZone; values derived from them are not marked"
    assert engine.said(engine_pb2.WARNING) == [told]


def test_a_recorder_refuses_what_its_own_provider_made(engine: Engine) -> None:
    plugin, state = engine.plugin(Recorder), {"size": 1}
    update = provider_pb2.UpdateRequest(urn=URN, id="d-1", olds=to_struct(state))

    for call in (
        lambda: plugin.diff(state, state),
        lambda: plugin.read(state, state),
        lambda: plugin.delete(state),
        lambda: plugin.stub.Update(update),
    ):
        code, message = refused(call)
        assert code is grpc.StatusCode.FAILED_PRECONDITION and "would only simulate package cloud" in message


def test_what_was_only_recorded_is_replaced_and_no_object_is_deleted_for_it(plugin: Plugin) -> None:
    state = {"size": 1, SIMULATED: True}

    found = plugin.diff({"size": 1}, {"size": 1}, state)
    plugin.delete(state)

    assert found.changes == provider_pb2.DiffResponse.DIFF_SOME and [*found.replaces] == [SIMULATED]
    assert plugin.provider.asked == []


def test_an_object_that_was_found_again_is_not_deleted_as_its_own_predecessor(plugin: Plugin) -> None:
    """A replacement on request (`--replace`): the CLI creates, then deletes, without asking for a difference."""
    made = plugin.create({"size": 1})

    plugin.delete({"size": 1})

    assert made.id == "d-1" and not any(isinstance(asked, DeleteRequest) for asked in plugin.provider.asked)


def test_types_that_cannot_be_managed_here_are_recorded(plugin: Plugin) -> None:
    made = plugin.create({"size": 1}, RECORDED)

    assert from_struct(made.properties)[SIMULATED] is True and plugin.provider.asked == []
