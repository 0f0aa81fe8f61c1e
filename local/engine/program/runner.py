"""Runs the Pulumi program, `__main__.py`, against a monitor: in this process, or in one of its own.

The command line runs it in this process: a preview is then done in the time that another interpreter needs to start.
The SDK keeps its settings in context variables, so each run has a context of its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import io
import json
import os
import runpy
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from local.engine import collector
from local.engine.interpreter import Interpreter
from local.engine.stack.config import Config
from local.engine.termination import SIGNALS_SEEN_EVERY

_ENGINE: Final = Path(__file__).parents[1]
EXECUTOR_THREADS: Final = 64
"""Each registration waits in a thread of the SDK's executor until its step is done."""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """The program and the settings of its run."""

    project: str
    stack: str
    config: Config
    directory: Path
    dry_run: bool


def run_in_process(
    program: ProgramRun, monitor: Any, on_line: Callable[[str], None], body: Callable[[], object] | None = None
) -> str | None:
    """Run the program here; returns its failure as a message for people, or None. `on_line` gets what it prints.

    `body` replaces the folder's `__main__.py` where the program is a function.
    """
    ended: Future[str | None] = Future()
    context = contextvars.Context()

    def target() -> None:
        try:
            ended.set_result(context.run(_run, program, monitor, on_line, body))
        except BaseException as error:  # noqa: BLE001 - raised again where the program is awaited
            ended.set_exception(error)

    # A thread of its own: the SDK needs one without a running loop, and signals must reach the main thread.
    threading.Thread(target=target, name="program", daemon=True).start()
    try:
        return _result(ended)
    except KeyboardInterrupt:
        if ended.done():
            raise
        # Running steps finish, and no new ones start; a second Ctrl-C is raised.
        monitor.interrupt()
        return _result(ended)


def _result(ended: Future[str | None]) -> str | None:
    while not ended.done():
        wait([ended], timeout=SIGNALS_SEEN_EVERY)
    return ended.result()


def _run(
    program: ProgramRun, monitor: Any, on_line: Callable[[str], None], body: Callable[[], object] | None = None
) -> str | None:
    from pulumi.runtime import Settings, configure, set_all_config
    from pulumi.runtime.settings import ROOT, _get_callbacks
    from pulumi.runtime.stack import run_in_stack

    set_all_config(dict(program.config.values), sorted(program.config.secret_keys))
    configure(
        Settings(
            project=program.project,
            stack=program.stack,
            organization="organization",
            monitor=monitor,
            engine=monitor,
            parallel=EXECUTOR_THREADS,
            dry_run=program.dry_run,
            root_directory=str(program.directory),
        )
    )
    ROOT.set(None)
    entry = program.directory / "__main__.py"
    if body is None and not entry.is_file():
        return f"there is no program: {entry} does not exist"
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    raised = Raised(program.directory)
    loop.set_task_factory(raised.task)
    executor = ThreadPoolExecutor(EXECUTOR_THREADS, thread_name_prefix="registration")
    loop.set_default_executor(executor)
    sys.path.insert(0, str(program.directory))
    before = Path.cwd()
    os.chdir(program.directory)
    try:
        # Where a program with hooks fails at once, the SDK stops its server of callbacks while that still starts, and
        # gRPC ends the process with a segmentation fault. So it is started first.
        loop.run_until_complete(_get_callbacks())
        with _Lines(on_line) as said, _Lines(on_line) as warned, redirect_stdout(said), redirect_stderr(warned):
            loop.run_until_complete(run_in_stack(lambda: _execute(body, entry)))
    except SystemExit as error:
        return None if error.code in (None, 0) else f"the program called sys.exit({error.code!r})"
    except Exception as error:  # noqa: BLE001 - every exception of the user's program is reported
        return describe(error, raised)
    finally:
        os.chdir(before)
        sys.path.remove(str(program.directory))
        with warnings.catch_warnings():
            # The SDK creates coroutines for values that remain unused once the program has failed.
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            _wind_up(loop)
        executor.shutdown(wait=True)
        loop.close()
    return None


