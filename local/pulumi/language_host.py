"""Runs Python programs and policy packs for Pulumi's CLI, where its own `pulumi-language-python` is missing.

The official one comes with the CLI's download, and no registry of Go modules serves it. This one does what `preview`,
`up`, `refresh`, `destroy` and policy packs need; the CLI finds it by its launcher (`local/pulumi/bin`). It finds Python
as the official one does: in the `virtualenv` of Pulumi.yaml or PulumiPolicy.yaml, else on PATH.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final, NoReturn

import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from local.plugins.channels import SIZES, serve_the_cli

EXECUTOR: Final = "pulumi-language-python-exec"
"""Pulumi's own script, on PATH: it runs a program that is given on its command line."""
_SHOWN: Final = 32
"""The script's exit code after it has shown the program's error itself."""
_CHUNK: Final = 1 << 16
_THREADS: Final = 64
"""The program and each policy pack hold one for the whole run."""


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """The part of Pulumi's `LanguageRuntime` service that running needs; code generation is not there."""

    def __init__(self, engine: str) -> None:
        """`engine`: the address of the CLI's engine."""
        self._engine = engine
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._ended = False

    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: N802
        del context
        self._engine = request.engine_address or self._engine
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        del request, context
        return plugin_pb2.PluginInfo()

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:  # noqa: N802
        """None in advance: an environment has the packages of all clouds, and a stack uses those of one."""
        del request, context
        return language_pb2.GetRequiredPackagesResponse()

    def Run(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Run the program; its output goes where ours goes."""
        del context
        folder = request.info.program_directory or request.pwd
        try:
            environment = _environment(request.info, os.environ)
            process = self._start(
                [_python(environment), "-u", _executor(environment), *_arguments(request, self._engine)],
                folder,
                {
                    **environment,
                    "PULUMI_CONFIG": json.dumps(dict(request.config)),
                    "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
                },
            )
        except (HostError, OSError) as error:
            return language_pb2.RunResponse(error=str(error))
        code = self._end(process)
        if code == _SHOWN or self._ended:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"the program ended with exit code {code}" if code else "")

    def RunPlugin(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        """Run a policy pack or a plugin that is a Python program, and pass on what it prints until it ends."""
        given = dict(pair.partition("=")[::2] for pair in request.env)
        folder = request.info.program_directory
        try:
            environment = _environment(request.info, given)
            module = ["-m", "pulumi.policy"] if request.kind == "analyzer" else [folder]
            after = [folder] if request.kind == "analyzer" else []
            command = [_python(environment), "-u", *module, *request.args, *after]
            process = self._start(command, folder, environment, subprocess.PIPE)
        except (HostError, OSError) as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        # The CLI cancels the call to end the plugin.
        context.add_callback(process.terminate)
        yield from _output(process)
        yield language_pb2.RunPluginResponse(exitcode=self._end(process))

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802
        """End what runs: the CLI has been interrupted."""
        del request, context
        self.end()
        return Empty()

    def end(self) -> None:
        """End everything that runs, without a traceback, which SIGINT would cause, and so without an error of it."""
        with self._lock:
            self._ended = True
            for process in self._running:
                process.terminate()

    def _start(
        self, command: Sequence[str], folder: str, environment: Mapping[str, str], output: int | None = None
    ) -> subprocess.Popen[bytes]:
        # A session of its own: the CLI ends us by SIGINT to our process group.
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        with self._lock:
            self._running.add(process)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> int:
        code = process.wait()
        with self._lock:
            self._running.discard(process)
        return code


class HostError(Exception):
    """A program cannot be started; the message says why and what to do."""


def _environment(info: Any, base: Mapping[str, str]) -> dict[str, str]:
    """The variables of a program: its virtual environment first on PATH. Raises HostError if that does not exist."""
    virtualenv = dict(info.options).get("virtualenv")
    if not virtualenv:
        return dict(base)
    folder = Path(os.path.normpath(Path(info.root_directory) / str(virtualenv)))
    if not (folder / "bin" / "python").exists():
        raise HostError(f"the virtual environment {folder} does not exist: create it, or run `make set-up`")
    path = os.pathsep.join([str(folder / "bin"), base.get("PATH", os.defpath)])
    return {**base, "PATH": path, "VIRTUAL_ENV": str(folder)}


def _python(environment: Mapping[str, str]) -> str:
    folder = environment.get("VIRTUAL_ENV")
    return str(Path(folder) / "bin" / "python") if folder else _found("python3", environment)


def _executor(environment: Mapping[str, str]) -> str:
    return _found(EXECUTOR, environment)


def _found(name: str, environment: Mapping[str, str]) -> str:
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        # A script is read by Python, so it needs no permission to execute.
        if (path := Path(folder or ".") / name).is_file():
            return str(path)
    raise HostError(f"{name} is not on PATH: `make pulumi` builds Pulumi's CLI with it")


def _arguments(request: Any, engine: str) -> list[str]:
    named = {
        "monitor": request.monitor_address,
        "engine": engine,
        "project": request.project,
        "stack": request.stack,
        "organization": request.organization,
        "root_directory": request.info.root_directory,
        "pwd": request.pwd,
        "dry_run": "true" if request.dryRun else "false",
        "parallel": str(request.parallel),
    }
    options = [text for name, value in named.items() if value for text in (f"--{name}", value)]
    return [*options, request.info.entry_point or request.program or ".", *request.args]


def _output(process: subprocess.Popen[bytes]) -> Iterator[Any]:
    """What the process prints, on both streams, until it closes them."""
    chunks: SimpleQueue[Any] = SimpleQueue()

    def follow(stream: IO[bytes], response: Callable[[bytes], Any]) -> None:
        while chunk := os.read(stream.fileno(), _CHUNK):
            chunks.put(response(chunk))
        chunks.put(None)

    assert process.stdout is not None and process.stderr is not None
    streams: list[tuple[IO[bytes], Callable[[bytes], Any]]] = [
        (process.stdout, lambda chunk: language_pb2.RunPluginResponse(stdout=chunk)),
        (process.stderr, lambda chunk: language_pb2.RunPluginResponse(stderr=chunk)),
    ]
    for each in streams:
        threading.Thread(target=follow, args=each, daemon=True).start()
    left = len(streams)
    while left:
        if (chunk := chunks.get()) is None:
            left -= 1
        else:
            yield chunk


def main() -> NoReturn:
    """Serve on a free port, which is the first line of the output, until the CLI ends."""
    host = LanguageHost(sys.argv[-1])
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=SIZES)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    serve_the_cli(port, host.end)


if __name__ == "__main__":
    main()
