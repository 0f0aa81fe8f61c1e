"""The sample program that the real CLI ran: same URNs, same requests to provider and analyzer, same counts, same state.

The dynamic provider and the policy pack are the real servers; the Kubernetes provider answers from the recording.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.json_format import MessageToDict

from local.engine.dynamic import DynamicProvider, DynamicServer
from local.engine.events import Diagnostic, Event, PolicyEvent, StepDone, Summary
from local.engine.operations import Options, destroy, preview, refresh, up
from local.engine.planner import Op
from local.engine.policy_host import PolicyHost
from local.engine.provider import (
    CheckResult,
    CreateResult,
    DiffKind,
    DiffResult,
    PropertyDiff,
    Provider,
    ProviderError,
    ReadResult,
    Report,
)
from local.engine.resource import ResourceState, decode, encode
from local.engine.secrets import open_crypter
from local.engine.session import Request, Session, open_session
from local.engine.values import PropertyMap

pytestmark = pytest.mark.engine

SAMPLES = Path(__file__).parent / "samples"
SALT = "v1:rYQeAYN4PdY=:v1:nOLX8j85G3iqP9Un:4pAdZY0YbZY4lPlFIvps9VF2dowiZw=="
PASSPHRASE = "sample-passphrase"
KUBECONFIG = (
    "apiVersion: v1\nkind: Config\n"
    "clusters: [{name: l, cluster: {server: 'https://127.0.0.1:16443', insecure-skip-tls-verify: true}}]\n"
    "users: [{name: a, user: {token: tok}}]\ncontexts: [{name: c, context: {cluster: l, user: a}}]\ncurrent-context: c"
)
FIRST = {"sizes": ["small", "large"]}
CHANGED = {"sizes": ["small", "large", "small"], "level": "debug", "class": "example.com/b"}
FORBIDDEN = {**CHANGED, "sizes": ["small", "huge", "small"]}


class PlainCrypter:
    """Writes secrets readably, to compare them."""

    def encrypt(self, plaintext: str) -> str:
        return plaintext

    def decrypt(self, ciphertext: str) -> str:
        return ciphertext


class Recording:
    """The calls of one run of the real CLI."""

    def __init__(self, name: str) -> None:
        lines = (SAMPLES / "recordings" / f"{name}.jsonl").read_text().splitlines()
        self.calls = [json.loads(line) for line in lines]
        self.cut_short = name == "11-policy-violation-up"
        """The CLI stopped in the middle of it: what it had not asked by then, we may ask."""

    def find(self, method: str) -> list[dict[str, Any]]:
        return [c for c in self.calls if c["method"] == method]

    def answer(self, method: str, urn: str, **expected: Any) -> dict[str, Any]:
        """The recorded answer to the request of these values; there must be one."""
        asked = [c for c in self.find(f"ResourceProvider/{method}") if c["request"]["urn"] == urn]
        for call in asked:
            if all(canonical(call["request"].get(k) or {}) == canonical(v or {}) for k, v in expected.items()):
                return dict(call["response"] or {})
        if self.cut_short:
            raise ProviderError(f"{method} of {urn} was not recorded")
        raise AssertionError(f"the CLI asked no {method} of {urn} with {expected}, but {[c['request'] for c in asked]}")


def canonical(value: Any) -> Any:
    """Equal for what means the same: whatever differs between two runs, and empty fields, are taken out."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {k: c for k, v in sorted(value.items()) if (c := canonical(v)) not in ({}, [], "", None, False)}
    if isinstance(value, list):
        return [canonical(v) for v in value]
    # The provider's version is that of the SDK that is installed.
    return "VERSION" if isinstance(value, str) and re.fullmatch(r"4\.\d+\.\d+", value) else value


