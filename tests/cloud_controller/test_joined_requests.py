"""Threads that ask at once share a request; a thread that is alone waits for nobody."""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from cloud_controller.cloud import CloudError, NotFound, Throttled, Unavailable
from cloud_controller.joined_requests import AtWork, JoinedRequests
from tests.waiting import eventually

LONG = 60.0


class Api:
    """Answers each name with itself in capitals. While `gate` is closed, the first request is under way."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.refused: dict[str, CloudError] = {}
        self.gate = threading.Event()

    def request(self, names: Collection[str]) -> dict[str, str]:
        self.asked.append(sorted(names))
        assert self.gate.wait(LONG)
        for name in sorted(self.refused.keys() & {*names}):
            raise self.refused[name]
        return {name: name.upper() for name in names}


@pytest.fixture
def api() -> Api:
    return Api()


def asking_together(api: Api, *names: str) -> list[Future[dict[str, str]]]:
    """Callers that all ask during the first caller's request, when they are done."""
    joined = JoinedRequests(api.request, callers=lambda: 1, gather=LONG)
    with ThreadPoolExecutor(1 + len(names)) as pool:
        first = pool.submit(joined, ["first"])
        eventually(lambda: api.asked, "the first request begins")
        others = [pool.submit(joined, [name]) for name in names]
        eventually(lambda: joined._next.callers == len(names), "the others have joined the next request")
        api.gate.set()
        assert first.result(LONG) == {"first": "FIRST"}
    return others


def test_who_asks_during_a_request_joins_the_next_one(api: Api) -> None:
    others = asking_together(api, "a", "b", "c")

    assert api.asked == [["first"], ["a", "b", "c"]]
    assert [each.result()[name] for each, name in zip(others, "abc", strict=True)] == ["A", "B", "C"]


def test_what_the_api_refuses_one_caller_fails_no_other(api: Api) -> None:
    api.refused["b"] = NotFound("there is no b")

    a, b, c = asking_together(api, "a", "b", "c")

    assert (a.result(), c.result()) == ({"a": "A"}, {"c": "C"})
    assert b.exception() is api.refused["b"]
    assert sorted(api.asked) == [["a"], ["a", "b", "c"], ["b"], ["c"], ["first"]]


@pytest.mark.parametrize("error", [Throttled("slowly", 9.0), Unavailable("silence")])
def test_a_throttled_or_silent_api_is_not_asked_by_each_caller_again(api: Api, error: CloudError) -> None:
    api.refused["b"] = error

    others = asking_together(api, "a", "b")

    assert [each.exception() for each in others] == [error, error]
    assert api.asked == [["first"], ["a", "b"]]


def test_the_only_caller_of_a_refused_request_asks_once(api: Api) -> None:
    api.gate.set()
    api.refused["a"] = NotFound("there is no a")

    with pytest.raises(NotFound):
        JoinedRequests(api.request, callers=lambda: 1, gather=LONG)(["a"])

    assert api.asked == [["a"]]


def test_a_request_after_a_refused_one_works(api: Api) -> None:
    api.gate.set()
    api.refused["a"] = NotFound("there is no a")
    joined = JoinedRequests(api.request, callers=lambda: 1, gather=LONG)
    with pytest.raises(NotFound):
        joined(["a"])

    assert joined(["b"]) == {"b": "B"}


def test_a_request_begins_when_all_threads_at_work_have_joined(api: Api) -> None:
    api.gate.set()
    at_work = AtWork()
    joined = JoinedRequests(api.request, callers=at_work.number, gather=LONG)
    with at_work, at_work, ThreadPoolExecutor(2) as pool:
        one = pool.submit(joined, ["a"])
        eventually(lambda: joined._next.callers == 1, "the first of two has joined")
        assert api.asked == []
        other = pool.submit(joined, ["b"])
        assert one.result(LONG) == other.result(LONG) == {"a": "A", "b": "B"}


def test_a_request_waits_no_longer_than_it_should_for_a_thread_that_does_not_join(api: Api) -> None:
    api.gate.set()
    at_work = AtWork()
    with at_work, at_work:
        assert JoinedRequests(api.request, callers=at_work.number, gather=0.01)(["a"]) == {"a": "A"}


def test_a_thread_that_is_alone_at_work_waits_for_nobody(api: Api) -> None:
    api.gate.set()
    at_work = AtWork()
    joined = JoinedRequests(api.request, callers=at_work.number, gather=threading.TIMEOUT_MAX)
    with at_work:
        assert joined(["a"]) == {"a": "A"}
