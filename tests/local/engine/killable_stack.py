"""A stack that can be killed at any journal entry, and the cloud for random programs.

Unlike the cloud of the other tests this one has random object names, as Kubernetes' provider does: so a replacement
exists beside the old object, and a duplicate is detected.
"""

from __future__ import annotations

import copy
import io
import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from local.engine.cli_arguments import parse
from local.engine.display.choice import choice_of, open_display
from local.engine.events import Diagnostic, Event, StepDone, Summary
from local.engine.operations import Options, destroy, preview, refresh, up
from local.engine.program.runner import run_in_process
from local.engine.stack.journal import Journal
from local.engine.stack.resource import ResourceState
from local.engine.stack.session import Request, open_session
from local.engine.steps.planner import Op
from local.plugins.provider import (
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    Provider,
    ReadResult,
    UpdateRequest,
)
from local.plugins.urn import name_of
from local.plugins.values import PropertyMap, hidden_like, without_secrets
from tests.local.engine.random_programs import Program, declare
from tests.local.engine.recordings import SALT
from tests.local.engine.things import diff_of_things

DISPLAYS = [choice_of(parse(["up", "-s", "dev", *options]), Path()) for options in (["--diff"], [], ["--json"])]


class Killed(BaseException):
    """The effect of a kill from inside."""


@dataclass
class Life:
    """The life of one run's process. When it is over, its remaining threads have no effect any more."""

    over: bool = False


@dataclass
class Cloud:
    """The objects, by place and random name, and the calls."""

    objects: dict[str, PropertyMap] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    drawn: Iterator[int] = field(default_factory=lambda: count(1))
    life: Life = field(default_factory=Life)
    """The life of the present run."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def change(self, life: Life, verb: str, key: str, inputs: PropertyMap | None) -> None:
        with self.lock:
            if life.over:
                raise Killed
            self.calls.append((verb, key))
            if inputs is None:
                self.objects.pop(key, None)
            else:
                self.objects[key] = without_secrets(inputs)


class RandomProvider:
    """Manages `random:index:Thing` in one place."""

    supports_preview = False

    def __init__(self, cloud: Cloud, config: PropertyMap) -> None:
        self._cloud = cloud
        self._life = cloud.life
        self._place = str(config.get("place", "default"))
        self.accepts_secrets = self._place.startswith("place1")

    def replaced_by(self, config: PropertyMap) -> tuple[str, ...]:
        return ("place",) if str(config.get("place", "default")) != self._place else ()

    def check(self, urn: str, olds: PropertyMap, news: PropertyMap) -> CheckResult:
        drawn = olds.get("name") or f"{name_of(urn).replace('renamed', 'thing')}~{next(self._cloud.drawn)}"
        return CheckResult({**news, "name": drawn})

    def diff(self, request: DiffRequest) -> DiffResult:
        return diff_of_things(request)

    def create(self, request: CreateRequest) -> CreateResult:
        assert not request.preview
        name = str(request.inputs["name"])
        self._cloud.change(self._life, "create", f"{self._place}/{name}", request.inputs)
        return CreateResult(name, self._outputs(name, request.inputs))

    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        del urn, outputs
        found = self._cloud.objects.get(f"{self._place}/{id}")
        if found is None:
            return ReadResult(None, {})
        if self.accepts_secrets:
            found = {k: hidden_like(v, inputs.get(k)) for k, v in found.items()}
        return ReadResult(id, self._outputs(id, found), dict(found))

    def update(self, request: UpdateRequest) -> PropertyMap:
        assert not request.preview
        self._cloud.change(self._life, "update", f"{self._place}/{request.id}", request.news)
        return self._outputs(request.id, request.news)

    def delete(self, request: DeleteRequest) -> None:
        self._cloud.change(self._life, "delete", f"{self._place}/{request.id}", None)

    def close(self) -> None:
        pass

    def _outputs(self, name: str, inputs: PropertyMap) -> PropertyMap:
        given = inputs if self.accepts_secrets else without_secrets(inputs)
        return {**given, "address": f"address of {name}"}


@dataclass(frozen=True)
class RunResult:
    """The result and output of a run."""

    ok: bool
    events: list[Event]
    written: list[str]
    """Each line of its journal."""

    @property
    def errors(self) -> list[str]:
        return [e.message for e in self.events if isinstance(e, Diagnostic) and e.severity == "error"]

    @property
    def counts(self) -> dict[str, int]:
        summary = next(e for e in self.events if isinstance(e, Summary))
        return {str(op): n for op, n in summary.changes.items() if n}

    @property
    def steps(self) -> dict[str, str]:
        """The steps of each resource, by URN; a replacement is one step."""
        done = [e.step for e in self.events if isinstance(e, StepDone)]
        return {s.urn: str(s.op) for s in done if s.op not in (Op.DELETE_REPLACED, Op.CREATE_REPLACEMENT)}

    def texts(self) -> Iterator[str]:
        """All output for people and programs, in every form, and everything that was written."""
        yield from self.written
        for choice in DISPLAYS:
            out = io.StringIO()
            display = open_display(choice, out)
            for event in self.events:
                display(event)
            display.close("")
            yield out.getvalue()


class Shop:
    """A stack, its cloud, and the operations on both."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cloud = Cloud()
        (directory / "Pulumi.yaml").write_text("name: test\nruntime: python\n")
        (directory / "Pulumi.dev.yaml").write_text(f"encryptionsalt: {SALT}\n")

    @property
    def request(self) -> Request:
        return Request(self.directory, "dev", self.directory / "state")

    def preview(self, program: Program) -> RunResult:
        return self._run(preview, program)

    def up(self, program: Program, *, kill_at: int | None = None, written: bool = False) -> RunResult:
        """`kill_at`: the journal entry at which the process dies, `written` or not. Raises Killed."""
        return self._run(up, program, kill_at, written)

    def refresh(self) -> RunResult:
        return self._run(refresh)

    def destroy(self, *, kill_at: int | None = None, written: bool = False) -> RunResult:
        return self._run(destroy, None, kill_at, written)

    def resources(self) -> list[ResourceState]:
        """The state, each resource after its dependencies."""
        return open_session(self.request, writable=False).store.snapshot.ordered()

    def managed(self) -> dict[str, ResourceState]:
        """The state of what is, or should be, in the cloud, by its key there."""
        resources = self.resources()
        places = {f"{r.urn}::{r.id}": str(r.inputs.get("place", "default")) for r in resources}
        return {f"{places[r.provider]}/{r.id}": r for r in resources if r.provider}

    def files(self) -> dict[str, str]:
        """What is on disk for the stack."""
        return {str(p): p.read_text() for p in sorted(self.request.stack_dir.rglob("*")) if p.is_file()}

    def copy(self, directory: Path) -> Shop:
        """A copy of the stack, for another history."""
        other = Shop(directory)
        if self.request.stack_dir.exists():
            shutil.copytree(self.request.stack_dir, other.request.stack_dir, dirs_exist_ok=True)
        other.cloud.objects = copy.deepcopy(self.cloud.objects)
        other.cloud.drawn = count(1000)
        return other

    def result(self) -> tuple[list[str], list[str]]:
        """Objects and state without times and random names: what two histories may have in common."""
        states = sorted(_comparable(r) for r in self.resources())
        return sorted(_undrawn(json.dumps([k, v], sort_keys=True)) for k, v in self.cloud.objects.items()), states

    def _run(
        self,
        operation: Callable[[Request, Options, Callable[[Event], None]], bool],
        program: Program | None = None,
        kill_at: int | None = None,
        written: bool = False,
    ) -> RunResult:
        events: list[Event] = []
        options = Options(
            lambda _session, _line: _Providers(self.cloud),
            run_program=partial(run_in_process, body=declare(program) if program is not None else None),
        )
        with recorded_journal(self.cloud, kill_at, written) as lines:
            ok = operation(self.request, options, events.append)
        return RunResult(ok, events, lines)


