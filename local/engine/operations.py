"""preview, up, refresh and destroy: what each does with an opened stack, from its first event to its last."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from local.engine.events import Diagnostic, PolicyLoad, Prelude, Sink, Summary, without_texts
from local.engine.policies.host import PolicyHost
from local.engine.policies.packs import Policies
from local.engine.program.monitor import Monitor
from local.engine.program.runner import ProgramRun, run_in_process
from local.engine.providers.registry import ProviderFactory, ProviderRegistry
from local.engine.stack.lock import StackLock
from local.engine.stack.session import Request, Session, open_session
from local.engine.steps import pending, stack_references
from local.engine.steps.deletion import delete_all, targeted, unprotected
from local.engine.steps.deployment import Deployment
from local.engine.steps.destruction import Destruction
from local.engine.steps.hooked import delete_hooks
from local.engine.steps.planner import ProtectedError
from local.engine.steps.refresh import refresh as refresh_all
from local.engine.steps.run import Run
from local.engine.steps.stack_references import StackReferences
from local.engine.steps.targets import Targets
from local.engine.values import PropertyMap

NO_ENGINE = "127.0.0.1:0"
"""A pack is given an engine's address to log to; it has nothing to log that does not come back in its answers."""


def default_parallel() -> int:
    """As many at once as the CLI works on: they wait for others more than they work."""
    return max(16, 4 * (os.cpu_count() or 1))


class ProgramRunner(Protocol):
    """Runs a program against a monitor; returns what went wrong, for a person."""

    def __call__(self, program: ProgramRun, monitor: Any, on_line: Callable[[str], None]) -> str | None: ...


class Providers(Protocol):
    """Makes the factories of a run, and closes what they share."""

    def factories(self) -> Mapping[str, ProviderFactory]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Options:
    """What a run uses beside the stack itself, and how it goes about it. Not every operation heeds every option."""

    make_providers: Callable[[Session, Callable[[str], None]], Providers]
    policy_packs: Sequence[tuple[Path, Mapping[str, Any] | None]] = ()
    """Each pack's folder, and its configuration."""
    run_program: ProgramRunner = field(default=run_in_process)
    parallel: int = field(default_factory=default_parallel)
    """How many resources are worked on at once."""
    targets: Targets | None = None
    """Which resources it is about; None: all."""
    replaces: Targets | None = None
    """What preview and up replace whether or not it differs."""
    refresh: bool = False
    """Before anything else, bring the state up to date with what is."""
    continue_on_error: bool = False
    """After a failure, go on with whatever does not need what failed."""
    preview_only: bool = False
    """In refresh and destroy: only tell."""
    exclude_protected: bool = False
    """In a destroy: leave what is protected, and what that needs."""
    with_program: bool = False
    """In a destroy: run the program, for its hooks and the settings of its providers."""
    clear_pending_creates: bool = False
    """In a refresh: forget what was being created when a run was killed, instead of finishing it."""


def preview(request: Request, options: Options, emit: Sink) -> bool:
    """Tell what `up` would do; nothing is changed. Returns whether all went well, as the others do."""
    return _with_program(request, options, emit, "preview", dry_run=True)


def up(request: Request, options: Options, emit: Sink) -> bool:
    """Bring the stack to what the program says."""
    return _with_program(request, options, emit, "up", dry_run=False)


def refresh(request: Request, options: Options, emit: Sink) -> bool:
    """Bring the state up to date with what is."""
    with _opened(request, options, emit, "refresh", dry_run=options.preview_only) as opened:
        run = opened.run
        if _exist(run, run.targets):
            if options.clear_pending_creates:
                pending.forget_creates(run)
            pending.resolve(run, creates=True)
            refresh_all(run)
        return opened.end(run.stack_outputs())


def destroy(request: Request, options: Options, emit: Sink) -> bool:
    """Delete everything that the state knows."""
    if options.with_program:
        return _with_program(request, options, emit, "destroy", dry_run=options.preview_only)
    with _opened(request, options, emit, "destroy", dry_run=options.preview_only) as opened:
        run = opened.run
        if _exist(run, run.targets):
            pending.resolve(run, creates=True)
            if _refreshed(run, options):
                _delete(run, options)
        return opened.end(run.stack_outputs())


def _delete(run: Run, options: Options) -> None:
    resources = run.store.snapshot.all()
    candidates = unprotected(resources) if options.exclude_protected else resources
    if len(candidates) < len(resources):
        kept = len(resources) - len(candidates)
        run.emit(Diagnostic("info", f"{kept} stay: what is protected, and what that needs"))
    chosen = targeted(run, candidates) or ()
    hooked = {r.urn: names for r in chosen if (names := delete_hooks(r))} if run.hooks is None else {}
    for urn, names in hooked.items():
        run.fail(f"it has delete hooks ({', '.join(names)}), which only its program can run: add --run-program", urn)
    if hooked:
        return
    try:
        delete_all(run, chosen)
    except ProtectedError as error:
        run.fail(f"{error}\nto delete all but these and what they need: --exclude-protected")


