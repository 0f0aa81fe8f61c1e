"""A stack run by Pulumi's real CLI, with its program and its providers in the tests' own process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import grpc
import yaml
from google.protobuf.empty_pb2 import Empty
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2_grpc

from local.plugins.channels import SIZES
from local.plugins.engine_log import EngineLog
from local.plugins.provider import ProviderFactory
from local.plugins.servicer import ProviderServicer, serve
from local.plugins.urn import name_of
from local.plugins.values import SECRET, SIGNATURE, SIMULATED, PropertyMap, Secret
from local.pulumi import toolchain
from tests.integration import refuse_in_fast_test

SALT = "v1:rYQeAYN4PdY=:v1:nOLX8j85G3iqP9Un:4pAdZY0YbZY4lPlFIvps9VF2dowiZw=="
PASSPHRASE = "sample-passphrase"
"""The salt's."""


@cache
def tools() -> toolchain.Toolchain:
    """The CLI."""
    return toolchain.find(print)


def environment(folder: Path) -> dict[str, str]:
    """The variables of a CLI that keeps everything in a folder."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("PULUMI_")},
        **tools().variables,
        "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_DEBUG_COMMANDS": "true",  # `--event-log` is one
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_DIY_BACKEND_GZIP": "false",
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


@dataclass(frozen=True)
class Kept:
    """A resource in the state; a secret output is a Secret, its content left out."""

    urn: str
    type: str
    id: str
    outputs: PropertyMap
    init_errors: tuple[str, ...]

    @property
    def simulated(self) -> bool:
        return SIMULATED in self.outputs


@dataclass(frozen=True)
class Outcome:
    """How a run ended and what it told."""

    ok: bool
    events: list[dict[str, Any]]
    output: str

    @property
    def counts(self) -> dict[str, int]:
        [summary] = [e["summaryEvent"] for e in self.events if "summaryEvent" in e]
        return {op: count for op, count in summary["resourceChanges"].items() if count}

    @property
    def errors(self) -> list[str]:
        return self._told("error")

    @property
    def warnings(self) -> list[str]:
        return self._told("warning")

    @property
    def done(self) -> list[str]:
        steps = [e["resOutputsEvent"]["metadata"] for e in self.events if "resOutputsEvent" in e]
        return [f"{step['op']} {name_of(step['urn'])}" for step in steps]

    def _told(self, severity: str) -> list[str]:
        told = [e["diagnosticEvent"] for e in self.events if "diagnosticEvent" in e]
        return [each["message"].strip() for each in told if each["severity"] == severity]


class StackWithCli:
    """A project `test` with stack `dev` in a folder of its own; programs are functions."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.factories: dict[str, ProviderFactory] = {}
        (directory / "Pulumi.yaml").write_text("name: test\nruntime: python\n")
        (directory / "state").mkdir()
        self.configure({})
        self._call("stack", "init", "dev")

    def configure(self, config: Mapping[str, Any]) -> None:
        """Write the stack file."""
        text = yaml.safe_dump({"encryptionsalt": SALT, "config": dict(config)})
        (self.directory / "Pulumi.dev.yaml").write_text(text)

    def preview(self, program: Callable[[], Any]) -> Outcome:
        return self._run("preview", program)

    def up(self, program: Callable[[], Any]) -> Outcome:
        return self._run("up", program, "--yes", "--skip-preview")

    def refresh(self) -> Outcome:
        return self._run("refresh", lambda: None, "--yes", "--skip-preview")

    def destroy(self) -> Outcome:
        return self._run("destroy", lambda: None, "--yes", "--skip-preview")

    def all(self) -> list[Kept]:
        """The resources of the state."""
        return [
            Kept(r["urn"], r["type"], r.get("id", ""), _hidden(r.get("outputs", {})), tuple(r.get("initErrors", ())))
            for r in self._latest().get("resources", [])
        ]

    def resources(self) -> dict[str, Kept]:
        """The same by name."""
        return {name_of(kept.urn): kept for kept in self.all()}

    def pending(self) -> list[str]:
        """The operations whose outcome the state does not know, by resource."""
        return [name_of(each["resource"]["urn"]) for each in self._latest().get("pending_operations", [])]

    def files(self) -> str:
        """Everything that is on disk for the stack, as one text."""
        found = [*(self.directory / "state").rglob("*"), *self.directory.glob("events*")]
        return "\n".join(path.read_text(errors="replace") for path in sorted(found) if path.is_file())

    def _latest(self) -> dict[str, Any]:
        file = self.directory / "state" / ".pulumi" / "stacks" / "test" / "dev.json"
        return json.loads(file.read_text())["checkpoint"]["latest"] or {}

    def _run(self, command: str, program: Callable[[], Any], *options: str) -> Outcome:
        events = self.directory / "events"
        events.unlink(missing_ok=True)
        with _language_host(program) as host, _providers(self.factories) as providers:
            client = [f"--client=127.0.0.1:{host}", "--exec-kind=auto.inline"]
            done = self._call(
                *(command, "--stack", "dev", "--event-log", str(events), *client, *options),
                PULUMI_DEBUG_PROVIDERS=",".join(f"{package}:{port}" for package, port in providers.items()),
            )
        lines = events.read_text().splitlines() if events.exists() else []
        return Outcome(done.returncode == 0, [json.loads(line) for line in lines], done.stdout + done.stderr)

    def _call(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        refuse_in_fast_test("Pulumi's CLI")
        call = [str(tools().pulumi), *arguments, "--non-interactive", "--cwd", str(self.directory)]
        given = environment(self.directory) | variables
        return subprocess.run(call, env=given, capture_output=True, text=True, check=False, timeout=300)


class _Attached(ProviderServicer):
    """A plugin that runs already: the CLI attaches itself, and configures it for each of its phases."""

    def Attach(self, request: Any, context: Any) -> Any:  # noqa: N802
        del request, context
        return Empty()


@contextmanager
def _language_host(program: Callable[[], Any]) -> Iterator[int]:
    threads = ThreadPoolExecutor(4)
    server = grpc.server(threads, options=SIZES)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageServer(program), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None)
        threads.shutdown()  # a program whose run failed ends after the CLI


@contextmanager
def _providers(factories: Mapping[str, ProviderFactory]) -> Iterator[dict[str, int]]:
    served = {package: serve(_Attached(package, factory, EngineLog())) for package, factory in factories.items()}
    try:
        yield {package: port for package, (_, port) in served.items()}
    finally:
        for server, _ in served.values():
            server.stop(None)


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return Secret(None)
        return {key: _hidden(each) for key, each in value.items()}
    return [_hidden(each) for each in value] if isinstance(value, list) else value