class RecordedKubernetes:
    """A provider that answers what the real one answered, and fails on a request that the CLI never made."""

    accepts_secrets = True
    supports_preview = True

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def _values(self, data: Any) -> PropertyMap:
        return dict(decode(unwrap(data or {}), PlainCrypter()))

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap, *, preview: bool) -> CheckResult:
        del preview
        answer = self._recording.answer("Check", urn, olds=rewrap(olds), news=rewrap(news))
        return CheckResult(self._values(answer["inputs"]))

    def diff(
        self,
        urn: str,
        id: str,
        old_inputs: PropertyMap,
        old_outputs: PropertyMap,
        news: PropertyMap,
        ignore_changes: Sequence[str],
    ) -> DiffResult:
        del ignore_changes
        answer = self._recording.answer(
            "Diff", urn, id=id, oldInputs=rewrap(old_inputs), olds=rewrap(old_outputs), news=rewrap(news)
        )
        detailed = {
            path: PropertyDiff(DiffKind(str(d.get("kind", "ADD")).lower().replace("_", "-")), bool(d.get("inputDiff")))
            for path, d in (answer.get("detailedDiff") or {}).items()
        }
        return DiffResult(
            answer["changes"] == "DIFF_SOME",
            tuple(answer.get("replaces") or ()),
            tuple(answer.get("diffs") or ()),
            detailed,
            bool(answer.get("deleteBeforeReplace")),
        )

    def create(self, urn: str, inputs: PropertyMap, *, preview: bool, timeout: float, report: Report) -> CreateResult:
        del timeout, report
        answer = self._recording.answer("Create", urn, properties=rewrap(inputs), preview=preview)
        return CreateResult(answer.get("id", ""), self._values(answer["properties"]))

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        answer = self._recording.answer("Read", urn, id=id, inputs=rewrap(inputs), properties=rewrap(outputs))
        return ReadResult(answer["id"], self._values(answer["properties"]), self._values(answer["inputs"]))

    def update(self, urn: str, *_: Any, **__: Any) -> PropertyMap:
        raise AssertionError(f"the CLI updated nothing of Kubernetes, here {urn}")

    def delete(
        self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap, *, timeout: float, report: Report
    ) -> None:
        del timeout, report
        self._recording.answer("Delete", urn, id=id, oldInputs=rewrap(inputs), properties=rewrap(outputs))

    def close(self) -> None:
        pass


SIGNATURE, SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"


def unwrap(value: Any) -> Any:
    """The wire's secrets as the state writes them."""
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return {SIGNATURE: SECRET, "ciphertext": json.dumps(value["value"])}
        return {k: unwrap(v) for k, v in value.items()}
    return [unwrap(v) for v in value] if isinstance(value, list) else value


def rewrap(value: Any) -> Any:
    """The engine's values as the wire writes them."""

    def back(data: Any) -> Any:
        if isinstance(data, dict):
            if data.get(SIGNATURE) == SECRET:
                return {SIGNATURE: SECRET, "value": json.loads(data["ciphertext"])}
            return {k: back(v) for k, v in data.items()}
        return [back(v) for v in data] if isinstance(data, list) else data

    return back(encode(value, PlainCrypter()))


class Providers:
    """The real dynamic provider, and the recorded Kubernetes."""

    def __init__(self, session: Session, on_line: Callable[[str], None], recording: Recording) -> None:
        self._server = DynamicServer(session.project.main, session.project.name, on_line)
        self._recording = recording

    def factories(self) -> Mapping[str, Callable[[ResourceState], Provider]]:
        return {
            "pulumi-python": lambda r: DynamicProvider(self._server, r.inputs, r.urn, str(r.id)),
            "kubernetes": lambda _: RecordedKubernetes(self._recording),
        }

    def close(self) -> None:
        self._server.close()


