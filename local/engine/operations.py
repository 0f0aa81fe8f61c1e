"""preview, up, refresh and destroy: what each does with an opened stack, from its first event to its last."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from local.engine import pending
from local.engine.deletion import delete_all
from local.engine.deployment import Deployment
from local.engine.events import Diagnostic, Prelude, Sink, Summary, without_texts
from local.engine.lock import StackLock
from local.engine.monitor import Monitor
from local.engine.planner import ProtectedError
from local.engine.policies import Policies
from local.engine.policy_host import PolicyHost
from local.engine.program import ProgramRun, run_in_process
from local.engine.providers import ProviderFactory, ProviderRegistry
from local.engine.refresh import refresh as refresh_all
from local.engine.run import Run
from local.engine.session import Request, Session, open_session
from local.engine.values import PropertyMap

NO_ENGINE = "127.0.0.1:0"
"""A pack is given an engine's address to log to; it has nothing to log that does not come back in its answers."""


class ProgramRunner(Protocol):
    """Runs a program against a monitor; returns what went wrong, for a person."""

    def __call__(self, program: ProgramRun, monitor: Any, on_line: Callable[[str], None]) -> str | None: ...


class Providers(Protocol):
    """Makes the factories of a run, and closes what they share."""

    def factories(self) -> Mapping[str, ProviderFactory]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Options:
    """What a run uses beside the stack itself."""

    make_providers: Callable[[Session, Callable[[str], None]], Providers]
    policy_packs: Sequence[tuple[Path, Mapping[str, Any] | None]] = ()
    """Each pack's folder, and its configuration."""
    run_program: ProgramRunner = field(default=run_in_process)
    parallel: int = 16
    clear_pending_creates: bool = False
    """In a refresh: forget what was being created when a run was killed, instead of finishing it."""


def preview(request: Request, options: Options, emit: Sink) -> bool:
    """Tell what `up` would do; nothing is changed. Returns whether all went well, as the others do."""
    return _run_program(request, options, emit, "preview", dry_run=True)


def up(request: Request, options: Options, emit: Sink) -> bool:
    """Bring the stack to what the program says."""
    return _run_program(request, options, emit, "up", dry_run=False)


def refresh(request: Request, options: Options, emit: Sink) -> bool:
    """Bring the state up to date with what is."""

    def body(run: Run) -> PropertyMap:
        if options.clear_pending_creates:
            pending.forget_creates(run)
        pending.resolve(run, creates=True)
        refresh_all(run)
        return run.stack_outputs()

    return _without_program(request, options, emit, "refresh", body)


def destroy(request: Request, options: Options, emit: Sink) -> bool:
    """Delete everything that the state knows."""

    def body(run: Run) -> PropertyMap:
        pending.resolve(run, creates=True)
        try:
            delete_all(run, run.store.snapshot.all())
        except ProtectedError as error:
            run.fail(str(error))
        return run.stack_outputs()

    return _without_program(request, options, emit, "destroy", body)


def _run_program(request: Request, options: Options, emit: Sink, name: str, *, dry_run: bool) -> bool:
    with ExitStack() as cleanup:
        lock = cleanup.enter_context(nullcontext() if dry_run else StackLock(request.stack_dir))
        session = open_session(request, writable=not dry_run)
        emit = without_texts(emit, _secret_texts(session))
        run, started = _begin(cleanup, session, request, options, emit, name, dry_run=dry_run, lock=lock)
        policies = Policies(_starts(options, session, request, emit, dry_run=dry_run))
        cleanup.callback(policies.close)
        pending.resolve(run, creates=False)
        deployment = Deployment(run, policies)
        program = ProgramRun(session.project.name, request.stack, session.config, session.project.main, dry_run)
        monitor = Monitor(deployment)
        failure = options.run_program(program, monitor, partial(_line, emit))
        if monitor.crash is not None:
            raise monitor.crash
        # A registration that failed fails the program, too: that was told already.
        if failure is not None and not run.failed:
            run.fail(failure)
        deployment.finish()
        if policies.violated:
            run.failed = True
        new_outputs = run.stack_outputs() if deployment.new_outputs is None else deployment.new_outputs
        return _end(run, started, new_outputs, policies.versions() if options.policy_packs else {})


def _without_program(
    request: Request, options: Options, emit: Sink, name: str, body: Callable[[Run], PropertyMap]
) -> bool:
    with ExitStack() as cleanup:
        lock = cleanup.enter_context(StackLock(request.stack_dir))
        session = open_session(request, writable=True)
        emit = without_texts(emit, _secret_texts(session))
        run, started = _begin(cleanup, session, request, options, emit, name, dry_run=False, lock=lock)
        return _end(run, started, body(run), {})


@dataclass(frozen=True, slots=True)
class _Started:
    at: float
    outputs: PropertyMap


def _begin(
    cleanup: ExitStack,
    session: Session,
    request: Request,
    options: Options,
    emit: Sink,
    name: str,
    *,
    dry_run: bool,
    lock: StackLock | None,
) -> tuple[Run, _Started]:
    started = time.monotonic()
    if not dry_run:
        cleanup.callback(session.store.close)
    emit(Prelude(name, request.stack, session.config.masked()))
    if lock is not None and lock.taken_over is not None:
        emit(Diagnostic("warning", f"took over the lock of a run that was killed (process {lock.taken_over})"))
    shared = options.make_providers(session, partial(_line, emit))
    cleanup.callback(shared.close)
    registry = ProviderRegistry(shared.factories())
    cleanup.callback(registry.close)
    run = Run(
        project=session.project.name,
        stack=request.stack,
        config=session.config,
        store=session.store,
        providers=registry,
        emit=emit,
        dry_run=dry_run,
        project_root=str(session.project.directory),
        parallel=options.parallel,
    )
    return run, _Started(started, run.stack_outputs())


def _end(run: Run, started: _Started, new_outputs: PropertyMap, packs: Mapping[str, str]) -> bool:
    pending.report_remaining(run)
    if not run.dry_run:
        run.store.compact()
    seconds = time.monotonic() - started.at
    run.emit(Summary(run.dry_run, run.counts, seconds, run.failed, started.outputs, new_outputs, packs))
    return not run.failed


def _starts(
    options: Options, session: Session, request: Request, emit: Sink, *, dry_run: bool
) -> list[Callable[[], PolicyHost]]:
    return [
        partial(
            PolicyHost.start,
            directory,
            engine_address=NO_ENGINE,
            project=session.project.name,
            stack=request.stack,
            dry_run=dry_run,
            config=session.config.values,
            config_secret_keys=sorted(session.config.secret_keys),
            policy_config=config,
            report=partial(_line, emit),
        )
        for directory, config in options.policy_packs
    ]


def _secret_texts(session: Session) -> list[str]:
    return [session.config.values[k] for k in session.config.secret_keys]


def _line(emit: Sink, line: str) -> None:
    emit(Diagnostic("info", line))


def load_policy_config(path: Path) -> dict[str, Any]:
    """A --policy-pack-config file. Raises ValueError."""
    data = json.loads(path.read_text())
    if not isinstance(data, dict):
        raise ValueError(f"{path} must hold a JSON object")
    return data
