"""The sample program of the real CLI's recordings, run by the engine's command line, with every call that it makes."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.json_format import MessageToDict

from local.engine import cli
from local.engine.policies.host import PolicyHost
from local.engine.program.monitor import Monitor
from local.engine.providers.dynamic import DynamicProvider
from local.engine.stack.resource import decode
from local.engine.stack.secrets import open_crypter
from tests.local.engine.recordings import (
    PASSPHRASE,
    RECORDINGS,
    SALT,
    SAMPLES,
    Call,
    RecordedKubernetes,
    Recording,
    canonical,
    rewrap,
)

KUBECONFIG = (
    "apiVersion: v1\nkind: Config\n"
    "clusters: [{name: l, cluster: {server: 'https://127.0.0.1:16443', insecure-skip-tls-verify: true}}]\n"
    "users: [{name: a, user: {token: tok}}]\ncontexts: [{name: c, context: {cluster: l, user: a}}]\ncurrent-context: c"
)
FIRST = {"sizes": ["small", "large"]}
CHANGED = {"sizes": ["small", "large", "small"], "level": "debug", "class": "example.com/b"}
FORBIDDEN = {**CHANGED, "sizes": ["small", "huge", "small"]}

_ANALYZER = {"AnalyzeRequest": "Analyzer/Analyze", "AnalyzeStackRequest": "Analyzer/AnalyzeStack"}


@dataclass
class Ran:
    """One run of the sample, with the CLI's recording of it."""

    recording: Recording
    code: int = -1
    text: str = ""
    calls: list[Call] = field(default_factory=list)
    state: list[dict[str, Any]] = field(default_factory=list)

    def find(self, method: str) -> list[Call]:
        return [c for c in self.calls if c.method == method]

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of a run with --json."""
        return [json.loads(line) for line in self.text.splitlines()]


class Sample:
    """The sample program in a folder of its own: the real dynamic provider and policy pack, a recorded Kubernetes."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory / "program"
        self.state_dir = directory / "state"
        shutil.copytree(SAMPLES / "program", self.directory)
        pack = self.directory / "policy" / "PulumiPolicy.yaml"
        # The tests' interpreter has pulumi_policy.
        pack.write_text(pack.read_text().replace("../../.venv", sys.prefix))
        self.current = Ran(Recording("01-preview"))
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
        monkeypatch.setattr(
            cli, "_kubernetes", lambda _: RecordedKubernetes(self.current.recording, self.current.calls)
        )
        self._listen(monkeypatch)

    def _listen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ask_dynamic, ask_analyzer = DynamicProvider.call, PolicyHost._call

        def dynamic(provider: DynamicProvider, method: str, request: Any) -> Any:
            response = ask_dynamic(provider, method, request)
            self._note(f"ResourceProvider/{method}", request, response)
            return response

        def analyzer(host: PolicyHost, method: Any, request: Any, subject: str) -> Any:
            response = ask_analyzer(host, method, request, subject)
            remediates = type(response).__name__ == "RemediateResponse"
            self._note("Analyzer/Remediate" if remediates else _ANALYZER[type(request).__name__], request, response)
            return response

        monkeypatch.setattr(DynamicProvider, "call", dynamic)
        monkeypatch.setattr(PolicyHost, "_call", analyzer)
        for name in ("RegisterResource", "RegisterResourceOutputs"):
            monkeypatch.setattr(Monitor, name, self._listening(name))

    def _listening(self, name: str) -> Any:
        answer = getattr(Monitor, name)

        def call(monitor: Monitor, request: Any, context: Any = None) -> Any:
            response = answer(monitor, request, context)
            self._note(f"ResourceMonitor/{name}", request, response)
            return response

        return call

    def _note(self, method: str, request: Any, response: Any) -> None:
        self.current.calls.append(Call(method, MessageToDict(request), MessageToDict(response)))

    def call(self, *arguments: str) -> tuple[int, str]:
        """The engine's command line on the sample: its exit code and output."""
        out = io.StringIO()
        where = ["--stack", "dev", "--cwd", str(self.directory), "--state", str(self.state_dir)]
        # A process runs one program; here several do, with the same modules.
        sys.modules.pop("machines", None)
        return cli.main([*arguments, *where], out), out.getvalue()

    def run(self, command: str, name: str, config: Mapping[str, Any], *options: str, policies: bool = False) -> Ran:
        """Run it as the CLI was run for the recording of that name."""
        self.configure(config)
        ran = self.current = Ran(Recording(name))
        more = [*options, *(["--policy-pack", str(self.directory / "policy")] if policies else [])]
        ran.code, ran.text = self.call(command, *more, *(["--skip-preview"] if command == "up" else []))
        ran.state = self.export()["deployment"]["resources"]
        return ran

    def configure(self, config: Mapping[str, Any]) -> None:
        crypter = open_crypter(PASSPHRASE, SALT)
        secure = {k: {"secure": crypter.encrypt(v)} for k, v in {"kubeconfig": KUBECONFIG, "token": "s3cret"}.items()}
        stack_file = {"encryptionsalt": SALT, "config": {f"sample:{k}": v for k, v in {**config, **secure}.items()}}
        (self.directory / "Pulumi.dev.yaml").write_text(yaml.safe_dump(stack_file))

    def export(self) -> dict[str, Any]:
        code, text = self.call("stack", "export")
        assert code == 0
        return dict(json.loads(text))


