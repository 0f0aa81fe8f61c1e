"""A stand-in of a cloud that exists nowhere: checks, faults, tokens, jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local.http_messages import Answer, Request
from local.standin.actions import Action, ActionTable, Arguments, Call
from local.standin.faults import Fault
from local.standin.refusals import Refusal
from local.standin.shapes import Misfit
from local.standin.standin import StandIn
from local.standin.world import World

TABLE: ActionTable[World] = ActionTable()
REQUEST = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}, "colour": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
ANSWER = {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": False}


def make(world: World, arguments: Arguments) -> dict[str, Any]:
    number = world.store.next_number()
    world.store.put("thing", str(number), {"name": arguments["name"], "state": "new"})
    if "size" in arguments and arguments["size"] < 0:
        raise Refusal(400, "TooSmall", "a thing is not smaller than 0")
    if arguments["name"] == "mistake":
        return {"number": number}
    world.start_job(f"job-{number}", "things.make", "made", thing=str(number))
    return {"id": str(number)}


@TABLE.step("made")
def made(world: World, facts: dict[str, Any]) -> None:
    thing = world.store.get("thing", facts["thing"]) or {}
    world.store.put("thing", facts["thing"], {**thing, "state": "failed" if facts["failed"] else "ready"})


TABLE.add(Action("things.Make", make, lambda: REQUEST, lambda: ANSWER))


class PlainDialect:
    """The action is the path, the arguments are the body."""

    def call(self, world: World, request: Request) -> Call:
        if request.path != "/Make":
            raise Refusal(404, "NoSuchAction", f"{world.clock():g}: {request.path}")
        return Call("things.Make", json.loads(request.body), request.headers.get("token"))

    def misfit(self, call: Call, misfit: Misfit) -> Refusal:
        return Refusal(400, misfit.rule, f"{call.operation}: {misfit}")

    def throttled(self, call: Call) -> Refusal:
        return Refusal(429, "Slow", call.operation)

    def token_reused(self, call: Call) -> Refusal:
        return Refusal(409, "TokenReused", str(call.token))

    def answer(self, result: Mapping[str, Any]) -> Answer:
        return Answer(200, json.dumps(result).encode(), {})

    def refusal(self, request: Request, refusal: Refusal) -> Answer:
        return Answer(refusal.status, json.dumps({"code": refusal.code, "path": request.path}).encode(), {})


class Things(StandIn[World]):
    """With a clock that tests move."""

    def __init__(self) -> None:
        self.now = 100.0
        super().__init__(TABLE, PlainDialect(), World(clock=lambda: self.now, job_seconds=5))

    def make(self, token: str = "", **arguments: Any) -> tuple[int, dict[str, Any]]:
        headers = {"token": token} if token else {}
        answer = self.answer(Request("POST", "/Make", "", headers, json.dumps(arguments).encode()))
        return (0, {}) if answer.is_lost else (answer.status, json.loads(answer.body))

    def things(self) -> list[tuple[str, str]]:
        with self.changing() as world:
            return [(each["name"], each["state"]) for each in world.store.all("thing")]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "required"),
        ({"name": 1}, "type"),
        ({"name": "a", "weight": 1}, "additionalProperties"),
        ({"name": "a", "size": -1}, "TooSmall"),
    ],
)
def test_a_call_that_is_refused_changes_nothing(arguments: dict[str, Any], code: str) -> None:
    cloud = Things()

    assert cloud.make(**arguments) == (400, {"code": code, "path": "/Make"})
    assert cloud.things() == []


def test_a_parameter_that_no_code_reads_is_refused() -> None:
    cloud = Things()

    assert cloud.make(name="a", colour="red") == (501, {"code": "NotSimulated", "path": "/Make"})
    assert cloud.things() == []


def test_an_answer_that_does_not_fit_its_schema_is_a_500_and_changes_nothing() -> None:
    cloud = Things()

    assert cloud.make(name="mistake") == (500, {"code": "StandInMistake", "path": "/Make"})
    assert cloud.things() == []


def test_an_unreadable_request_is_refused_and_not_counted() -> None:
    cloud = Things()

    assert cloud.answer(Request("GET", "/Other", "", {})).status == 404
    assert not cloud.calls


def test_a_call_is_counted_and_observed() -> None:
    cloud, seen = Things(), list[Call]()
    cloud.observe(seen.append)

    cloud.make("t", name="a")
    cloud.make(name="")

    assert cloud.calls == {"things.Make": 2}
    assert [(each.operation, each.arguments, each.token) for each in seen] == [
        ("things.Make", {"name": "a"}, "t"),
        ("things.Make", {"name": ""}, None),
    ]


def test_the_same_token_gets_the_same_answer_for_a_day() -> None:
    cloud = Things()

    assert cloud.make("t", name="a") == cloud.make("t", name="a") == (200, {"id": "1"})
    assert cloud.make("t", name="b")[0] == 409
    assert cloud.make("u", name="b") == (200, {"id": "2"})
    cloud.now += 24 * 3600 + 1
    assert cloud.make("t", name="a") == (200, {"id": "3"})


def test_a_refused_call_leaves_its_token_free() -> None:
    cloud = Things()
    cloud.make("t", name="a", size=-1)

    assert cloud.make("t", name="a", size=1) == (200, {"id": "1"})


def test_a_job_ends_at_the_first_call_after_its_time() -> None:
    cloud = Things()
    cloud.make(name="a")

    assert cloud.things() == [("a", "new")]
    cloud.now += 5
    assert cloud.things() == [("a", "ready")]


def test_calls_over_their_rate_are_refused_until_there_is_room() -> None:
    cloud = Things()
    cloud.limits.set("things.*", 2)

    assert [cloud.make(name=name)[0] for name in "abc"] == [200, 200, 429]
    cloud.now += 0.5
    assert [cloud.make(name=name)[0] for name in "de"] == [200, 429]
    cloud.limits.set("other.*", 1)
    assert len(cloud.things()) == 3


def test_faults_strike_in_their_order_and_number() -> None:
    cloud = Things()
    cloud.faults.add(Fault("other.*", error=Refusal(400, "Never", "")))
    cloud.faults.add(Fault("things.*", error=Refusal(429, "Slow", ""), after=1))
    cloud.faults.add(Fault("things.Make", loses_answer=True))
    cloud.faults.add(Fault("things.Make", fails_job="Broken"))
    cloud.faults.add(Fault("things.Make", delay=0.001, count=None))

    statuses = [cloud.make(name=name)[0] for name in "abcde"]
    cloud.now += 5

    # The first call meets the lost answer: the fault before it lets one pass.
    assert statuses == [0, 429, 200, 200, 200]
    assert cloud.things() == [("a", "ready"), ("c", "failed"), ("d", "ready"), ("e", "ready")]
    assert [each.operation for each in cloud.faults.left()] == ["other.*", "things.Make"]
    cloud.faults.clear()
    assert cloud.faults.left() == []


def test_two_functions_or_steps_of_one_name_are_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"things\.Make has two functions"):
        TABLE.add(TABLE.actions["things.Make"])
    with pytest.raises(ValueError, match="step made has two functions"):
        TABLE.step("made")(made)
