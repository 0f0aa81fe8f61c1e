"""What the engine's tests share: a stack in a temporary folder, an in-memory cloud as provider, recorded events."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from local.engine.events import Diagnostic, Event, StepDone, Summary
from local.engine.operations import Options, destroy, preview, refresh, up
from local.engine.program.runner import run_in_process
from local.engine.providers.provider import (
    CheckFailure,
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    PartialFailure,
    Provider,
    ProviderError,
    ReadResult,
    UpdateRequest,
)
from local.engine.stack.resource import ResourceState
from local.engine.stack.session import Request, Session, open_session
from local.engine.stack.state_import import problems
from local.engine.steps.planner import Op
from local.engine.urn import name_of
from local.engine.values import UNKNOWN, PropertyMap, without_secrets
from tests.local.engine.recordings import PASSPHRASE, SALT
from tests.local.engine.sample_program import Ran, Sample, replay
from tests.local.engine.things import diff_of_things


class Thing(pulumi.CustomResource):
    """A resource of the in-memory cloud. `size` changes in place, `kind` replaces, `address` is an output."""

    address: pulumi.Output[str]
    size: pulumi.Output[Any]

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None, **properties: Any) -> None:
        super().__init__("memory:index:Thing", name, {"address": None, "size": None, **properties}, opts)


class Group(pulumi.ComponentResource):
    """A component."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None, **properties: Any) -> None:
        super().__init__("test:index:Group", name, properties, opts)


