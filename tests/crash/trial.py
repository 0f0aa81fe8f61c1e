"""How one scenario is run on any cloud: undisturbed, with the daemon killed after a call, with a call's answer lost."""

from __future__ import annotations

import contextlib
import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Generic, Literal, Protocol, TypeVar, get_args

from tests.crash.daemon import Daemon, Json, until
from tests.sampling import EVERY_CALL

Blow = Literal["kill", "lost answer"]

COLUMNS = ("calls", "crash points survived", "answer-lost points survived")

QUIET = 0.7
"""Seconds without a mutating call after which the daemon is taken to have nothing left to do."""
QUIET_AFTER_LOSS = 6.0
"""The same where it may yet come back to what it takes to have failed."""


class Run(Protocol):
    """One run of one scenario."""

    def snapshot(self) -> Json:
        """Everything in cloud and cluster that matters, in words that are the same for every run."""
        ...

    def clean(self) -> None:
        """Take away what the run made, by the daemon where it is its work; fails where anything is left."""
        ...

    def force(self) -> None:
        """Take it away without the daemon, which is dead."""
        ...


R = TypeVar("R", bound=Run)
T = TypeVar("T", bound=Run, contravariant=True)


@dataclass(frozen=True)
class Scenario(Generic[T]):
    """`prepare` leads to a state at rest, `act` is what the daemon has to answer, `done` says that it has."""

    name: str
    prepare: Callable[[T], object]
    at_rest: Callable[[T], bool]
    act: Callable[[T], object]
    done: Callable[[T], bool]


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run did, and where it ended."""

    calls: tuple[str, ...]
    state: Json


def survive(
    daemon: Daemon, begin: Callable[[], R], scenario: Scenario[R], record: Callable[[str, object], None]
) -> None:
    """Strike at the scenario's `points`; fails with all that was not survived."""
    reference = undisturbed(daemon, begin, scenario)
    assert reference.calls
    failures: list[str] = []
    survived = [f"{len(reference.calls)}"]
    for blow in get_args(Blow):
        chosen = [*points(scenario.name, blow, len(reference.calls))]
        before = len(failures)
        quiet = QUIET_AFTER_LOSS if EVERY_CALL and blow == "lost answer" else QUIET
        for number in chosen:
            try:
                disturbed(daemon, begin, scenario, reference, blow, number, quiet)
            except AssertionError as error:
                failures.append(f"{blow} at call {number}: {error}")
        survived.append(f"{len(chosen) - (len(failures) - before)}/{len(chosen)}" if chosen else "-")
    for column, value in zip(COLUMNS, survived, strict=True):
        record(column, value)
    assert not failures, "\n\n".join([*failures, "calls in peace:", *reference.calls, daemon.log_tail()])


def undisturbed(daemon: Daemon, begin: Callable[[], R], scenario: Scenario[R]) -> Reference:
    """Run the scenario in peace."""
    with prepared(daemon, begin(), scenario) as run:
        daemon.recorder.arm()
        since = time.monotonic()
        scenario.act(run)
        # Whatever it asks anybody may lead to a change yet: without that the others would not end as this run does.
        until(lambda: scenario.done(run) and daemon.has_come_to_rest(QUIET), f"{scenario.name}: done")
        return Reference(tuple(map(str, daemon.recorder.writes(since))), run.snapshot())


def disturbed(
    daemon: Daemon,
    begin: Callable[[], R],
    scenario: Scenario[R],
    reference: Reference,
    blow: Blow,
    number: int,
    quiet: float = QUIET,
) -> None:
    """Run it with a blow at mutating call `number`; fails unless the blow falls and it ends as it did in peace."""
    recorder = daemon.recorder
    with prepared(daemon, begin(), scenario) as run:
        recorder.arm(number, daemon.kill if blow == "kill" else lambda: None)
        scenario.act(run)
        until(lambda: recorder.sprung, f"call {number} of {len(reference.calls)} is made")
        at_rest = recorder.quiet_for
        if blow == "kill":
            assert daemon.pid is None, "the daemon outlived its kill"
            daemon.start()
            # Nothing was left to do after the last call: what it does nevertheless comes once it has looked.
            at_rest = daemon.has_come_to_rest
        try:
            until(
                lambda: at_rest(quiet) and scenario.done(run) and run.snapshot() == reference.state,
                f"the end of the undisturbed run, after {blow} at {recorder.sprung}",
            )
        except AssertionError as error:
            raise AssertionError(f"{error}\n{difference(reference.state, run.snapshot())}") from None


def points(scenario: str, blow: Blow, calls: int) -> Iterable[int]:
    """The calls at which to strike: each, or one, whose number and kind of blow the scenario decides.

    The contract suite strikes at every call, without processes.
    """
    if EVERY_CALL:
        return range(1, calls + 1)
    drawn = zlib.crc32(scenario.encode())
    return (1 + drawn % calls,) if blow == get_args(Blow)[drawn // calls % 2] else ()


@contextlib.contextmanager
def prepared(daemon: Daemon, run: R, scenario: Scenario[R]) -> Iterator[R]:
    """The scenario's state at rest; in the end the daemon takes away what the run made, and nothing may be left."""
    try:
        if daemon.pid is None:
            daemon.start()
        scenario.prepare(run)
        until(lambda: scenario.at_rest(run) and daemon.recorder.quiet_for(QUIET), f"{scenario.name}: prepared")
        yield run
        daemon.recorder.arm()
        run.clean()
    except BaseException:
        daemon.kill()
        daemon.recorder.arm()
        run.force()
        raise


def difference(wanted: Json, found: Json) -> str:
    """How a state differs from the undisturbed one; empty where it does not."""
    before, after = (json.dumps(state, indent=1, sort_keys=True).splitlines() for state in (wanted, found))
    return "\n".join(unified_diff(before, after, "undisturbed", "disturbed", lineterm=""))
