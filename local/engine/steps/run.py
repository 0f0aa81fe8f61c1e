"""What every operation on a stack shares: its state, its providers, its events, and the count of what was done."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from local.engine.events import Diagnostic, Sink, Status, StepDone, StepFailed, StepInfo, StepStarted
from local.engine.providers.registry import ProviderRegistry
from local.engine.stack.config import Config
from local.engine.stack.resource import ResourceState
from local.engine.stack.state import Store
from local.engine.steps.hooked import StepHooks
from local.engine.steps.planner import Op, is_hidden
from local.engine.steps.targets import Targets
from local.plugins.provider import OutcomeUnknown, PartialFailure, ProviderError
from local.plugins.secret_texts import masked
from local.plugins.urn import is_provider, package_of
from local.plugins.values import PropertyMap

_COUNTED_AS: Final = {
    Op.IMPORT_REPLACEMENT: Op.REPLACE,
    Op.READ_REPLACEMENT: Op.REPLACE,
    Op.DISCARD_REPLACED: Op.DELETE_REPLACED,
}
"""Steps that a summary has no word of its own for."""


class StackError(Exception):
    """The run cannot go on; the message is for a person. `urn` names the resource at fault, if it is one's."""

    def __init__(self, message: str, urn: str = "") -> None:
        super().__init__(message)
        self.urn = urn


class Reported(StackError):
    """Something failed, and people were told already."""


class Absence(StrEnum):
    """Why the program gets no resource for a registration, and goes on without it."""

    FAILED = "failed"
    """It could not be made; with `--continue-on-error` the rest of the program goes on."""
    SKIPPED = "skipped"
    """It needs one that failed."""
    UNTARGETED = "untargeted"
    """It would be new, and `--target` does not name it."""


class Absent(StackError):
    """A registration to which there is no resource; people were told already."""

    def __init__(self, urn: str, why: Absence) -> None:
        super().__init__(f"{urn} was {why}", urn)
        self.why = why


@dataclass(slots=True)
class Run:
    """One preview, up, refresh or destroy of a stack."""

    project: str
    stack: str
    config: Config
    store: Store
    providers: ProviderRegistry
    emit: Sink
    dry_run: bool
    project_root: str = ""
    """The project's folder: source positions are told from there."""
    parallel: int = 16
    """How many resources are worked on at once."""
    targets: Targets | None = None
    """Which resources the run is about; None: all."""
    replaces: Targets | None = None
    """Which resources are replaced whether or not they differ."""
    continue_on_error: bool = False
    hooks: StepHooks | None = None
    """The hooks of the program; None while none runs that could have registered any."""
    counts: Counter[Op] = field(default_factory=Counter)
    simulated: Counter[str] = field(default_factory=Counter)
    """How many simulated resources the run was about, by package."""
    simulated_answers: set[str] = field(default_factory=set)
    """The provider functions to which the program got a simulated answer."""
    failed: bool = False
    interrupted: bool = False
    errored: set[str] = field(default_factory=set)
    """The URNs that failed, or were skipped because they need one that did."""
    registered: dict[str, ResourceState] = field(default_factory=dict)
    """What this run has registered so far, by URN."""
    positions: dict[str, str] = field(default_factory=dict)
    """Where the program registers each resource, by URN: `project:///PATH#LINE`."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    _slots: threading.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = threading.Semaphore(self.parallel)

    @property
    def stopping(self) -> bool:
        """Whether nothing new may begin."""
        return self.interrupted or (self.failed and not self.continue_on_error)

    @property
    def closed(self) -> bool:
        """Whether the program gets nothing more; a preview goes on after a failure, to tell all that is wrong."""
        return self.interrupted or (self.stopping and not self.dry_run)

    def fail(self, message: str, urn: str = "") -> None:
        """Report an error. Without `--continue-on-error` nothing new is begun after the first."""
        with self.lock:
            self.failed = True
        self.emit(Diagnostic("error", message, urn, position=self.positions.get(urn, "")))

    def all_known(self, asked: Targets, urns: Collection[str]) -> bool:
        """Whether each URN that is asked for is among these, and any is; tells of those that are not.

        One of several patterns may match nothing. Where nothing at all is matched, something is mistyped.
        """
        unknown, idle = asked.unknown(urns), asked.idle(urns)
        if len(idle) == len(asked.patterns):
            unknown, idle = idle, []
        for message in idle:
            self.emit(Diagnostic("warning", message))
        for message in unknown:
            self.fail(message)
        return not unknown

    def interrupt(self) -> None:
        """Begin nothing new: what runs may finish, and waits no more for what it has made to become ready."""
        self.interrupted = True
        self.fail("interrupted: running steps may finish, no new ones start; Ctrl-C again ends at once")
        self.providers.interrupt()

    def count(self, step: StepInfo) -> None:
        """Count a step for the summary."""
        if not step.hidden:
            with self.lock:
                self.counts[_COUNTED_AS.get(step.op, step.op)] += 1
                if step.simulated:
                    self.simulated[package_of(step.type)] += 1

    def info(self, urn: str, message: str) -> None:
        """Progress of a resource."""
        self.emit(Diagnostic("info", message, urn, ephemeral=True))

    def reporter(self, urn: str) -> Callable[[str], None]:
        """What a provider is given to tell its progress."""
        return lambda message: self.info(urn, message)

    @contextmanager
    def step(self, step: StepInfo) -> Iterator[Callable[[StepInfo], None]]:
        """Tell that a step begins and how it ended; call what is given with the step as it came out.

        A step that a provider carries out waits for its turn first. Raises Reported if it may no longer begin then.
        """
        with self._slots if _is_work(step) else nullcontext():
            # What cannot be read is no reason not to look at the others.
            if self.interrupted or (self.closed and step.op is not Op.REFRESH):
                raise Reported("the run has failed already", step.urn)
            with self._told(step) as finish:
                yield finish

    @contextmanager
    def _told(self, step: StepInfo) -> Iterator[Callable[[StepInfo], None]]:
        started = time.monotonic()
        self.emit(StepStarted(step, self.dry_run))
        ended = [step]

        def finish(outcome: StepInfo) -> None:
            ended[0] = outcome

        try:
            yield finish
        except Reported:
            self.emit(StepFailed(step))
            raise
        except (ProviderError, StackError) as error:
            self.emit(StepFailed(step, _left_behind(error)))
            message = masked(str(error), [state.inputs for state in (step.old, step.new) if state is not None])
            self.fail(message, step.urn)
            raise Reported(message, step.urn) from error
        self.emit(StepDone(ended[0], self.dry_run, time.monotonic() - started))
        self.count(ended[0])

    def stack_outputs(self) -> PropertyMap:
        """The root stack's outputs as the state has them."""
        for resource in self.store.snapshot.live().values():
            if resource.type == "pulumi:pulumi:Stack":
                return resource.outputs
        return {}


def _left_behind(error: Exception) -> Status:
    if isinstance(error, OutcomeUnknown):
        return Status.UNKNOWN
    return Status.PARTIAL if isinstance(error.__cause__, PartialFailure) else Status.NOTHING


def _is_work(step: StepInfo) -> bool:
    return step.op is not Op.SAME and step.resource.custom and not is_provider(step.type)


def info_of(op: Op, *, old: ResourceState | None = None, new: ResourceState | None = None, note: str = "") -> StepInfo:
    """A step without a diff."""
    resource = new or old
    assert resource is not None
    return StepInfo(op, resource.urn, resource.type, old, new, hidden=is_hidden(resource), note=note)
