"""Calls back to the program: answers, and messages for a failing function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import callback_pb2, callback_pb2_grpc, resource_pb2

from local.engine.program.callbacks import CallbackError, Callbacks

pytestmark = pytest.mark.engine

STACK = """Invoke callback the-token error: no such
   colour: blue:
  File "/home/me/project/__main__.py", line 3, in <module>
    paint()
  File "/home/me/project/paint.py", line 12, in paint
    raise ValueError("no such colour")
"""


class Server(callback_pb2_grpc.CallbacksServicer):
    """A program's callback server; `answer` replaces the function."""

    def __init__(self) -> None:
        self.answer: Callable[[callback_pb2.CallbackInvokeRequest, Any], bytes] = lambda _request, _context: b""
        self._server = grpc.server(
            futures.ThreadPoolExecutor(4),
            options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
        )
        callback_pb2_grpc.add_CallbacksServicer_to_server(self, self._server)
        self.callback = callback_pb2.Callback(
            target=f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}", token="the-token"
        )
        self._server.start()

    def Invoke(self, request: Any, context: Any) -> Any:  # noqa: N802
        return callback_pb2.CallbackInvokeResponse(response=self.answer(request, context))

    def stop(self) -> None:
        self._server.stop(None).wait()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def callbacks() -> Iterator[Callbacks]:
    callbacks = Callbacks()
    yield callbacks
    callbacks.close()


def ask(callbacks: Callbacks, callback: callback_pb2.Callback, errors: tuple[str, ...] = ()) -> Any:
    return callbacks.call(callback, resource_pb2.ErrorHookRequest(errors=errors), resource_pb2.ErrorHookResponse)


def failure(callbacks: Callbacks, callback: callback_pb2.Callback) -> str:
    with pytest.raises(CallbackError) as raised:
        ask(callbacks, callback)
    return str(raised.value)


def test_a_callback_names_the_function_by_its_token_and_passes_the_request(
    server: Server, callbacks: Callbacks
) -> None:
    def answer(request: callback_pb2.CallbackInvokeRequest, _context: Any) -> bytes:
        asked = resource_pb2.ErrorHookRequest.FromString(request.request)
        return resource_pb2.ErrorHookResponse(error=f"{request.token} {list(asked.errors)}").SerializeToString()

    server.answer = answer
    assert ask(callbacks, server.callback, ("one",)).error == "the-token ['one']"


def test_messages_larger_than_grpcs_default_go_both_ways(server: Server, callbacks: Callbacks) -> None:
    server.answer = lambda request, _context: resource_pb2.ErrorHookResponse(
        error="y" * len(request.request)
    ).SerializeToString()
    assert len(ask(callbacks, server.callback, ("x" * 6_000_000,)).error) > 6_000_000


def test_an_exception_is_one_line_with_its_place_and_without_its_traceback(
    server: Server, callbacks: Callbacks
) -> None:
    server.answer = lambda _request, context: context.abort(grpc.StatusCode.UNKNOWN, STACK)
    assert failure(callbacks, server.callback) == "no such colour: blue (paint.py:12 in paint)"


def test_an_error_other_than_an_exception_is_reported_by_its_code(server: Server, callbacks: Callbacks) -> None:
    server.answer = lambda _request, context: context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no such token")
    assert failure(callbacks, server.callback) == "invalid argument: no such token"


def test_a_callback_to_an_ended_program_is_an_error(server: Server, callbacks: Callbacks) -> None:
    server.stop()
    assert failure(callbacks, server.callback) == "the program no longer answers"


@pytest.mark.parametrize("target", ["192.0.2.1:80", "example.com:80", "unix:/tmp/socket", "127.0.0.1", ""])
def test_only_programs_on_this_machine_are_called(target: str, callbacks: Callbacks) -> None:
    assert "is not a callback server on this machine" in failure(callbacks, callback_pb2.Callback(target=target))


def test_a_callback_does_not_use_a_proxy(server: Server, callbacks: Callbacks, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("no_grpc_proxy", raising=False)
    assert ask(callbacks, server.callback).error == ""


def test_no_callbacks_are_made_after_the_run(server: Server, callbacks: Callbacks) -> None:
    ask(callbacks, server.callback)
    callbacks.close()
    assert failure(callbacks, server.callback) == "the run is over"


def test_the_end_of_the_run_ends_a_hanging_callback(server: Server, callbacks: Callbacks) -> None:
    begun, released = threading.Event(), threading.Event()

    def hang(_request: callback_pb2.CallbackInvokeRequest, _context: Any) -> bytes:
        begun.set()
        released.wait(60)
        return b""

    server.answer = hang
    with futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(failure, callbacks, server.callback)
        assert begun.wait(60)
        callbacks.close()
        assert call.result(60)
        released.set()