def _with_program(request: Request, options: Options, emit: Sink, name: str, *, dry_run: bool) -> bool:
    with _opened(request, options, emit, name, dry_run=dry_run, validated=name != "destroy") as opened:
        run, session = opened.run, opened.session
        if options.policy_packs:
            run.emit(PolicyLoad())
        policies = Policies(_starts(options, session, request, run.emit, dry_run=dry_run))
        opened.servers.callback(policies.close)
        pending.resolve(run, creates=name == "destroy")
        # What there would be to target only the program says, unless it only helps to delete.
        asked = run.targets if name == "destroy" else run.replaces
        if not _refreshed(run, options) or not _exist(run, asked):
            return opened.end(run.stack_outputs())
        if name == "destroy":
            deployment: Deployment = Destruction(run, partial(_delete, run, options))
        else:
            deployment = Deployment(run, policies)
        program = ProgramRun(session.project.name, request.stack, session.config, session.project.main, dry_run)
        monitor = Monitor(deployment)
        opened.cleanup.callback(monitor.close)
        failure = options.run_program(program, monitor, partial(_line, run.emit))
        if monitor.crash is not None:
            raise monitor.crash
        # A registration that failed fails the program, too: that was told already.
        if failure is not None and (not run.failed or run.continue_on_error):
            run.fail(failure)
        deployment.finish(complete=failure is None)
        if policies.violated:
            run.failed = True
        outputs = run.stack_outputs() if deployment.new_outputs is None else deployment.new_outputs
        return opened.end(outputs, policies.versions() if options.policy_packs else {})


def _exist(run: Run, asked: Targets | None) -> bool:
    """Whether the state has each resource that is asked for; if not, that is told."""
    return asked is None or run.all_known(asked, run.store.snapshot.live())


def _refreshed(run: Run, options: Options) -> bool:
    """Bring the state up to date, if that is wanted; False if that failed, so that nothing is planned from it."""
    if options.refresh:
        refresh_all(run, note="found by the refresh")
        # The summary tells what was done, not what was found.
        run.counts.clear()
    return not run.stopping and not (options.refresh and run.failed)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A run on an opened stack, and how it ends."""

    run: Run
    session: Session
    cleanup: ExitStack
    servers: ExitStack
    """Ends the processes of providers and policy packs, which say what they say through pipes."""
    started: float
    old_outputs: PropertyMap

    def end(self, outputs: PropertyMap, packs: Mapping[str, str] | None = None) -> bool:
        """Write the state, tell the summary; returns whether all went well."""
        run = self.run
        # What they printed last may still be on its way, and after the summary nobody looks for it.
        self.servers.close()
        pending.report_remaining(run)
        if run.simulated:
            told = ", ".join(f"{count} of {package}" for package, count in sorted(run.simulated.items()))
            message = f"simulated: nothing on this machine can run {told}, so nothing real is behind these resources"
            run.emit(Diagnostic("warning", message))
        if run.simulated_answers:
            told = ", ".join(sorted(run.simulated_answers))
            message = f"simulated answers of functions: {told}; what the program makes of them is not marked"
            run.emit(Diagnostic("warning", message))
        if not run.dry_run:
            run.store.compact()
        seconds = time.monotonic() - self.started
        corrupt = not run.dry_run and bool(run.store.snapshot.pending)
        run.emit(Summary(run.dry_run, run.counts, seconds, run.failed, self.old_outputs, outputs, packs or {}, corrupt))
        return not run.failed


@contextmanager
def _opened(
    request: Request, options: Options, emit: Sink, name: str, *, dry_run: bool, validated: bool = False
) -> Iterator[_Opened]:
    with ExitStack() as cleanup:
        lock = None if dry_run else cleanup.enter_context(StackLock(request.stack_dir, name))
        session = open_session(request, writable=not dry_run, validated=validated)
        emit = without_texts(emit, [session.config.values[k] for k in session.config.secret_keys])
        started = time.monotonic()
        if not dry_run:
            cleanup.callback(session.store.close)
        emit(Prelude(name, request.stack, session.config.masked()))
        for warning in session.config.warnings:
            emit(Diagnostic("warning", warning))
        if lock is not None and lock.taken_over is not None:
            emit(Diagnostic("warning", f"took over the lock of a run that was killed (process {lock.taken_over})"))
        shared = options.make_providers(session, partial(_line, emit))
        servers = cleanup.enter_context(ExitStack())
        servers.callback(shared.close)
        others = StackReferences(request.stack_dir.parent, placeholder_secrets=request.placeholder_secrets)
        registry = ProviderRegistry({**shared.factories(), stack_references.PACKAGE: lambda _: others})
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
            targets=options.targets,
            replaces=options.replaces,
            continue_on_error=options.continue_on_error,
        )
        yield _Opened(run, session, cleanup, servers, started, run.stack_outputs())


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


def _line(emit: Sink, line: str) -> None:
    emit(Diagnostic("info", line))
