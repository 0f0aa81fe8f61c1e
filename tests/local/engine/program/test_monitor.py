"""The monitor's answers to the SDK, one remote procedure after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import grpc
import pulumi
import pytest
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, resource_pb2, resource_pb2_grpc
from pulumi.runtime.settings import _LEGACY_FEATURE_MAPPING, get_monitor

from local.engine.events import Diagnostic
from local.engine.program.monitor import FEATURES, MonitorError
from local.engine.program.served import Served

pytestmark = pytest.mark.engine


def asked(stack: Any, ask: Callable[[Any], Any]) -> Any:
    """The monitor's answer to a previewing program."""
    answers: list[Any] = []
    stack.outcome = stack.preview(lambda: answers.append(ask(cast(Any, get_monitor()))))
    return answers[0]


def refused(stack: Any, ask: Callable[[Any], Any]) -> tuple[grpc.StatusCode, str]:
    """The monitor's error."""

    def try_it(monitor: Any) -> tuple[grpc.StatusCode, str]:
        with pytest.raises(MonitorError) as raised:
            ask(monitor)
        return raised.value.code(), raised.value.details()

    return cast("tuple[grpc.StatusCode, str]", asked(stack, try_it))


def test_only_implemented_features_are_advertised() -> None:
    names = {resource_pb2.ResourceMonitorFeature.Name(f).removeprefix("RESOURCE_MONITOR_FEATURE_") for f in FEATURES}
    assert not names & {"PARAMETERIZATION", "STATE_MIGRATIONS", "BYTE_STRING", "CALL_OUTPUT_VALUES"}


@pytest.mark.parametrize("word", [*sorted(_LEGACY_FEATURE_MAPPING), "of tomorrow"])
def test_an_older_sdk_that_asks_feature_by_feature_gets_the_same_answer(stack: Any, word: str) -> None:
    request = resource_pb2.SupportsFeatureRequest(id=word)
    answer = asked(stack, lambda monitor: monitor.SupportsFeature(request))
    assert answer.hasSupport == (_LEGACY_FEATURE_MAPPING.get(word) in FEATURES)


def test_the_program_gets_the_deployments_config(stack: Any) -> None:
    stack.configure({"test:size": "3"})
    info = asked(stack, lambda monitor: monitor.GetDeploymentInfo(None))
    assert (info.project, info.stack, info.organization) == ("test", "dev", "organization")
    assert info.dryRun and dict(info.config) == {"test:size": "3"} and not info.configSecretKeys
    assert tuple(info.supportedFeatures) == FEATURES


@pytest.mark.parametrize(
    ("procedure", "request_", "words"),
    [
        ("Call", resource_pb2.ResourceCallRequest(tok="pkg:index:method"), "methods of remote components"),
        ("RegisterPackage", resource_pb2.RegisterPackageRequest(name="pkg"), "parameterized packages (pkg)"),
        ("ExistsResource", resource_pb2.ExistsResourceRequest(), "ExistsResource"),
    ],
)
def test_an_unsupported_option_is_refused_by_name(stack: Any, procedure: str, request_: Any, words: str) -> None:
    code, details = refused(stack, lambda monitor: getattr(monitor, procedure)(request_))
    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert words in details and "the embedded engine does not support" in details


def test_functions_of_a_provider_that_has_none_are_refused(stack: Any) -> None:
    request = resource_pb2.ResourceInvokeRequest(tok="memory:index:function")
    _, details = refused(stack, lambda monitor: monitor.Invoke(request))
    assert "memory:index:function" in details and "the embedded engine does not support" in details


def test_a_registered_resource_is_found_by_its_urn(stack: Any, kit: Any) -> None:
    found: list[Any] = []

    def program() -> None:
        def ask(urn: str) -> None:
            request = resource_pb2.ResourceInvokeRequest(tok="pulumi:pulumi:getResource")
            request.args.update({"urn": urn})
            found.append(getattr(cast(Any, get_monitor()).Invoke(request), "return"))

        kit.Thing("machine", size=3).urn.apply(ask)

    assert stack.up(program).ok
    assert found[0]["id"] == "machine-a" and found[0]["state"]["size"] == 3


def test_an_unregistered_resource_is_not_found(stack: Any) -> None:
    request = resource_pb2.ResourceInvokeRequest(tok="pulumi:pulumi:getResource")
    request.args.update({"urn": "urn:pulumi:dev::test::a:b:C::none"})
    _, details = refused(stack, lambda monitor: monitor.Invoke(request))
    assert details == "urn:pulumi:dev::test::a:b:C::none is not registered"


def test_outputs_for_an_unregistered_resource_are_an_error(stack: Any) -> None:
    request = resource_pb2.RegisterResourceOutputsRequest(urn="urn:pulumi:dev::test::a:b:C::none")
    _, details = refused(stack, lambda monitor: monitor.RegisterResourceOutputs(request))
    assert "not registered" in details


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"custom_timeouts": pulumi.CustomTimeouts(create="5x")}, "'5x' is not a valid duration"),
        ({"aliases": ["old"]}, "'old' is not a valid URN"),
    ],
)
def test_an_invalid_option_is_reported_with_its_resource(
    stack: Any, kit: Any, options: dict[str, Any], words: str
) -> None:
    outcome = stack.preview(lambda: kit.Thing("machine", pulumi.ResourceOptions(**options)))

    (error,) = [e for e in outcome.events if isinstance(e, Diagnostic) and e.severity == "error"]
    assert not outcome.ok and words in error.message and error.urn.endswith("memory:index:Thing::machine")


def test_a_version_of_the_cli_may_be_required(stack: Any) -> None:
    request = engine_pb2.RequirePulumiVersionRequest(pulumi_version_range=">=3.0.0")
    answer = asked(stack, lambda monitor: monitor.RequirePulumiVersion(request))
    assert answer == engine_pb2.RequirePulumiVersionResponse()


def test_logged_messages_are_shown_and_a_logged_error_fails_the_run(stack: Any) -> None:
    def program() -> None:
        pulumi.log.debug("too much")
        pulumi.log.warn("careful")
        pulumi.log.error("broken")

    outcome = stack.preview(program)
    reported = [(e.severity, e.message) for e in outcome.events if isinstance(e, Diagnostic)]
    assert not outcome.ok and reported == [("warning", "careful"), ("error", "broken")]


def test_errors_and_large_messages_pass_through_grpc(stack: Any) -> None:
    def ask(monitor: Any) -> tuple[grpc.StatusCode, str]:
        served = Served(monitor)
        with grpc.insecure_channel(served.address) as channel:
            engine_pb2_grpc.EngineStub(channel).Log(
                engine_pb2.LogRequest(severity=engine_pb2.WARNING, message="x" * 6_000_000)
            )
            with pytest.raises(grpc.RpcError) as raised:
                resource_pb2_grpc.ResourceMonitorStub(channel).Call(
                    resource_pb2.ResourceCallRequest(tok="pkg:index:method")
                )
        served.close()
        error = cast(Any, raised.value)
        return error.code(), error.details()

    code, details = asked(stack, ask)
    assert code is grpc.StatusCode.UNIMPLEMENTED and "pkg:index:method" in details
    assert [len(message) for message in stack.outcome.warnings] == [6_000_000]