def replay(directory: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Ran]:
    """Every run of the samples, one after the other on the same state, as they were recorded."""
    sample = Sample(directory, monkeypatch)
    runs = {
        "01": sample.run("preview", "01-preview", FIRST, policies=True),
        "02": sample.run("preview", "02-preview-json", FIRST, "--json", policies=True),
        "03": sample.run("up", "03-up", FIRST, policies=True),
        "05": sample.run("up", "05-up-again", FIRST),
        "06": sample.run("preview", "06-preview-change", CHANGED, "--diff"),
        "07": sample.run("preview", "07-preview-change-json", CHANGED, "--json"),
        "08": sample.run("up", "08-up-change", CHANGED),
        "10": sample.run("preview", "10-policy-violation", FORBIDDEN, policies=True),
        "11": sample.run("up", "11-policy-violation-up", FORBIDDEN, policies=True),
        "12": sample.run("refresh", "12-refresh", FORBIDDEN),
        "13": sample.run("destroy", "13-destroy", FORBIDDEN),
    }
    sys.modules.pop("machines", None)
    return runs


def exported(name: str) -> dict[str, Any]:
    """A state that the CLI exported."""
    return dict(json.loads((RECORDINGS / f"{name}.json").read_text()))


VOLATILE = {"created", "modified"}


def readable(document: Mapping[str, Any], *, positions: bool) -> dict[str, Any]:
    """The resources of an export by URN, secrets decrypted, without times and the random ids of provider instances.

    With `positions`, those in the project's own files, which are all that this engine keeps.
    """
    salt = document["deployment"]["secrets_providers"]["state"]["salt"]
    crypter = open_crypter(PASSPHRASE, salt)

    def shown(resource: dict[str, Any]) -> dict[str, Any]:
        kept = {k: v for k, v in resource.items() if k not in VOLATILE}
        for key in ("inputs", "outputs"):
            if key in kept:
                kept[key] = canonical(rewrap(decode(kept[key], crypter)))
        kept["dependencies"] = sorted(kept.get("dependencies") or [])
        kept["propertyDependencies"] = {k: sorted(v) for k, v in (kept.get("propertyDependencies") or {}).items()}
        kept["provider"] = str(resource.get("provider", "")).rpartition("::")[0]
        if resource["type"].startswith("pulumi:providers:"):
            del kept["id"]
        trace = [f["sourcePosition"] for f in kept.pop("stackTrace", ()) if "sourcePosition" in f]
        kept["positions"] = [p for p in (kept.pop("sourcePosition", ""), *trace) if positions and _is_own(p)]
        return kept

    return {r["urn"]: shown(r) for r in document["deployment"]["resources"]}


def _is_own(position: str) -> bool:
    return position.startswith("project:///") and "/../" not in position
