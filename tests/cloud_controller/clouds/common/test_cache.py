"""The cache of a cloud's answers: lifetimes, own changes, lists that lag, and what does not exist."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pytest

from cloud_controller.cloud import CloudError, Throttled
from cloud_controller.clouds.common.cache import LAG, Cache, Entries
from tests.clock import Clock


class Cloud:
    """Objects by ID; `reads` are the IDs of each read, and `during` happens in the next one."""

    def __init__(self, **objects: str) -> None:
        self.objects = objects
        self.reads: list[list[str]] = []
        self.error: CloudError | None = None

    def read(self, ids: list[str]) -> Mapping[str, str]:
        self.reads.append(ids)
        if self.error:
            raise self.error
        return {each: self.objects[each] for each in ids if each in self.objects}

    def one(self) -> str:
        return self.read(["a"])["a"]


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def cache(clock: Clock) -> Cache:
    return Cache(clock)


def test_a_value_is_read_again_after_the_lifetime_of_its_kind(cache: Cache, clock: Clock) -> None:
    cloud, short, long = Cloud(a="1"), Entries[str](cache, 60.0), Entries[str](cache, 600.0)

    for clock.now in (1000.0, 1060.0, 1061.0):
        short.fetch("a", cloud.one)
    assert len(cloud.reads) == 2

    for clock.now in (1000.0, 1600.0):
        long.fetch("a", cloud.one)
    assert len(cloud.reads) == 3


def test_a_caller_may_require_a_newer_value(cache: Cache, clock: Clock) -> None:
    cloud, kind = Cloud(a="1"), Entries[str](cache, 600.0)
    kind.fetch("a", cloud.one)
    clock.now += 30.0

    kind.fetch("a", cloud.one, max_age=30.0)
    assert len(cloud.reads) == 1

    kind.fetch("a", cloud.one, max_age=29.0)
    assert len(cloud.reads) == 2


def test_concurrent_callers_share_one_read(cache: Cache) -> None:
    kind, begun, go_on = Entries[str](cache), threading.Event(), threading.Event()
    reads: list[str] = []

    def slow() -> str:
        reads.append("a")
        begun.set()
        go_on.wait(10)
        return "1"

    threads = [threading.Thread(target=kind.fetch, args=("a", slow, 0.0)) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait(10)
    go_on.set()
    for thread in threads:
        thread.join()

    assert reads == ["a"]


def test_a_failed_read_leaves_no_entry(cache: Cache) -> None:
    cloud, kind = Cloud(a="1"), Entries[str](cache)
    cloud.error = Throttled("slow down", 1.0)
    with pytest.raises(Throttled):
        kind.fetch("a", cloud.one)

    cloud.error = None

    assert kind.fetch("a", cloud.one) == "1"


def test_many_are_read_at_once_and_so_is_what_does_not_exist(cache: Cache, clock: Clock) -> None:
    cloud, kind = Cloud(a="1", b="2"), Entries[str](cache, 600.0)
    kind.fetch_many(["b"], cloud.read, missing="")

    assert kind.fetch_many(["a", "b", "gone"], cloud.read, missing="") == {"a": "1", "b": "2", "gone": ""}
    assert kind.fetch_many(["gone", "a"], cloud.read, missing="") == {"gone": "", "a": "1"}
    assert cloud.reads == [["b"], ["a", "gone"]]

    clock.now += 601.0
    cloud.objects = {"gone": "3"}
    assert kind.fetch_many(["gone", "a"], cloud.read, missing="") == {"gone": "3", "a": ""}


def test_a_read_that_overlaps_an_own_change_does_not_enter(cache: Cache) -> None:
    kind = Entries[str](cache)
    kind.put("a", "old")
    began = cache.moment()
    with cache.changing("a"):
        assert kind.read("a", "old", cache.moment()) == "old"
        kind.put("a", "new")

    assert kind.read("a", "old", began) == "new"
    assert kind.read("a", "newer", cache.moment()) == "newer"


def test_a_failed_change_drops_the_objects_entries_of_all_kinds(cache: Cache) -> None:
    one, other = Entries[str](cache), Entries[str](cache)
    for kind in (one, other):
        kind.put("a", "1")
        kind.put("b", "2")

    with pytest.raises(OSError), cache.changing("a"):
        raise OSError

    assert one.all() == other.all() == {"b": "2"}


def test_an_own_change_outlives_a_list_that_lags_and_no_longer(cache: Cache, clock: Clock) -> None:
    changes = Entries[str | None](cache, LAG)
    changes.put("a", None)
    clock.now += LAG - 1
    changes.put("b", "2")
    assert changes.fresh() == {"a": None, "b": "2"}

    clock.now += 2
    assert changes.fresh() == {"b": "2"}


def test_own_changes_are_added_to_what_is_read(cache: Cache) -> None:
    kind = Entries[str](cache)

    assert kind.fetch("a", lambda: "list", amend=lambda read, _: f"{read} and own") == "list and own"
    assert kind.get("a") == "list and own"


def test_an_own_change_outlives_a_list_that_was_read_slowly(cache: Cache, clock: Clock) -> None:
    kind: Entries[frozenset[str]] = Entries(cache)
    changed: Entries[str] = Entries(cache, LAG)
    changed.put("new", "own")

    def read() -> frozenset[str]:
        clock.now += 30
        return frozenset()

    clock.now += LAG - 15
    found = kind.fetch("all", read, amend=lambda listed, at: listed | {*changed.fresh(at)})

    assert found == {"new"}
    assert kind.fetch("all", read, 0, lambda listed, at: listed | {*changed.fresh(at)}) == frozenset()


def test_a_value_changed_by_this_process_is_due_when_it_would_have_been(cache: Cache, clock: Clock) -> None:
    kind = Entries[str](cache, 60.0)
    kind.read("a", "1", cache.moment())
    clock.now += 59.0
    kind.put("a", "2")
    clock.now += 2.0

    assert kind.is_due("a")
    kind.put("a", "3", anew=True)
    assert not kind.is_due("a")


def test_a_value_that_was_read_only_in_part_is_due_at_once(cache: Cache) -> None:
    kind = Entries[str](cache, 60.0)

    kind.read("a", "1", cache.moment(), anew=False)

    assert kind.get("a") == "1"
    assert kind.is_due("a")


def test_values_read_together_are_not_due_together(cache: Cache, clock: Clock) -> None:
    kind = Entries[str](cache, 3600.0, spread=True)
    for number in range(100):
        kind.read(str(number), "", cache.moment())

    clock.now += 1799.0
    assert not any(map(kind.is_due, kind.all()))
    clock.now += 900.0
    assert 10 < sum(map(kind.is_due, kind.all())) < 90
    clock.now += 902.0
    assert all(map(kind.is_due, kind.all()))
