"""Runs a program against a monitor that answers at once: `python -m benchmarks.sdk_floor PROJECT`.

The rest is the interpreter, the SDK and the program itself: no engine can be faster than that.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from google.protobuf import empty_pb2
from local.engine.program.monitor import FEATURES
from local.engine.program.runner import ProgramRun, run_in_process
from local.engine.stack.config import resolve
from local.engine.stack.project import load_project, load_stack_file
from pulumi.runtime.proto import engine_pb2, resource_pb2


class Echo:
    """A monitor that returns every resource's inputs as its outputs, at once."""

    def GetDeploymentInfo(self, request: Any) -> Any:  # noqa: N802
        del request
        return resource_pb2.DeploymentInfo(supportedFeatures=FEATURES)

    def SupportsFeature(self, request: Any) -> Any:  # noqa: N802
        del request
        return resource_pb2.SupportsFeatureResponse(hasSupport=True)

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802
        urn = f"urn:pulumi:stack::project::{request.type}::{request.name}"
        return resource_pb2.RegisterResourceResponse(urn=urn, id=request.name, object=request.object)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        del request
        return empty_pb2.Empty()

    def SignalAndWaitForShutdown(self, request: Any) -> Any:  # noqa: N802
        del request
        return empty_pb2.Empty()

    def Log(self, request: Any) -> Any:  # noqa: N802
        del request
        return empty_pb2.Empty()

    def RequirePulumiVersion(self, request: Any) -> Any:  # noqa: N802
        del request
        return engine_pb2.RequirePulumiVersionResponse()

    def interrupt(self) -> None:
        """Ctrl-C ends the process."""


def main(directory: str) -> int:
    """Run the project's program once."""
    project = load_project(Path(directory))
    stack = "benchmark"
    config = resolve(project, load_stack_file(project, stack), None)
    program = ProgramRun(project.name, stack, config, project.main, dry_run=False)
    failure = run_in_process(program, Echo(), print)
    if failure is not None:
        print(failure, file=sys.stderr)
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
