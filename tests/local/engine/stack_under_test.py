"""A stack in a temporary folder, over the cloud in memory, and how a run of it ended."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from local.engine.events import Diagnostic, Event, StepDone, Summary
from local.engine.operations import Options, destroy, preview, refresh, up
from local.engine.program.runner import run_in_process
from local.engine.stack.resource import ResourceState
from local.engine.stack.session import Request, Session, open_session
from local.engine.stack.state_import import problems
from local.engine.steps.planner import Op
from local.plugins.provider import Provider
from local.plugins.urn import name_of
from tests.integration import refuse_in_fast_test
from tests.local.engine.recordings import SALT
from tests.local.engine.things import Memory, MemoryProvider


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
        refuse_in_fast_test("the embedded engine")
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