def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    """Stop what a failed program left waiting. Its first failure was reported; asyncio would print all others."""
    loop.set_exception_handler(lambda _loop, _context: None)
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))


def _execute(body: Callable[[], object] | None, entry: Path) -> None:
    if body is not None:
        body()
    else:
        runpy.run_path(str(entry), run_name="__main__")


class Raised:
    """Records where the program's exceptions were raised in its own files.

    asyncio drops an exception's traceback when its task is awaited a second time, as the SDK does, which would lose the
    line of a function that failed in `apply`. The traceback is recorded when the first task ends with it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._noted: dict[int, tuple[BaseException, list[str]]] = {}

    def task(self, loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
        """A task factory."""
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **more)
        task.add_done_callback(self._note)
        return task

    def _note(self, task: asyncio.Task[Any]) -> None:
        # Not `exception()`: asyncio would consider it retrieved, and never report one that is not awaited.
        error = task._exception
        if error is not None:
            self._noted.setdefault(id(error), (error, self._frames(error)))

    def lines(self, error: BaseException) -> list[str]:
        """The lines of the program that led to the exception or to its cause."""
        seen: set[int] = set()
        following: BaseException | None = error
        while following is not None and id(following) not in seen:
            seen.add(id(following))
            _, noted = self._noted.get(id(following), (following, []))
            if found := noted or self._frames(following):
                return found
            following = following.__cause__ or following.__context__
        return []

    def _frames(self, error: BaseException) -> list[str]:
        return [
            f"  {path.relative_to(self._directory)}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
            if (path := Path(frame.filename)).is_relative_to(self._directory)
            and ".venv" not in path.relative_to(self._directory).parts
            and not path.is_relative_to(_ENGINE)
        ]


def describe(error: BaseException, raised: Raised) -> str:
    """An exception of the program: only the message if it is meant for people, else also where it was raised."""
    from pulumi import InputPropertiesError, InputPropertyError, RunError

    if isinstance(error, RunError | InputPropertyError | InputPropertiesError):
        return str(error)
    return "\n".join([f"the program failed: {type(error).__name__}: {error}", *raised.lines(error)])


class _Lines(io.TextIOBase):
    """A text stream that passes on whole lines."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._rest = ""
        self._lock = threading.Lock()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Pass on what is left without a newline."""
        if self._rest:
            self.write("\n")
        super().close()

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if line:
                self._on_line(line)
        return len(text)


def run_in_subprocess(
    program: ProgramRun,
    address: str,
    on_line: Callable[[str], None],
    interpreter: Interpreter = Interpreter(),  # noqa: B008 - frozen
) -> str | None:
    """Run the program in an interpreter of its own, which calls a monitor at `address` over gRPC."""
    settings = {
        "project": program.project,
        "stack": program.stack,
        "directory": str(program.directory),
        "dry_run": program.dry_run,
        "monitor": address,
        "config": dict(program.config.values),
        "secret_keys": sorted(program.config.secret_keys),
    }
    process = subprocess.Popen(
        [interpreter.path, "-u", "-m", __name__],
        cwd=program.directory,
        env=interpreter.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Config may hold secrets: it goes through the pipe, never through arguments or the environment.
    output, errors = process.communicate(json.dumps(settings))
    for line in output.splitlines():
        on_line(line)
    return None if process.returncode == 0 else errors.strip() or f"the program failed with code {process.returncode}"


def main() -> int:
    """The other side of `run_in_subprocess`: settings on standard input, errors on standard error."""
    settings = json.load(sys.stdin)
    program = ProgramRun(
        settings["project"],
        settings["stack"],
        Config(settings["config"], frozenset(settings["secret_keys"])),
        Path(settings["directory"]),
        settings["dry_run"],
    )
    failure = _run(program, settings["monitor"], lambda line: print(line, file=sys.__stdout__))
    if failure is not None:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    collector.search_seldom()
    collector.leave(main())
