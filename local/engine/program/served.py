"""The monitor as a gRPC server, for a program in another process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from pulumi.runtime.proto import engine_pb2_grpc, resource_pb2_grpc

from local.engine.program.monitor import Monitor, MonitorError
from local.plugins.channels import SIZES


class Served:
    """A monitor that listens on 127.0.0.1, for a program in another process."""

    def __init__(self, monitor: Monitor, workers: int = 64) -> None:
        self._server = grpc.server(
            ThreadPoolExecutor(workers, thread_name_prefix="monitor"),
            options=SIZES,
        )
        servicer: Any = _Servicer(monitor)
        resource_pb2_grpc.add_ResourceMonitorServicer_to_server(servicer, self._server)
        engine_pb2_grpc.add_EngineServicer_to_server(servicer, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def close(self) -> None:
        """Stop listening; running calls are aborted."""
        self._server.stop(None).wait()


class _Servicer(resource_pb2_grpc.ResourceMonitorServicer, engine_pb2_grpc.EngineServicer):
    """Passes calls to the monitor and turns MonitorError into a gRPC error."""

    def __init__(self, monitor: Monitor) -> None:
        for name in dir(monitor):
            if name[0].isupper():
                setattr(self, name, _aborting(getattr(monitor, name)))


def _aborting(method: Callable[[Any], Any]) -> Callable[[Any, grpc.ServicerContext], Any]:
    def call(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(request)
        except MonitorError as error:
            context.abort(error.code(), error.details())

    return call