@dataclass
class Memory:
    """A cloud in memory: its objects, what was asked of it, and faults by `verb name`. Creates are idempotent."""

    objects: dict[str, PropertyMap] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    timeouts: dict[str, float] = field(default_factory=dict)
    """What was last allowed for each call, in seconds."""
    configs: list[PropertyMap] = field(default_factory=list)
    """The settings of each provider instance that came to manage it."""
    compares: bool = True
    """Whether it says itself what differs, by property; else the engine finds out."""
    faults: dict[str, BaseException] = field(default_factory=dict)
    after: dict[str, BaseException] = field(default_factory=dict)
    """Raised once the thing was done."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    barrier: threading.Barrier | None = None
    waits_for: dict[str, str] = field(default_factory=dict)
    """By resource, the object that must be there before its create is done."""
    outlives: dict[str, str] = field(default_factory=dict)
    """By resource, the object that must be gone before its delete is done."""
    made: threading.Condition = field(default_factory=threading.Condition)

    def note(self, verb: str, urn: str, timeout: float = 0) -> None:
        call = f"{verb} {name_of(urn)}"
        with self.lock:
            self.calls.append(call)
            self.timeouts[call] = timeout
        if call in self.faults:
            raise self.faults[call]

    def done(self, verb: str, urn: str) -> None:
        if error := self.after.pop(f"{verb} {name_of(urn)}", None):
            raise error

    def asked(self, *verbs: str) -> list[str]:
        return [c for c in self.calls if c.split()[0] in verbs]


class MemoryProvider:
    """Manages `memory:index:Thing`."""

    accepts_secrets = False
    supports_preview = False

    def __init__(self, cloud: Memory, config: PropertyMap) -> None:
        self.cloud = cloud
        self.config = config
        cloud.configs.append(config)
        self._place = f"{config['place']}/" if "place" in config else ""

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        return ("place",) if config.get("place") != self.config.get("place") else ()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        del olds
        self.cloud.note("check", urn)
        if news.get("size") == -1:
            return CheckResult(news, (CheckFailure("size", "must be positive"),))
        return CheckResult(news)

    def diff(self, request: DiffRequest) -> DiffResult:
        self.cloud.note("diff", request.urn)
        return diff_of_things(request) if self.cloud.compares else DiffResult(None)

    def create(self, request: CreateRequest) -> CreateResult:
        assert not request.preview
        urn = request.urn
        self.cloud.note("create", urn, request.timeout)
        if self.cloud.barrier is not None:
            self.cloud.barrier.wait(20)
        plain = without_secrets(request.inputs)
        made = f"{name_of(urn)}-{plain.get('kind', 'a')}"
        self.cloud.objects[self._place + made] = plain
        with self.cloud.made:
            self.cloud.made.notify_all()
            awaited = self.cloud.waits_for.get(name_of(urn))
            if awaited and not self.cloud.made.wait_for(lambda: awaited in self.cloud.objects, timeout=20):
                raise ProviderError(f"{awaited} did not come")
        self.cloud.done("create", urn)
        return CreateResult(made, {**plain, "address": f"address of {made}"})

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        del inputs, outputs
        self.cloud.note("read", urn)
        found = self.cloud.objects.get(self._place + id)
        if found is None:
            return ReadResult(None, {})
        return ReadResult(id, {**found, "address": f"address of {id}"}, dict(found))

    def update(self, request: UpdateRequest) -> PropertyMap:
        assert not request.preview
        self.cloud.note("update", request.urn, request.timeout)
        plain = without_secrets(request.news)
        self.cloud.objects[self._place + request.id] = plain
        self.cloud.done("update", request.urn)
        return {**plain, "address": f"address of {request.id}"}

    def delete(self, request: DeleteRequest) -> None:
        self.cloud.note("delete", request.urn, request.timeout)
        with self.cloud.made:
            awaited = self.cloud.outlives.get(name_of(request.urn))
            if awaited and not self.cloud.made.wait_for(lambda: awaited not in self.cloud.objects, timeout=20):
                raise ProviderError(f"{awaited} did not go")
            self.cloud.objects.pop(self._place + request.id, None)
            self.cloud.made.notify_all()
        self.cloud.done("delete", request.urn)

    def close(self) -> None:
        pass


class _OneCloud:
    def __init__(self, factories: Mapping[str, Callable[[ResourceState], Provider]]) -> None:
        self._factories = factories

    def factories(self) -> Mapping[str, Callable[[ResourceState], Provider]]:
        return self._factories

    def close(self) -> None:
        pass


@dataclass
class Outcome:
    """How a run ended and what it told."""

    ok: bool
    events: list[Event]

    @property
    def summary(self) -> Summary:
        return next(e for e in self.events if isinstance(e, Summary))

    @property
    def counts(self) -> dict[str, int]:
        return {str(op): n for op, n in self.summary.changes.items() if n and op is not Op.DELETE_REPLACED}

    @property
    def errors(self) -> list[str]:
        return [e.message for e in self.events if isinstance(e, Diagnostic) and e.severity == "error"]

    @property
    def warnings(self) -> list[str]:
        return [e.message for e in self.events if isinstance(e, Diagnostic) and e.severity == "warning"]

    @property
    def done(self) -> list[str]:
        return [f"{e.step.op} {name_of(e.step.urn)}" for e in self.events if isinstance(e, StepDone)]


class StackUnderTest:
    """A project `test` with stack `dev`, or another, in a folder of its own; programs are functions."""

    def __init__(self, directory: Path, name: str = "dev") -> None:
        self.directory = directory
        self.name = name
        self.cloud = Memory()
        self.factories: dict[str, Callable[[ResourceState], Provider]] = {
            "memory": lambda r: MemoryProvider(self.cloud, r.inputs)
        }
        (directory / "Pulumi.yaml").write_text("name: test\nruntime: python\n")
        self.configure({})

    def configure(self, config: Mapping[str, Any], *, salt: str = SALT) -> None:
        """Write the stack file."""
        data = {**({"encryptionsalt": salt} if salt else {}), "config": dict(config)}
        (self.directory / f"Pulumi.{self.name}.yaml").write_text(yaml.safe_dump(data))

    def beside(self, name: str) -> StackUnderTest:
        """Another stack in the same state folder."""
        return StackUnderTest(self.directory, name)

    @property
    def request(self) -> Request:
        return Request(self.directory, self.name, self.directory / "state")

    @property
    def stack_dir(self) -> Path:
        return self.request.stack_dir

    def preview(self, program: Callable[[], object], **options: Any) -> Outcome:
        return self._run(preview, program, **options)

    def up(self, program: Callable[[], object], **options: Any) -> Outcome:
        return self._run(up, program, **options)

    def refresh(self, **options: Any) -> Outcome:
        return self._run(refresh, **options)

    def destroy(self, program: Callable[[], object] | None = None, **options: Any) -> Outcome:
        return self._run(destroy, program, with_program=program is not None, **options)

    def open(self) -> Session:
        """The stack as a reader sees it."""
        return open_session(self.request, writable=False)

    def resources(self) -> dict[str, ResourceState]:
        """The state by name, of what the program mentions."""
        return {r.name: r for r in self.open().store.snapshot.resources.values() if not r.name.startswith("default")}

    def forget(self) -> None:
        """Lose the state, not what was made."""
        shutil.rmtree(self.stack_dir)

    def files(self) -> str:
        """Everything that is on disk for the stack, as one text."""
        return "\n".join(p.read_text() for p in sorted(self.stack_dir.rglob("*")) if p.is_file())

    def _run(
        self,
        operation: Callable[[Request, Options, Callable[[Event], None]], bool],
        program: Callable[[], object] | None = None,
        **more: Any,
    ) -> Outcome:
        events: list[Event] = []
        options = Options(
            lambda _session, _line: _OneCloud(self.factories),
            run_program=partial(run_in_process, body=program),
            **more,
        )
        outcome = Outcome(operation(self.request, options, events.append), events)
        # However a run goes, what it leaves is a state that the CLI would take.
        exported = self.open().store.export()["deployment"]
        assert list(problems(exported, "test", self.request.stack)) == []
        return outcome


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackUnderTest:
    """An empty stack."""
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    return StackUnderTest(tmp_path)


@dataclass(frozen=True)
class Kit:
    """The words of the tests: tests are modules on their own and cannot import this file."""

    Thing: type[Thing] = Thing
    Group: type[Group] = Group
    UNKNOWN: Any = UNKNOWN
    ProviderError: type[ProviderError] = ProviderError
    PartialFailure: type[PartialFailure] = PartialFailure


@pytest.fixture
def kit() -> Kit:
    """Resource classes for programs."""
    return Kit()


@pytest.fixture(scope="session")
def sample_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ran]]:
    """Every recording of the real CLI, beside a run of the same by the engine's command line."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield replay(tmp_path_factory.mktemp("sample"), monkeypatch)


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sample]:
    """The sample program, in a stack that is empty."""
    yield Sample(tmp_path, monkeypatch)
    sys.modules.pop("machines", None)