@dataclass
class Ran:
    """One run of the sample, beside the CLI's recording of it."""

    recording: Recording
    ok: bool = False
    dynamic: list[tuple[str, Any]] = field(default_factory=list)
    analyzer: list[tuple[str, Any]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    state: list[dict[str, Any]] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        summary = next(e for e in self.events if isinstance(e, Summary))
        return {str(op): n for op, n in summary.changes.items() if op is not Op.DELETE_REPLACED}

    @property
    def errors(self) -> list[str]:
        return [e.message for e in self.events if isinstance(e, Diagnostic) and e.severity == "error"]

    @property
    def urns(self) -> set[str]:
        return {e.step.urn for e in self.events if isinstance(e, StepDone)}

    @property
    def findings(self) -> dict[str, str]:
        return {e.finding.policy: e.finding.level for e in self.events if isinstance(e, PolicyEvent)}


Operation = Callable[[Request, Options, Callable[[Event], None]], bool]


class Sample:
    """The sample program in a folder of its own, with what is asked of its servers."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory / "program"
        shutil.copytree(SAMPLES / "program", self.directory)
        pack = self.directory / "policy" / "PulumiPolicy.yaml"
        # The tests' interpreter has pulumi_policy.
        pack.write_text(pack.read_text().replace("../../.venv", sys.prefix))
        self.request = Request(self.directory, "dev", directory / "state")
        self.current = Ran(Recording("01-preview"))
        ask_dynamic, ask_analyzer = DynamicProvider._call, PolicyHost._call

        def call_dynamic(provider: DynamicProvider, method: str, request: Any) -> Any:
            self.current.dynamic.append((method, MessageToDict(request)))
            return ask_dynamic(provider, method, request)

        def call_analyzer(host: PolicyHost, method: Any, request: Any, subject: str) -> Any:
            self.current.analyzer.append((type(request).__name__, MessageToDict(request)))
            return ask_analyzer(host, method, request, subject)

        monkeypatch.setattr(DynamicProvider, "_call", call_dynamic)
        monkeypatch.setattr(PolicyHost, "_call", call_analyzer)

    def run(self, operation: Operation, name: str, config: Mapping[str, Any], *, policies: bool = False) -> Ran:
        """Run it as the CLI was run for the recording of that name."""
        crypter = open_crypter(PASSPHRASE, SALT)
        secure = {k: {"secure": crypter.encrypt(v)} for k, v in {"kubeconfig": KUBECONFIG, "token": "s3cret"}.items()}
        stack_file = {"encryptionsalt": SALT, "config": {f"sample:{k}": v for k, v in {**config, **secure}.items()}}
        (self.directory / "Pulumi.dev.yaml").write_text(yaml.safe_dump(stack_file))
        ran = self.current = Ran(Recording(name))
        # A process runs one program; here several do, with the same modules.
        sys.modules.pop("machines", None)
        packs = [(self.directory / "policy", None)] if policies else []
        options = Options(lambda session, line: Providers(session, line, ran.recording), packs)
        ran.ok = operation(self.request, options, ran.events.append)
        document = open_session(self.request, writable=False).store.export()
        ran.state = list(document["deployment"]["resources"])
        return ran


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ran]]:
    """Every run of the samples, one after the other on the same state, as they were recorded."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
        sample = Sample(tmp_path_factory.mktemp("sample"), monkeypatch)
        yield {
            "01": sample.run(preview, "01-preview", FIRST, policies=True),
            "03": sample.run(up, "03-up", FIRST, policies=True),
            "05": sample.run(up, "05-up-again", FIRST),
            "06": sample.run(preview, "06-preview-change", CHANGED),
            "08": sample.run(up, "08-up-change", CHANGED),
            "10": sample.run(preview, "10-policy-violation", FORBIDDEN, policies=True),
            "11": sample.run(up, "11-policy-violation-up", FORBIDDEN, policies=True),
            "12": sample.run(refresh, "12-refresh", FORBIDDEN),
            "13": sample.run(destroy, "13-destroy", FORBIDDEN),
        }
        sys.modules.pop("machines", None)


# Names of what differs between two runs, and of what only some requests of the CLI carry.
IRRELEVANT = {"randomSeed", "timeout", "acceptResources", "acceptSecrets"}


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in IRRELEVANT}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def as_set(calls: Sequence[Any]) -> list[str]:
    return sorted(json.dumps(canonical(without_times(c)), sort_keys=True) for c in calls)


def dynamic_calls(recording: Recording) -> list[Any]:
    methods = ("Check", "Diff", "Create", "Read", "Update", "Delete")
    return [
        (method, call["request"])
        for method in methods
        for call in recording.find(f"ResourceProvider/{method}")
        if "pulumi-python:dynamic" in call["request"]["urn"]
    ]


@pytest.mark.parametrize(
    ("run", "counts"),
    [
        ("01", {"create": 8}),
        ("03", {"create": 8}),
        ("05", {"same": 8}),
        ("06", {"create": 1, "update": 1, "replace": 2, "same": 5}),
        ("08", {"create": 1, "update": 1, "replace": 2, "same": 5}),
        ("12", {"same": 9}),
        ("13", {"delete": 9}),
    ],
)
def test_a_run_ends_as_the_clis_did_and_counts_the_same(runs: Any, run: str, counts: dict[str, int]) -> None:
    assert runs[run].ok, runs[run].errors
    assert runs[run].counts == counts


@pytest.mark.parametrize("run", ["01", "03", "05", "06", "08"])
def test_the_dynamic_provider_is_asked_what_the_cli_asked_it(runs: Any, run: str) -> None:
    assert as_set(runs[run].dynamic) == as_set(dynamic_calls(runs[run].recording))


