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
from local.engine.interpreter import Interpreter
from local.engine.policies.host import PolicyHost
from local.engine.policies.packs import Policies
from local.engine.program.monitor import Monitor
from local.engine.program.runner import ProgramRun, run_in_process
from local.engine.providers.registry import InstanceFactory, ProviderRegistry
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
from local.plugins.values import PropertyMap

NO_ENGINE = "127.0.0.1:0"
"""A pack gets an engine's address to log to; whatever it logs also comes back in its answers."""


def default_parallel() -> int:
    """The CLI's default: steps wait for others more than they compute."""
    return max(16, 4 * (os.cpu_count() or 1))


class ProgramRunner(Protocol):
    """Runs a program against a monitor; returns its failure as a message for people, or None."""

    def __call__(self, program: ProgramRun, monitor: Any, on_line: Callable[[str], None]) -> str | None: ...


class Providers(Protocol):
    """Creates the provider factories of a run, and closes what they share."""

    def factories(self) -> Mapping[str, InstanceFactory]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Options:
    """What a run uses besides the stack, and how it proceeds. Not every operation heeds every option."""

    make_providers: Callable[[Session, Callable[[str], None]], Providers]
    policy_packs: Sequence[tuple[Path, Mapping[str, Any] | None]] = ()
    """Each pack's folder and configuration."""
    run_program: ProgramRunner = field(default=run_in_process)
    interpreter: Interpreter = field(default_factory=Interpreter)
    """The Python of policy packs that name none."""
    parallel: int = field(default_factory=default_parallel)
    """How many resources are worked on at once."""
    targets: Targets | None = None
    """The resources to work on; None: all."""
    replaces: Targets | None = None
    """What preview and up replace even if it is unchanged."""
    refresh: bool = False
    """Update the state from the real resources first."""
    continue_on_error: bool = False
    """After a failure, continue with what does not depend on it."""
    preview_only: bool = False
    """In refresh and destroy: only report."""
    exclude_protected: bool = False
    """In a destroy: keep protected resources and what they depend on."""
    with_program: bool = False
    """In a destroy: run the program, for its hooks and provider settings."""
    clear_pending_creates: bool = False
    """In a refresh: forget the creates of a killed run instead of finishing them."""


def preview(request: Request, options: Options, emit: Sink) -> bool:
    """Report what `up` would do; nothing is changed. Returns whether it succeeded, as the others do."""
    return _with_program(request, options, emit, "preview", dry_run=True)


def up(request: Request, options: Options, emit: Sink) -> bool:
    """Create, update and delete resources as the program declares."""
    return _with_program(request, options, emit, "up", dry_run=False)


def refresh(request: Request, options: Options, emit: Sink) -> bool:
    """Update the state from the real resources."""
    with _opened(request, options, emit, "refresh", dry_run=options.preview_only) as opened:
        run = opened.run
        if _exist(run, run.targets):
            if options.clear_pending_creates:
                pending.forget_creates(run)
            pending.resolve(run, creates=True)
            refresh_all(run)
        return opened.end(run.stack_outputs())


def destroy(request: Request, options: Options, emit: Sink) -> bool:
    """Delete every resource in the state."""
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
        run.emit(Diagnostic("info", f"kept {kept} resources: protected ones and what they depend on"))
    chosen = targeted(run, candidates) or ()
    hooked = {r.urn: names for r in chosen if (names := delete_hooks(r))} if run.hooks is None else {}
    for urn, names in hooked.items():
        run.fail(f"its delete hooks ({', '.join(names)}) need the program: add --run-program", urn)
    if hooked:
        return
    try:
        delete_all(run, chosen)
    except ProtectedError as error:
        run.fail(f"{error}\nto delete everything except these and what they depend on: --exclude-protected")


def _with_program(request: Request, options: Options, emit: Sink, name: str, *, dry_run: bool) -> bool:
    with _opened(request, options, emit, name, dry_run=dry_run, validated=name != "destroy") as opened:
        run, session = opened.run, opened.session
        if options.policy_packs:
            run.emit(PolicyLoad())
        policies = Policies(_starts(options, session, request, run.emit, dry_run=dry_run))
        opened.servers.callback(policies.close)
        pending.resolve(run, creates=name == "destroy")
        # Only the program knows every possible target, unless it runs just to help the deletion.
        requested = run.targets if name == "destroy" else run.replaces
        if not _refreshed(run, options) or not _exist(run, requested):
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
        # A failed registration, reported already, also makes the program fail.
        if failure is not None and (not run.failed or run.continue_on_error):
            run.fail(failure)
        deployment.finish(complete=failure is None)
        if policies.violated:
            run.failed = True
        outputs = run.stack_outputs() if deployment.new_outputs is None else deployment.new_outputs
        return opened.end(outputs, policies.versions() if options.policy_packs else {})


def _exist(run: Run, requested: Targets | None) -> bool:
    """Whether the state has each requested resource; reports those that are missing."""
    return requested is None or run.all_known(requested, run.store.snapshot.live())


def _refreshed(run: Run, options: Options) -> bool:
    """Update the state if requested; False if that failed, so that nothing is planned from it."""
    if options.refresh:
        refresh_all(run, note="found by the refresh")
        # The summary counts changes, not what the refresh found.
        run.counts.clear()
    return not run.stopping and not (options.refresh and run.failed)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A run on an opened stack, and how it ends."""

    run: Run
    session: Session
    cleanup: ExitStack
    servers: ExitStack
    """Ends the processes of providers and policy packs, whose output arrives through pipes."""
    started: float
    old_outputs: PropertyMap

    def end(self, outputs: PropertyMap, packs: Mapping[str, str] | None = None) -> bool:
        """Write the state, emit the summary; returns whether the run succeeded."""
        run = self.run
        # Their last output may still be on its way, and must precede the summary.
        self.servers.close()
        pending.report_remaining(run)
        if run.simulated:
            simulated = ", ".join(f"{count} of {package}" for package, count in sorted(run.simulated.items()))
            message = f"simulated resources, with nothing real behind them: {simulated}"
            run.emit(Diagnostic("warning", message))
        if run.simulated_answers:
            functions = ", ".join(sorted(run.simulated_answers))
            message = f"simulated results of functions: {functions}; values derived from them are not marked"
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
            emit(Diagnostic("warning", f"removed the lock of a killed run (process {lock.taken_over})"))
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
            interpreter=options.interpreter,
        )
        for directory, config in options.policy_packs
    ]


def _line(emit: Sink, line: str) -> None:
    emit(Diagnostic("info", line))
