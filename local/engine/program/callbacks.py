"""Calls functions of the running program, over gRPC through the callback server of its SDK."""

from __future__ import annotations

import ipaddress
import re
import threading
from pathlib import PurePath
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import Message
from pulumi.runtime.proto import callback_pb2, callback_pb2_grpc

from local.plugins.channels import open_channel

_FRAME: Final = re.compile(r'^  File "(.+)", line (\d+), in (.+)$', re.MULTILINE)

Answer = TypeVar("Answer", bound=Message)


class CallbackError(Exception):
    """A function of the program raised or cannot be reached; the message is one line for people."""


class Callbacks:
    """The clients of one run, one for each callback server. Safe from several threads.

    A call must not come from the thread of the program's event loop, where the function runs. It has no time limit,
    because a hook may wait for anything.
    """

    def __init__(self) -> None:
        self._channels: dict[str, grpc.Channel] = {}
        self._lock = threading.Lock()

    def call(self, callback: callback_pb2.Callback, request: Message, answer: type[Answer]) -> Answer:
        """The answer of the program's function. Raises CallbackError."""
        stub = callback_pb2_grpc.CallbacksStub(self._channel(callback.target))
        invoke = callback_pb2.CallbackInvokeRequest(token=callback.token, request=request.SerializeToString())
        try:
            response = stub.Invoke(invoke)
        except grpc.RpcError as error:
            raise CallbackError(_described(error, callback)) from None
        except ValueError as error:
            # A closed channel raises this.
            raise CallbackError("the run is over") from error
        return answer.FromString(response.response)

    def close(self) -> None:
        """Close the connections; calls that still run in the program are abandoned."""
        with self._lock:
            for channel in self._channels.values():
                channel.close()

    def _channel(self, target: str) -> grpc.Channel:
        with self._lock:
            channel = self._channels.get(target)
            if channel is None:
                _check_local(target)
                channel = self._channels[target] = open_channel(target)
            return channel


def _check_local(target: str) -> None:
    # Inputs are sent in plain text, secrets included.
    host, _, port = target.rpartition(":")
    try:
        local = host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        local = False
    if not local or not port.isdigit():
        raise CallbackError(f"{target or 'an empty address'} is not a callback server on this machine")


def _described(error: Any, callback: callback_pb2.Callback) -> str:
    details = error.details() or ""
    match error.code():
        case grpc.StatusCode.UNAVAILABLE:
            return "the program no longer answers"
        case grpc.StatusCode.UNKNOWN:
            # The SDK's text for an exception: its message and traceback.
            text = details.removeprefix(f"Invoke callback {callback.token} error: ")
            message = re.split(r':\n(?=  File ")', text, maxsplit=1)[0]
            where = [f"{PurePath(file).name}:{line} in {name}" for file, line, name in _FRAME.findall(text)[-1:]]
            return " ".join([*message.split(), *(f"({w})" for w in where)])
        case code:
            return f"{code.name.lower().replace('_', ' ')}: {' '.join(details.split())}"