def test_every_urn_of_the_cli_is_ours(runs: Any) -> None:
    registered = {c["response"]["urn"] for c in runs["03"].recording.find("ResourceMonitor/RegisterResource")}
    assert len(registered) == 8 and registered <= runs["03"].urns


@pytest.mark.parametrize(("run", "export"), [("03", "04-export"), ("08", "09-export")])
def test_the_state_is_the_clis_but_for_ids_and_times(runs: Any, run: str, export: str) -> None:
    assert_same_state(runs[run].state, export)


@pytest.mark.parametrize("run", ["01", "03"])
def test_the_analyzer_is_asked_what_the_cli_asked_it(runs: Any, run: str) -> None:
    asked = [analyzed(r) for kind, r in runs[run].analyzer if kind == "AnalyzeRequest"]
    # Remediate and Analyze have one request type; the former sees the SDK's own keys, too.
    expected = [c["request"] for m in ("Analyze", "Remediate") for c in runs[run].recording.find(f"Analyzer/{m}")]
    assert as_set(asked) == as_set([analyzed(r) for r in expected])

    (stack,) = [r for kind, r in runs[run].analyzer if kind == "AnalyzeStackRequest"]
    (call,) = runs[run].recording.find("Analyzer/AnalyzeStack")
    expected = [analyzed(r) for r in call["request"]["resources"]]
    assert as_set([analyzed(r) for r in stack["resources"]]) == as_set(expected)
    assert runs[run].findings == {"service-no-class": "advisory"}


def test_a_mandatory_violation_fails_the_preview_at_its_end(runs: Any) -> None:
    assert not runs["10"].ok
    assert runs["10"].findings == {"machine-small": "mandatory", "service-no-class": "advisory"}


def test_a_mandatory_violation_blocks_the_resource_in_up(runs: Any) -> None:
    assert not runs["11"].ok
    assert runs["11"].findings["machine-small"] == "mandatory"
    assert not [r for method, r in runs["11"].dynamic if method in ("Update", "Create", "Delete")]


def test_refresh_and_destroy_ask_the_dynamic_provider_what_the_cli_asked(runs: Any) -> None:
    # The CLI also compares after reading, which changes nothing here. Which resources the blocked `up` before it got
    # to, and so took the new (empty) plan of, is a matter of luck.
    read = [c for c in dynamic_calls(runs["12"].recording) if c[0] == "Read"]
    assert as_set(without_plan(runs["12"].dynamic)) == as_set(without_plan(read))
    assert as_set(without_plan(runs["13"].dynamic)) == as_set(without_plan(dynamic_calls(runs["13"].recording)))


def test_destroy_leaves_an_empty_state(runs: Any) -> None:
    assert runs["12"].state and runs["13"].state == []


def without_plan(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_plan(v) for k, v in value.items() if k != "plan"}
    return [without_plan(v) for v in value] if isinstance(value, list | tuple) else value


def analyzed(request: dict[str, Any]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(request))
    copy.get("properties", {}).pop("__internal", None)
    copy.get("dependencies", []).sort()
    return copy


VOLATILE = {"created", "modified", "sourcePosition", "id", "provider", "stackTrace"}


def assert_same_state(ours: list[dict[str, Any]], export: str) -> None:
    """Equal but for ids of providers, times and positions."""
    document = json.loads((SAMPLES / "recordings" / f"{export}.json").read_text())
    crypter = open_crypter(PASSPHRASE, SALT)

    def readable(resource: dict[str, Any]) -> dict[str, Any]:
        shown = {k: v for k, v in resource.items() if k not in VOLATILE}
        for key in ("inputs", "outputs"):
            if key in shown:
                shown[key] = canonical(rewrap(decode(shown[key], crypter)))
        shown["dependencies"] = sorted(shown.get("dependencies") or [])
        shown["propertyDependencies"] = {k: sorted(v) for k, v in (shown.get("propertyDependencies") or {}).items()}
        shown["provider"] = str(resource.get("provider", "")).rpartition("::")[0]
        if not resource["type"].startswith("pulumi:providers:"):
            shown["id"] = resource.get("id")
        return shown

    expected = {r["urn"]: readable(r) for r in document["deployment"]["resources"]}
    assert {r["urn"]: readable(r) for r in ours} == expected