def _comparable(resource: ResourceState) -> str:
    shown = {k: getattr(resource, k) for k in ("urn", "type", "inputs", "outputs", "parent", "dependencies", "delete")}
    shown["inputs"], shown["outputs"] = without_secrets(resource.inputs), without_secrets(resource.outputs)
    shown["id"] = "" if resource.type.startswith("pulumi:providers") else resource.id
    return _undrawn(json.dumps(shown, sort_keys=True, default=str))


def _undrawn(text: str) -> str:
    return re.sub(r"~\d+", "~", text)


class _Providers:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def factories(self) -> Mapping[str, Callable[[ResourceState], Provider]]:
        return {"random": lambda resource: RandomProvider(self._cloud, resource.inputs)}

    def close(self) -> None:
        pass


@contextmanager
def recorded_journal(cloud: Cloud, kill_at: int | None, written: bool) -> Iterator[list[str]]:
    """The lines of every journal meanwhile; after the entry of the kill, nothing is written or done."""
    lines: list[str] = []
    append = Journal.append
    life = cloud.life = Life()

    def recording(journal: Journal, entry: Any) -> None:
        if life.over:
            raise Killed
        if kill_at is not None and len(lines) + 1 == kill_at:
            life.over = True
            if written:
                append(journal, entry)
            raise Killed
        lines.append(json.dumps(entry))
        append(journal, entry)

    with patch.object(Journal, "append", recording):
        yield lines
