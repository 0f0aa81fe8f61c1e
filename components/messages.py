"""Messages of a hook about its resource: every display shows them at the resource, `--json` under its URN."""

from __future__ import annotations

import sys

from pulumi.runtime import settings
from pulumi.runtime.proto import engine_pb2


def info(urn: str, message: str) -> None:
    """Log a message about the resource `urn`."""
    _log(engine_pb2.INFO, urn, message)


def warn(urn: str, message: str) -> None:
    """Log a warning about the resource `urn`."""
    _log(engine_pb2.WARNING, urn, message)


def _log(severity: engine_pb2.LogSeverity.ValueType, urn: str, message: str) -> None:
    # Not `pulumi.log`: that takes a resource and waits for its URN, which is known only after the step.
    engine = settings.get_engine()
    if engine is None:
        print(message, file=sys.stderr)
    else:
        engine.Log(engine_pb2.LogRequest(severity=severity, message=message, urn=urn))
