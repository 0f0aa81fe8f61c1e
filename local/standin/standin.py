"""A stand-in of a cloud: receives a request, checks it, carries it out and answers, one call at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from local.http_messages import Answer, Request
from local.standin.actions import ActionTable, Arguments, Call
from local.standin.faults import Fault, Faults
from local.standin.limits import Limits
from local.standin.refusals import OwnMistake, Refusal
from local.standin.shapes import Misfit
from local.standin.world import FAILED, SUCCEEDED, World

W = TypeVar("W", bound=World)
V = TypeVar("V", bound=World, contravariant=True)

TOKEN: Final = "token"
TOKEN_SECONDS: Final = 24 * 3600.0
"""How long the answer to an idempotency token is kept."""

logger = logging.getLogger(__name__)


class Dialect(Protocol[V]):
    """A cloud's wire."""

    def call(self, world: V, request: Request) -> Call:
        """Who calls what; `arguments` have the types of the operation's schema. Raises Refusal."""

    def misfit(self, call: Call, misfit: Misfit) -> Refusal:
        """The cloud's error for arguments that don't fit the schema."""

    def throttled(self, call: Call) -> Refusal:
        """The cloud's error for a call over its rate."""

    def token_reused(self, call: Call) -> Refusal:
        """The cloud's error for a known idempotency token with other arguments."""

    def answer(self, result: Mapping[str, Any]) -> Answer:
        """The envelope of a result."""

    def refusal(self, request: Request, refusal: Refusal) -> Answer:
        """The envelope of an error."""


class StandIn(Generic[W]):
    """Safe to use from any thread."""

    def __init__(self, table: ActionTable[W], dialect: Dialect[W], world: W) -> None:
        self.world = world
        self.faults = Faults()
        self.limits = Limits(world.clock)
        self.calls: Counter[str] = Counter()
        """By `product.Action`, refused ones too."""
        self._table = table
        self._dialect = dialect
        self._lock = threading.RLock()
        self._observers: list[Callable[[Call], None]] = []

    def observe(self, callback: Callable[[Call], None]) -> None:
        """Call `callback` with every authenticated call, before it is carried out."""
        self._observers.append(callback)

    def answer(self, request: Request) -> Answer:
        """Carry out a request, without a socket; the caller waits as long as a fault says."""
        received = self.receive(request)
        if isinstance(received, Answer):
            return received
        time.sleep(received.delay)
        return received.carry_out()

    def receive(self, request: Request) -> Received[W] | Answer:
        """A call that is ready to be carried out, or the refusal of an unreadable one."""
        try:
            with self._lock:
                call = self._dialect.call(self.world, request)
        except Refusal as refusal:
            return self._dialect.refusal(request, refusal)
        with self._lock:
            self.calls[call.operation] += 1
        for observer in self._observers:
            observer(call)
        return Received(self, request, call, self.faults.meet(call.operation))

    @contextmanager
    def changing(self) -> Iterator[W]:
        """The world, to be changed past the API: what machines and people do. One transaction."""
        with self._lock, self.world.store.transaction():
            self._finish_jobs()
            yield self.world

    def carry_out(self, request: Request, call: Call, fault: Fault | None) -> Answer:
        """The answer to a received call."""
        try:
            if fault is not None and fault.error is not None:
                raise fault.error
            if not self.limits.admit(call.operation):
                raise self._dialect.throttled(call)
            with self._lock:
                with self.world.store.transaction():
                    self._finish_jobs()
                with self.world.store.transaction():
                    self.world.next_job_fails_with = None if fault is None else fault.fails_job
                    result = self._result(call)
            answer = self._dialect.answer(result)
        except Refusal as refusal:
            return self._dialect.refusal(request, refusal)
        except OwnMistake as mistake:
            logger.error("%s", mistake)
            return self._dialect.refusal(request, Refusal(500, "StandInMistake", str(mistake)))
        if fault is not None and fault.loses_answer:
            return Answer(answer.status, answer.body, answer.headers, is_lost=True)
        return answer

    def _result(self, call: Call) -> dict[str, Any]:
        action = self._table.actions[call.operation]
        if (misfit := action.check_request(call.arguments)) is not None:
            raise self._dialect.misfit(call, misfit)
        if call.token and (given := self._given(call)) is not None:
            return given
        arguments = Arguments(call.arguments)
        result = action.run(self.world, arguments)
        action.require_all_read(arguments)
        if (misfit := action.check_answer(result)) is not None:
            raise OwnMistake(f"the stand-in's answer to {call.operation} does not fit its schema: {misfit}")
        if call.token:
            kept = {"at": self.world.clock(), "arguments": dict(call.arguments), "result": result}
            self.world.store.put(TOKEN, _key(call), kept)
        return result

    def _given(self, call: Call) -> dict[str, Any] | None:
        """The answer that the call's token got before."""
        kept = self.world.store.get(TOKEN, _key(call))
        if kept is None or kept["at"] + TOKEN_SECONDS < self.world.clock():
            return None
        if kept["arguments"] != call.arguments:
            raise self._dialect.token_reused(call)
        result: dict[str, Any] = kept["result"]
        return result

    def _finish_jobs(self) -> None:
        for job in self.world.due_jobs():
            status = SUCCEEDED if job["error"] is None else FAILED
            self._table.steps[job["step"]](self.world, {**job["facts"], "failed": status == FAILED})
            self.world.end_job(job, status)


@dataclass(frozen=True, slots=True)
class Received(Generic[W]):
    """A call between its arrival and its answer."""

    standin: StandIn[W]
    request: Request
    call: Call
    fault: Fault | None

    @property
    def delay(self) -> float:
        """Seconds that it waits."""
        return 0.0 if self.fault is None else self.fault.delay

    def carry_out(self) -> Answer:
        """The answer."""
        return self.standin.carry_out(self.request, self.call, self.fault)


def _key(call: Call) -> str:
    return f"{call.operation} {call.token}"
